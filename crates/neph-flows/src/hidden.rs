//! Times in which path changes are not observable because all flows share a queue. Rates of changes exclude
//! them, in numerator and denominator.

use neph_model::{Instant, Local, Span};

/// Such times, merged if they touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct HiddenTimes {
    /// Start, end, and total of such time before.
    times: Vec<(Instant<Local>, Instant<Local>, Span)>,
    /// The part of each that follows the queue.
    after: Span,
}

impl HiddenTimes {
    /// While queues stood, and for `after` behind each: a change in a queue is reported after it. `queues`
    /// are sorted by time.
    pub(crate) fn new(queues: &[(Instant<Local>, Instant<Local>)], after: Span) -> Self {
        let mut times: Vec<(Instant<Local>, Instant<Local>, Span)> = Vec::new();
        for (from, until) in queues {
            let until = *until + after;
            match times.last_mut() {
                Some(last) if *from <= last.1 => last.1 = last.1.max(until),
                Some((begun, ended, before)) => {
                    let before = *before + (*ended - *begun);
                    times.push((*from, until, before));
                }
                None => times.push((*from, until, Span::ZERO)),
            }
        }
        Self { times, after }
    }

    /// Whether a change at this moment may have happened long before.
    pub(crate) fn hides(&self, at: Instant<Local>) -> bool {
        let next = self.times.partition_point(|(from, _, _)| *from <= at);
        next.checked_sub(1)
            .is_some_and(|index| at <= self.times[index].1)
    }

    /// The end of the queue at this moment; the moment itself without a queue.
    pub(crate) fn over(&self, at: Instant<Local>) -> Instant<Local> {
        let next = self.times.partition_point(|(from, _, _)| *from <= at);
        let stood = next.checked_sub(1).map(|index| self.times[index].1);
        stood.map_or(at, |until| at.max(until - self.after))
    }

    /// How much of the time between two moments is hidden.
    pub(crate) fn within(&self, from: Instant<Local>, until: Instant<Local>) -> Span {
        self.before(until.max(from)) - self.before(from)
    }

    fn before(&self, at: Instant<Local>) -> Span {
        let next = self.times.partition_point(|(from, _, _)| *from <= at);
        let Some(index) = next.checked_sub(1) else {
            return Span::ZERO;
        };
        let (from, until, before) = self.times[index];
        before + (at.min(until) - from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: i64) -> Instant<Local> {
        Instant::from_nanos(nanos)
    }

    proptest! {
        #[test]
        fn as_much_is_hidden_as_there_are_hidden_moments(
            ends in prop::collection::vec(0..200_i64, 0..12),
            after in 1..20_i64,
            from in 0..250_i64,
            long in 0..250_i64,
        ) {
            let mut ends = ends;
            ends.sort_unstable();
            let queues: Vec<_> = ends.chunks_exact(2).map(|two| (at(two[0]), at(two[1]))).collect();
            let hidden_times = HiddenTimes::new(&queues, Span::from_nanos(after));
            // A moment represents the nanosecond after it: the end of a period does not belong to it.
            let is_in = |moment: i64| ends
                .chunks_exact(2)
                .any(|two| (two[0]..two[1] + after).contains(&moment));
            let counted = (from..from + long).filter(|moment| is_in(*moment)).count();
            let hidden_ns = hidden_times.within(at(from), at(from + long)).nanos();
            prop_assert_eq!(hidden_ns, i64::try_from(counted).unwrap());
            for moment in (0..250).filter(|moment| is_in(*moment)) {
                prop_assert!(hidden_times.hides(at(moment)));
            }
        }
    }

    #[test]
    fn nothing_is_hidden_before_and_after_a_queue() {
        let hidden_times = HiddenTimes::new(&[(at(100), at(200))], Span::from_nanos(10));
        let hidden = [99, 100, 210, 211].map(|moment| hidden_times.hides(at(moment)));
        assert_eq!(hidden, [false, true, true, false]);
        let over = [99, 100, 150, 205, 300].map(|moment| hidden_times.over(at(moment)));
        assert_eq!(over, [99, 200, 200, 205, 300].map(at));
        assert!(!HiddenTimes::default().hides(at(5)));
    }
}
