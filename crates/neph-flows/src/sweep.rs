//! The base latencies of flows at given moments, in one pass over all segments by time, for any number of
//! moments.

use std::collections::BTreeMap;

use neph_model::{Instant, Local, Span};

use crate::view::FlowHistory;

/// Number of flows by base latency, in cells of the requested height.
pub(crate) type Levels = BTreeMap<i64, u32>;

/// All starts and ends of segments of some flows.
#[derive(Debug)]
pub(crate) struct Sweep {
    cell: i64,
    /// Time, cell, and change of the number of flows.
    events: Vec<(i64, i64, i32)>,
}

impl Sweep {
    /// The segments of `flows`, with base latencies to within half of `cell`, which is above zero.
    pub(crate) fn from_flows<'a>(flows: impl Iterator<Item = &'a FlowHistory>, cell: Span) -> Self {
        let cell = cell.nanos().max(1);
        let mut events = Vec::new();
        for segment in flows.flat_map(|flow| &flow.segments) {
            let row = segment.base.nanos().div_euclid(cell);
            events.push((segment.from.nanos(), row, 1));
            events.push((segment.until.nanos(), row, -1));
        }
        events.sort_unstable();
        Self { cell, events }
    }

    /// The middle of a cell.
    pub(crate) fn middle(&self, row: i64) -> Span {
        Span::from_nanos(row * self.cell + self.cell / 2)
    }

    /// Calls back with the levels at each of `times`, which must ascend.
    pub(crate) fn evaluate_at<T>(
        &self,
        times: impl Iterator<Item = Instant<Local>>,
        mut evaluate: impl FnMut(&Levels) -> T,
    ) -> Vec<T> {
        let mut levels = Levels::new();
        let mut remaining = self.events.iter().peekable();
        times
            .map(|moment| {
                while let Some((_, row, change)) =
                    remaining.next_if(|(time, _, _)| *time <= moment.nanos())
                {
                    let flows = levels.entry(*row).or_default();
                    // Ends and starts at the same moment are unordered: the sum is correct after all of them.
                    *flows = flows.wrapping_add_signed(*change);
                    if *flows == 0 {
                        levels.remove(row);
                    }
                }
                evaluate(&levels)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histories::history;

    fn flow(segments: &[(i64, i64, i64)]) -> FlowHistory {
        let nano = Span::from_nanos(1);
        history(segments, (nano, nano))
    }

    #[test]
    fn each_moment_has_the_levels_of_all_flows() {
        let flows = [
            flow(&[(0, 10, 105), (10, 30, 209)]),
            flow(&[(5, 30, 101)]),
            flow(&[]),
        ];
        let sweep = Sweep::from_flows(flows.iter(), Span::from_nanos(10));
        let times = [2, 7, 10, 29, 30].map(Instant::from_nanos);
        let rows = sweep.evaluate_at(times.into_iter(), |levels| {
            levels
                .iter()
                .map(|(row, flows)| (*row, *flows))
                .collect::<Vec<_>>()
        });
        assert_eq!(rows[0], [(10, 1)]);
        assert_eq!(rows[1], [(10, 2)]);
        assert_eq!(rows[2], [(10, 1), (20, 1)]);
        assert_eq!(rows[3], [(10, 1), (20, 1)]);
        assert!(rows[4].is_empty());
        assert_eq!(sweep.middle(10), Span::from_nanos(105));
    }
}
