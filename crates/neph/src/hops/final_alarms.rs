//! New alarms after all data is known: alarms of the complete captures that were not reported while
//! the points recorded.
//!
//! Ensures that no alarm is reported twice. Does not own the evaluation, nor the output
//! ([`super::alarm_reporter`]).

use neph_documents::alarm::{AlarmDocument, SegmentReference};
use neph_model::Wall;

use super::alarm_reporter::{AlarmReporter, alarm_text, build_document};
use crate::output;
use neph_capture::path::alarms::{AlarmResult, SegmentChange};

/// Maximum difference of the two times of one alarm: the complete captures and their windows may
/// contain slightly different packets.
const MAX_TIME_DIFFERENCE_NS: i64 = 60_000_000_000;

/// Alarms to report when all data is known.
#[derive(Debug)]
pub(super) struct Alarms {
    /// Alarms of the complete captures, by time, and whether each was reported before.
    found: Vec<(SegmentChange, bool)>,
    /// Reported alarms that the complete captures do not confirm.
    only_live: Vec<SegmentChange>,
    /// Rules that had too few packets in all segments.
    not_evaluated: Vec<String>,
}

impl Alarms {
    /// Merges the alarms of the complete captures with those that `live_reporter` reported.
    pub(super) fn of(result: AlarmResult, live_reporter: &AlarmReporter) -> Self {
        let mut alarms: Vec<(SegmentChange, bool)> =
            (result.changes.into_iter().map(|alarm| (alarm, false))).collect();
        let mut only_live = Vec::new();
        for live in live_reporter.reported_alarms() {
            let candidates = alarms
                .iter_mut()
                .filter(|(alarm, is_reported)| !is_reported && is_same(alarm, live));
            match candidates.min_by_key(|(alarm, _)| time_difference(alarm.at, live.at)) {
                Some((_, is_reported)) => *is_reported = true,
                None => only_live.push(live.clone()),
            }
        }
        Self {
            found: alarms,
            only_live,
            not_evaluated: result.not_evaluated,
        }
    }

    /// All alarms, as JSON.
    pub(super) fn documents(&self) -> Vec<AlarmDocument<SegmentReference>> {
        let documents = self
            .found
            .iter()
            .map(|(alarm, _)| build_document(alarm, "whole"));
        let live = self
            .only_live
            .iter()
            .map(|alarm| build_document(alarm, "live"));
        documents.chain(live).collect()
    }

    /// The new alarms, as JSON.
    pub(super) fn final_alarms(&self) -> Vec<AlarmDocument<SegmentReference>> {
        let final_alarms = self.found.iter().filter(|(_, is_reported)| !is_reported);
        final_alarms
            .map(|(alarm, _)| build_document(alarm, "whole"))
            .collect()
    }

    /// Prints the new alarms, and sends them to the webhook. Returns whether any was raised.
    pub(super) fn report(&self, live_reporter: &AlarmReporter) -> bool {
        for (alarm, _) in self.found.iter().filter(|(_, is_reported)| !is_reported) {
            live_reporter.send(alarm, &build_document(alarm, "whole"));
        }
        for alarm in &self.only_live {
            output::say(&format!(
                "neph hops: raised while recording, but not confirmed by the whole captures: {}",
                alarm_text(alarm)
            ));
        }
        for message in &self.not_evaluated {
            output::say(&format!("neph hops: {message}"));
        }
        live_reporter.is_alarmed() || self.found.iter().any(|(alarm, _)| alarm.change.is_raised)
    }
}

/// Whether two alarms may be the same.
fn is_same(first: &SegmentChange, second: &SegmentChange) -> bool {
    let rule_and_state =
        |alarm: &SegmentChange| (alarm.change.rule.clone(), alarm.change.is_raised);
    let segment_of = |alarm: &SegmentChange| (alarm.segment.clone(), alarm.direction);
    rule_and_state(first) == rule_and_state(second)
        && segment_of(first) == segment_of(second)
        && time_difference(first.at, second.at) <= MAX_TIME_DIFFERENCE_NS
}

const fn time_difference(first: Wall, second: Wall) -> i64 {
    first
        .unix_nanos()
        .saturating_sub(second.unix_nanos())
        .saturating_abs()
}

#[cfg(test)]
mod tests {
    use neph_capture::Direction;
    use neph_model::Span;
    use neph_model::alarm::Change;

    use super::*;

    type SegmentDirection = (&'static str, Direction);

    /// Raised (positive) or ended (negative) at this second.
    fn segment_change((segment, direction): SegmentDirection, second: i64) -> SegmentChange {
        let time = second.abs();
        SegmentChange {
            at: Wall::from_unix_nanos(time * 1_000_000_000),
            change: Change {
                rule: "segment > 2ms p50".to_owned(),
                at: Span::from_secs(time),
                is_raised: second > 0,
                above_limit: 6,
                total: 6,
                limit: Span::from_millis(2),
            },
            segment: segment.to_owned(),
            direction,
            bound: 0,
        }
    }

    /// Seconds of new alarms at the end, and of withdrawn ones.
    fn final_and_withdrawn(
        live: &[(SegmentDirection, i64)],
        final_alarms: &[(SegmentDirection, i64)],
    ) -> (Vec<i64>, Vec<i64>) {
        let segment_changes = |changes: &[(SegmentDirection, i64)]| {
            changes
                .iter()
                .map(|(segment_direction, second)| segment_change(*segment_direction, *second))
                .collect()
        };
        let live_reporter = AlarmReporter::of(segment_changes(live));
        let result = AlarmResult {
            changes: segment_changes(final_alarms),
            not_evaluated: Vec::new(),
        };
        let alarms = Alarms::of(result, &live_reporter);
        assert_eq!(
            alarms.documents().len(),
            final_alarms.len() + alarms.only_live.len()
        );
        let seconds = |document: AlarmDocument<SegmentReference>| {
            document.about.since_ns.nanos() / 1_000_000_000
        };
        let withdrawn = alarms
            .only_live
            .iter()
            .map(|alarm| build_document(alarm, "live"));
        (
            alarms.final_alarms().into_iter().map(seconds).collect(),
            withdrawn.map(seconds).collect(),
        )
    }

    #[test]
    fn alarms_reported_live_are_not_repeated_at_the_end() {
        let pair = [
            (("a - b", Direction::Forward), 5),
            (("a - b", Direction::Forward), -9),
        ];
        assert_eq!(final_and_withdrawn(&pair, &pair), (vec![], vec![]));
        // It ended after the last live evaluation; another segment is evaluated at the end.
        let final_alarms = [pair[0], (("b - c", Direction::Forward), 6), pair[1]];
        assert_eq!(
            final_and_withdrawn(&pair[..1], &final_alarms),
            (vec![6, 9], vec![])
        );
    }

    #[test]
    fn live_alarms_match_the_nearest_final_alarm_or_are_withdrawn() {
        let segment_direction = ("a - b", Direction::Reverse);
        let final_alarms = [
            (segment_direction, 5),
            (segment_direction, -9),
            (segment_direction, 20),
            (segment_direction, -30),
        ];
        let live = [(segment_direction, 21), (segment_direction, -30)];
        assert_eq!(
            final_and_withdrawn(&live, &final_alarms),
            (vec![5, 9], vec![])
        );
        assert_eq!(
            final_and_withdrawn(&[(segment_direction, 300)], &final_alarms[..1]),
            (vec![5], vec![300])
        );
        assert_eq!(
            final_and_withdrawn(&[(("a - b", Direction::Forward), 5)], &final_alarms[..1]),
            (vec![5], vec![5])
        );
    }
}
