//! How long before a packet is due the engine must be awake: learned from how late the machine
//! wakes it.
//!
//! Owns the estimate and the budget for spinning. An idle core that has halted takes 5 to 60 us to
//! wake up, by machine and by the hour (both measured on the development machines): a fixed lead
//! is either wasted or too short.

use neph_model::Span;

/// Of ten wake-ups, nine shall be in time.
const IN_TIME: i64 = 9;
const OF: i64 = 10;
/// By how much one wake-up moves the estimate, in nanoseconds, once the machine is known.
const STEP: i64 = 500;
/// By how much the first one does, and after how many it is half of that: a slow link wakes a dozen
/// times in its first second, and a machine that wakes 100 us late must be known by then.
const FIRST_STEP: i64 = 20_000;
const HALVED_AFTER: i64 = 5;
/// Before anything is known: what most machines stay below.
const FIRST: Span = Span::from_micros(40);
/// What is spun beyond the estimate: reading clocks and rings takes its time.
const MARGIN: Span = Span::from_micros(5);
/// For each part of sleep, so many may be spun: `SCHED_FIFO` at full duty is stalled by the kernel
/// for 50 ms in each second, and others want the core as well.
const SHARE: (i64, i64) = (1, 2);
/// Spinning time that may be saved up.
const SAVINGS: i64 = 2_000_000;

/// What an engine knows about its machine's punctuality, and what it may spend on its own.
#[derive(Clone, Debug)]
pub(super) struct Lead {
    longest: Span,
    /// A quantile of the lateness of wake-ups: nanoseconds.
    late: i64,
    /// How many wake-ups the estimate rests on.
    seen: i64,
    savings: i64,
}

impl Lead {
    /// One that is never longer than `longest`; zero: none.
    pub(super) fn at_most(longest: Span) -> Self {
        Self {
            longest,
            late: FIRST.nanos(),
            seen: 0,
            savings: SAVINGS,
        }
    }

    /// How long before a packet is due to be awake, as far as there are savings for it.
    pub(super) fn now(&self) -> Span {
        if self.savings <= 0 {
            return Span::ZERO;
        }
        (Span::from_nanos(self.late) + MARGIN).min(self.longest)
    }

    /// A sleep ended by its time, this long after it.
    pub(super) fn woke(&mut self, late: Span) {
        // Moves up by nine parts for a later one and down by one part for an earlier one, so that
        // it settles where nine of ten are earlier. One theft of the hypervisor moves it no more
        // than any other.
        let step = STEP.max(FIRST_STEP * HALVED_AFTER / (HALVED_AFTER + self.seen));
        self.seen += 1;
        let step = if late.nanos() > self.late {
            step * IN_TIME / OF
        } else {
            -step * (OF - IN_TIME) / OF
        };
        self.late = (self.late + step).clamp(0, self.longest.nanos());
    }

    /// So long was slept.
    pub(super) fn slept(&mut self, span: Span) {
        let earned = span.nanos() * SHARE.0 / SHARE.1;
        self.savings = (self.savings + earned).min(SAVINGS);
    }

    /// So long was spun.
    pub(super) fn spun(&mut self, span: Span) {
        self.savings -= span.nanos();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_settles_where_nine_of_ten_wake_ups_are_in_time() {
        let mut lead = Lead::at_most(Span::from_micros(150));
        // Lateness from 0 to 99 us, each as often, in a mixed order; now and then 10 ms.
        for number in 0..20_000_i64 {
            let late = if number % 500 == 0 {
                Span::from_millis(10)
            } else {
                Span::from_micros(number * 37 % 100)
            };
            lead.woke(late);
        }
        let settled = lead.now() - MARGIN;
        assert!(
            (Span::from_micros(84)..Span::from_micros(96)).contains(&settled),
            "{settled}"
        );
    }

    #[test]
    fn a_dozen_wake_ups_tell_a_slow_machine() {
        let mut lead = Lead::at_most(Span::from_micros(150));
        for number in 0..12_i64 {
            lead.woke(Span::from_micros(90 + number * 7 % 10));
        }
        let learned = lead.now() - MARGIN;
        assert!(
            (Span::from_micros(90)..Span::from_micros(125)).contains(&learned),
            "{learned}"
        );
    }

    #[test]
    fn a_punctual_machine_needs_next_to_none_and_a_slow_one_no_more_than_allowed() {
        let mut lead = Lead::at_most(Span::from_micros(100));
        for _ in 0..5_000 {
            lead.woke(Span::from_micros(1));
        }
        assert!(lead.now() < Span::from_micros(8), "{}", lead.now());
        for _ in 0..5_000 {
            lead.woke(Span::from_micros(400));
        }
        assert_eq!(lead.now(), Span::from_micros(100));
        assert_eq!(Lead::at_most(Span::ZERO).now(), Span::ZERO);
    }

    #[test]
    fn what_is_spun_must_have_been_slept() {
        let mut lead = Lead::at_most(Span::from_micros(100));
        lead.spun(Span::from_millis(3));
        assert_eq!(lead.now(), Span::ZERO, "nothing is left");
        lead.slept(Span::from_millis(2));
        assert_eq!(lead.now(), Span::ZERO, "half of it is earned");
        lead.slept(Span::from_micros(10));
        assert!(lead.now() > Span::ZERO);
    }
}
