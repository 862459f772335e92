//! Whether a generator did what was asked: seconds in which it was late, and limits that it met.
//!
//! A second is void if more than 1 % of its requests, and more than one, were taken up later than the
//! bound. A load with more than 1 % void seconds does not count as generated.

use neph_model::Span;
use serde::{Deserialize, Serialize};

use super::failure::RequestFailure;
use super::second::WorkloadSecond;
use super::tally::Tally;

/// From this share of a core on, a thread has no time left.
const BUSY_THREAD: f64 = 0.95;

/// A resource of the generator that was used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeneratorLimit {
    /// A thread of the generator was busy all the time.
    Cpu,
    /// Local ports for connections.
    Ports,
    /// File descriptors.
    Sockets,
    /// The maximum number of connections.
    Connections,
}

/// Whether the generator did what was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// Seconds after the warm-up.
    pub seconds: u32,
    /// Void seconds among them.
    pub void_seconds: u32,
    /// Limits that the generator met, without repetition.
    pub limits: Vec<GeneratorLimit>,
    /// The largest lateness of the measured time.
    pub max_lateness: Span,
}

impl Validity {
    /// Whether the load counts as generated.
    pub fn is_generated(&self) -> bool {
        u64::from(self.void_seconds) * 100 <= u64::from(self.seconds)
    }
}

/// Decides second by second.
#[derive(Debug, Default)]
pub(super) struct ValidityCheck {
    validity: Validity,
    busy_seconds: u32,
}

impl ValidityCheck {
    /// Adds a second; returns whether it is void.
    pub(super) fn add(&mut self, second: &WorkloadSecond) -> bool {
        let tally = &second.tally;
        let is_void = tally.late > 1 && tally.late * 100 > tally.due;
        if !second.is_warmup {
            self.validity.seconds += 1;
            self.validity.void_seconds += u32::from(is_void);
            self.busy_seconds += u32::from(second.thread_cpu >= BUSY_THREAD);
        }
        is_void
    }

    /// The result, with the counts of the measured time.
    pub(super) fn end(mut self, tally: &Tally) -> Validity {
        let failed = |failure| tally.failures.contains_key(&failure);
        let limits = [
            (
                GeneratorLimit::Cpu,
                self.busy_seconds * 2 > self.validity.seconds,
            ),
            (GeneratorLimit::Ports, failed(RequestFailure::NoPort)),
            (GeneratorLimit::Sockets, failed(RequestFailure::NoSocket)),
            (GeneratorLimit::Connections, tally.waited > 0),
        ];
        let met = limits.into_iter().filter(|(_, is_met)| *is_met);
        self.validity.limits = met.map(|(limit, _)| limit).collect();
        self.validity.max_lateness = tally.lateness.max().unwrap_or(Span::ZERO);
        self.validity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(due: u64, late: u64, is_warmup: bool) -> WorkloadSecond {
        WorkloadSecond {
            index: 0,
            tally: Tally {
                due,
                late,
                ..Tally::default()
            },
            in_flight: 0,
            waiting: 0,
            thread_cpu: 0.5,
            is_warmup,
            is_void: false,
        }
    }

    #[test]
    fn a_second_is_void_above_one_late_request_in_a_hundred() {
        let mut check = ValidityCheck::default();
        assert!(!check.add(&second(1_000, 10, false)));
        assert!(check.add(&second(1_000, 11, false)));
        assert!(!check.add(&second(5, 1, false)), "one alone");
        assert!(check.add(&second(5, 2, true)));
        let validity = check.end(&Tally::default());
        assert_eq!((validity.seconds, validity.void_seconds), (3, 1));
        assert!(!validity.is_generated());
    }

    #[test]
    fn one_void_second_in_a_hundred_is_tolerated() {
        let validity = |void_seconds| Validity {
            seconds: 200,
            void_seconds,
            ..Validity::default()
        };
        assert!(validity(2).is_generated() && !validity(3).is_generated());
    }

    #[test]
    fn limits_name_the_resource_that_was_used_up() {
        let mut check = ValidityCheck::default();
        check.add(&WorkloadSecond {
            thread_cpu: 0.99,
            ..second(10, 0, false)
        });
        let mut tally = Tally {
            waited: 3,
            ..Tally::default()
        };
        tally.failures.insert(RequestFailure::NoPort, 1);
        assert_eq!(
            check.end(&tally).limits,
            [
                GeneratorLimit::Cpu,
                GeneratorLimit::Ports,
                GeneratorLimit::Connections
            ]
        );
    }
}
