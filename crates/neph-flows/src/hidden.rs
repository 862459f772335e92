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
                Some((last_from, last_until, hidden_before)) => {
                    let hidden_before = *hidden_before + (*last_until - *last_from);
                    times.push((*from, until, hidden_before));
                }
                None => times.push((*from, until, Span::ZERO)),
            }
        }
        Self { times, after }
    }

    /// Whether a change at this moment may have happened long before.
    pub(crate) fn contains(&self, at: Instant<Local>) -> bool {
        let next_index = self.times.partition_point(|(from, _, _)| *from <= at);
        next_index
            .checked_sub(1)
            .is_some_and(|index| at <= self.times[index].1)
    }

    /// The end of the queue at this moment; the moment itself without a queue.
    pub(crate) fn end_of_queue(&self, at: Instant<Local>) -> Instant<Local> {
        let next_index = self.times.partition_point(|(from, _, _)| *from <= at);
        let queue_end = next_index.checked_sub(1).map(|index| self.times[index].1);
        queue_end.map_or(at, |until| at.max(until - self.after))
    }

    /// How much of the time between two moments is hidden.
    pub(crate) fn hidden_between(&self, from: Instant<Local>, until: Instant<Local>) -> Span {
        self.hidden_before(until.max(from)) - self.hidden_before(from)
    }

    fn hidden_before(&self, at: Instant<Local>) -> Span {
        let next_index = self.times.partition_point(|(from, _, _)| *from <= at);
        let Some(index) = next_index.checked_sub(1) else {
            return Span::ZERO;
        };
        let (from, until, hidden_before) = self.times[index];
        hidden_before + (at.min(until) - from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn instant(nanos: i64) -> Instant<Local> {
        Instant::from_nanos(nanos)
    }

    proptest! {
        #[test]
        fn the_hidden_span_equals_the_number_of_hidden_moments(
            ends in prop::collection::vec(0..200_i64, 0..12),
            after in 1..20_i64,
            from in 0..250_i64,
            length in 0..250_i64,
        ) {
            let mut ends = ends;
            ends.sort_unstable();
            let queues: Vec<_> = ends.chunks_exact(2).map(|pair| (instant(pair[0]), instant(pair[1]))).collect();
            let hidden_times = HiddenTimes::new(&queues, Span::from_nanos(after));
            // A moment represents the nanosecond after it: the end of a period does not belong to it.
            let is_hidden = |moment: i64| ends
                .chunks_exact(2)
                .any(|pair| (pair[0]..pair[1] + after).contains(&moment));
            let expected_ns = (from..from + length).filter(|moment| is_hidden(*moment)).count();
            let hidden_ns = hidden_times.hidden_between(instant(from), instant(from + length)).nanos();
            prop_assert_eq!(hidden_ns, i64::try_from(expected_ns).unwrap());
            for moment in (0..250).filter(|moment| is_hidden(*moment)) {
                prop_assert!(hidden_times.contains(instant(moment)));
            }
        }
    }

    #[test]
    fn nothing_is_hidden_before_and_after_a_queue() {
        let hidden_times = HiddenTimes::new(&[(instant(100), instant(200))], Span::from_nanos(10));
        let hidden = [99, 100, 210, 211].map(|moment| hidden_times.contains(instant(moment)));
        assert_eq!(hidden, [false, true, true, false]);
        let ends =
            [99, 100, 150, 205, 300].map(|moment| hidden_times.end_of_queue(instant(moment)));
        assert_eq!(ends, [99, 200, 200, 205, 300].map(instant));
        assert!(!HiddenTimes::default().contains(instant(5)));
    }
}
