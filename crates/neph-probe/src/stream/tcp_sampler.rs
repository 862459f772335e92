//! When the kernel's statistics of a connection are read.

use neph_model::{Instant, Local, TcpStatsSchedule};

/// When they are to be read next.
#[derive(Debug)]
pub(super) struct TcpSampler {
    schedule: Option<TcpStatsSchedule>,
    next: Option<Instant<Local>>,
}

impl TcpSampler {
    /// Of a flow whose plan requests them, from `start` on.
    pub(super) const fn new(schedule: Option<TcpStatsSchedule>, start: Instant<Local>) -> Self {
        let next = match schedule {
            Some(TcpStatsSchedule::Every(_)) => Some(start),
            _ => None,
        };
        Self { schedule, next }
    }

    /// Whether they are read as messages go and replies come.
    pub(super) fn is_per_message(&self) -> bool {
        self.schedule == Some(TcpStatsSchedule::Message)
    }

    /// When the next reading is due; `None` where none is by time.
    pub(super) const fn next(&self) -> Option<Instant<Local>> {
        self.next
    }

    /// Whether a reading is due by time, which counts as done. Readings that were missed are not made up
    /// for.
    pub(super) fn is_due(&mut self, at: Instant<Local>) -> bool {
        let (Some(TcpStatsSchedule::Every(interval)), Some(next)) = (self.schedule, self.next)
        else {
            return false;
        };
        if at < next {
            return false;
        }
        let missed = (at - next).nanos() / interval.nanos().max(1);
        self.next = Some(next + interval.times(missed + 1));
        true
    }
}

#[cfg(test)]
mod tests {
    use neph_model::Span;

    use super::*;

    #[test]
    fn tcp_samples_stay_on_their_grid_and_missed_ones_are_skipped() {
        let at = |millis: i64| Instant::from_nanos(millis * 1_000_000);
        let every = TcpStatsSchedule::Every(Span::from_millis(100));
        let mut sampler = TcpSampler::new(Some(every), at(0));
        let due: Vec<i64> = (0..60)
            .map(|step| step * 10)
            // The program did not run between 150 and 330 ms.
            .filter(|time| !(150..330).contains(time))
            .filter(|time| sampler.is_due(at(*time)))
            .collect();
        assert_eq!(due, [0, 100, 330, 400, 500]);
        assert!(!sampler.is_per_message());
        let mut per_message = TcpSampler::new(Some(TcpStatsSchedule::Message), at(0));
        assert!(per_message.is_per_message() && !per_message.is_due(at(500)));
    }
}
