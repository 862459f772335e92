//! Detects background load that exceeds the available CPU time: what each thread can have, why, and
//! which load is possible.
//!
//! Owns the warning before the work begins and its reason. Does not own the available CPU time
//! (`room`).

use std::fmt;

use crate::duty_cycle::HELD;
use crate::room::{CpuTime, Room};
use neph_text::counted::counted;

/// Threads that shall work.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub(crate) threads: u64,
    /// CPU time of each thread.
    pub(crate) each: CpuTime,
    pub(crate) on: CpuPlacement,
}

/// CPU placement of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuPlacement {
    /// Any CPU (`--cores`).
    Anywhere,
    /// One named CPU each (`--cpus`).
    Pinned,
}

impl Work {
    /// `share` is the share of the time that each thread shall work.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a second in microseconds"
    )]
    pub fn of(threads: usize, share: f64, on: CpuPlacement) -> Self {
        Self {
            threads: threads as u64,
            each: CpuTime((share * 1e6).round() as u64),
            on,
        }
    }
}

/// Work that exceeds the available CPU time.
#[derive(Clone, Copy, Debug)]
pub struct Overcommit {
    work: Work,
    limit: Limit,
}

/// The available CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Cpus(u64),
    Quota(CpuTime),
}

impl Limit {
    const fn time(self) -> CpuTime {
        match self {
            Self::Cpus(cpus) => CpuTime::of_cpus(cpus),
            Self::Quota(time) => time,
        }
    }
}

impl Overcommit {
    /// `None` if the CPU time suffices.
    pub fn of(work: Work, room: Room) -> Option<Self> {
        let cpus = match work.on {
            CpuPlacement::Anywhere => Some(Limit::Cpus(room.cpus)),
            CpuPlacement::Pinned => None,
        };
        let limits = cpus.into_iter().chain(room.quota.map(Limit::Quota));
        let limit = limits.min_by_key(|limit| limit.time())?;
        let requested = work.each.0.saturating_mul(work.threads);
        (requested > limit.time().0).then_some(Self { work, limit })
    }

    /// Why threads worked less than their target; `worked` is their total, in percent of a CPU.
    pub fn explanation(&self, worked: f64) -> String {
        let limit = match self.limit {
            Limit::Cpus(_) => "there are too few CPUs".to_owned(),
            Limit::Quota(time) => {
                format!("the quota of a control group leaves the time of {time}")
            }
        };
        if worked + HELD < self.limit.time().percent_of_each(1) {
            return format!("{limit}, and other processes used part of it");
        }
        limit
    }

    /// A load that is possible.
    fn remedy(&self) -> String {
        let limit_time = self.limit.time();
        let percent = limit_time.0 / 10_000;
        match (limit_time.0 / self.work.each.0.max(1), self.work.on) {
            (0, _) if percent == 0 => "no load of 1 % has room".to_owned(),
            (0, _) if self.work.threads == 1 => format!("--target {percent}% has room"),
            (0, CpuPlacement::Anywhere) => format!("--cores 1 --target {percent}% has room"),
            (0, CpuPlacement::Pinned) => {
                format!("one of these --cpus has room, with --target {percent}%")
            }
            (threads, CpuPlacement::Anywhere) => format!("--cores {threads} has room"),
            (1, CpuPlacement::Pinned) => "one of these --cpus has room".to_owned(),
            (threads, CpuPlacement::Pinned) => format!("{threads} of these --cpus have room"),
        }
    }
}

impl fmt::Display for Overcommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Work { threads, each, .. } = self.work;
        match self.limit {
            Limit::Cpus(cpus) => {
                let cpus = counted(cpus, "CPU");
                write!(
                    f,
                    "{threads} threads share the {cpus} that may be used here"
                )?;
            }
            Limit::Quota(time) => {
                let threads = counted(threads, "thread");
                write!(
                    f,
                    "the quota of a control group leaves {threads} the time of {time}"
                )?;
            }
        }
        write!(
            f,
            ", so that each can work {:.1} % of the time at most, not {:.0} %; {}",
            self.limit.time().percent_of_each(threads),
            each.percent_of_each(1),
            self.remedy()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreached_cpu_limit_is_not_reported_as_the_only_reason() {
        let quota = Some(CpuTime(1_500_000));
        let work = Work::of(2, 1.0, CpuPlacement::Anywhere);
        let overcommit = Overcommit::of(work, Room { cpus: 2, quota }).expect("an overcommit");
        let limit = "the quota of a control group leaves the time of 1.5 CPUs";
        assert_eq!(overcommit.explanation(149.0), limit);
        let expected = format!("{limit}, and other processes used part of it");
        assert_eq!(overcommit.explanation(44.0), expected);
    }

    fn overcommit_message(
        (threads, share): (usize, f64),
        on: CpuPlacement,
        quota: Option<u64>,
    ) -> Option<String> {
        let quota = quota.map(CpuTime);
        let overcommit = Overcommit::of(Work::of(threads, share, on), Room { cpus: 2, quota });
        overcommit.map(|overcommit| overcommit.to_string())
    }

    #[test]
    fn more_threads_than_cpus_are_reported_with_each_threads_share() {
        assert_eq!(
            overcommit_message((3, 0.66), CpuPlacement::Anywhere, None),
            None
        );
        assert_eq!(
            overcommit_message((3, 0.8), CpuPlacement::Anywhere, Some(2_500_000)).as_deref(),
            Some(
                "3 threads share the 2 CPUs that may be used here, so that each can work 66.7 % of the \
                 time at most, not 80 %; --cores 2 has room"
            )
        );
        // `--cpus` gives each thread its own CPU.
        assert_eq!(
            overcommit_message((3, 0.8), CpuPlacement::Pinned, None),
            None
        );
    }

    #[test]
    fn a_fractional_cpu_quota_is_not_rounded() {
        let half_more = Some(1_500_000);
        assert_eq!(
            overcommit_message((2, 0.75), CpuPlacement::Anywhere, half_more),
            None
        );
        assert_eq!(
            overcommit_message((2, 1.0), CpuPlacement::Anywhere, half_more).as_deref(),
            Some(
                "the quota of a control group leaves 2 threads the time of 1.5 CPUs, so that each can work \
                 75.0 % of the time at most, not 100 %; --cores 1 has room"
            )
        );
        let remedy = |requested, on, quota| {
            let message = overcommit_message(requested, on, Some(quota)).expect("an overcommit");
            message
                .split_once("; ")
                .map(|(_, remedy)| remedy.to_owned())
        };
        let pinned = remedy((2, 1.0), CpuPlacement::Pinned, 1_500_000);
        assert_eq!(pinned.as_deref(), Some("one of these --cpus has room"));
        let min = remedy((2, 1.0), CpuPlacement::Anywhere, 500_000);
        assert_eq!(min.as_deref(), Some("--cores 1 --target 50% has room"));
        let min = remedy((1, 1.0), CpuPlacement::Anywhere, 500_000);
        assert_eq!(min.as_deref(), Some("--target 50% has room"));
        let min = remedy((2, 0.8), CpuPlacement::Pinned, 500_000);
        assert_eq!(
            min.as_deref(),
            Some("one of these --cpus has room, with --target 50%")
        );
    }
}
