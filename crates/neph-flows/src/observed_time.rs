//! The observed time of flows, and the part of it that rates of path changes exclude. Excluded are queues
//! that all flows shared ([`HiddenTimes`]) and the time until a flow's first level is known. Counts time and
//! changes; detects neither.

use neph_model::{Fleet, Instant, Local, Span};

use crate::hidden::HiddenTimes;
use crate::pair::Hidden;
use crate::settings::Settings;
use crate::view::{FlowHistory, PathChange};

/// Some flows, and when their changes are observable.
#[derive(Debug)]
pub(crate) struct ObservedTime<'a> {
    flows: &'a [&'a FlowHistory],
    hidden_times: HiddenTimes,
    /// From a flow's beginning until a change is detectable.
    learning: Span,
    /// Data before this is missing: a flow that is known from then on began earlier.
    horizon: Option<Instant<Local>>,
}

impl<'a> ObservedTime<'a> {
    /// Flows by slot, then by time, each with a base latency; `queues` sorted by time. Before the horizon
    /// nothing is known.
    pub(crate) fn new(
        flows: &'a [&'a FlowHistory],
        queues: &[(Instant<Local>, Instant<Local>)],
        fleet: &Fleet,
        settings: &Settings,
        horizon: Option<Instant<Local>>,
    ) -> Self {
        let rule = settings.detection;
        Self {
            flows,
            hidden_times: HiddenTimes::new(queues, fleet.interval.times(rule.window.into())),
            learning: fleet.interval.times(rule.learning()),
            horizon,
        }
    }

    /// The observed time of the flows, and the part that rates exclude.
    pub(crate) fn observed_time(&self, changes: &[&PathChange]) -> (Span, Hidden) {
        let is_hidden = |change: &&&PathChange| !self.is_observed(change);
        let (mut observed_time, mut hidden) = (Span::ZERO, Hidden::default());
        hidden.changes = changes.iter().filter(is_hidden).count() as u64;
        for flow in self.flows {
            let (Some(start), Some(last)) = (first_base_start(flow), flow.segments.last()) else {
                continue;
            };
            let learning_end = self.learning_end(start).min(last.until);
            observed_time += last.until - start;
            hidden.time += self.hidden_times.hidden_between(start, last.until);
            let hidden_learning = self.hidden_times.hidden_between(start, learning_end);
            hidden.learning += learning_end - start - hidden_learning;
        }
        (observed_time, hidden)
    }

    /// Whether a change of these flows is in the time of rates.
    pub(crate) fn is_observed(&self, change: &PathChange) -> bool {
        let moment = (change.slot, Some(change.at));
        let next_index = self
            .flows
            .partition_point(|flow| (flow.slot, first_base_start(flow)) <= moment);
        let flow = next_index.checked_sub(1).map(|index| self.flows[index]);
        let is_past_learning = flow
            .and_then(first_base_start)
            .is_none_or(|start| self.learning_end(start) <= change.at);
        is_past_learning && !self.hidden_times.contains(change.at)
    }

    /// When changes of a flow that began then become detectable.
    fn learning_end(&self, start: Instant<Local>) -> Instant<Local> {
        if Some(start) <= self.horizon {
            return start;
        }
        // A queue delays learning.
        self.hidden_times.end_of_queue(start) + self.learning
    }
}

/// When a flow's first base latency began.
fn first_base_start(flow: &FlowHistory) -> Option<Instant<Local>> {
    flow.segments.first().map(|segment| segment.from)
}

/// Whether flows are too short to detect a path change.
pub(crate) fn is_too_short(fleet: &Fleet, settings: &Settings, measured: Span) -> bool {
    let lifetime = fleet
        .lifetime
        .map_or(measured, |lifetime| lifetime.min(measured));
    let rule = settings.detection;
    // A window with most messages at the new latency reports it; with jitter one window is not enough.
    let report_messages = i64::from(rule.window) + i64::from(rule.quorum);
    lifetime < fleet.interval.times(rule.learning() + report_messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::world::{World, message};

    const SECOND: i64 = 1_000_000_000;

    /// Ten messages per flow: too short to show any change of the path.
    #[test]
    fn flows_too_short_for_path_changes_have_no_rate() {
        let rate = |lifetime: Option<i64>| {
            let world = World::default();
            let mut fleet = world.fleet();
            (fleet.interval, fleet.lifetime) = (Span::from_secs(3), lifetime.map(Span::from_secs));
            let mut digest = Digest::new(&fleet, Settings::default()).unwrap();
            for second in (0..120).step_by(3) {
                let flow = lifetime.map_or(0, |lifetime| second / lifetime);
                let seq = second % lifetime.unwrap_or(120) / 3;
                for slot in 0..64 {
                    let base = 70_000_000 + i64::from(slot) % 4 * 4_000_000;
                    let seq = u32::try_from(seq).unwrap();
                    let mut message = message(slot, seq, second * SECOND, base);
                    message.source_port += u16::try_from(flow * 100).unwrap();
                    digest.push(&message);
                }
            }
            digest.finish();
            digest.view().pairs[0].changes_per_flow_hour()
        };
        assert_eq!(rate(Some(30)), None);
        // Longer than the minimum duration of a latency, but learning takes 17 of 20 messages.
        assert_eq!(rate(Some(60)), None);
        assert_eq!(rate(None), Some(0.0));
    }

    /// Every fourth of 256 flows moves once, each a message later than the previous one, to the latency of
    /// another fourth.
    #[test]
    fn change_rates_exclude_the_learning_time() {
        let rules = [(Span::from_millis(200), 4, 3), (Span::from_secs(10), 8, 5)];
        for (interval, window, quorum) in rules {
            let world = World {
                slots: 256,
                interval,
                ..World::default()
            };
            let mut settings = Settings::default();
            (settings.detection.window, settings.detection.quorum) = (window, quorum);
            let mut digest = Digest::new(&world.fleet(), settings).unwrap();
            for seq in 0..60_u32 {
                for slot in 0..256 {
                    let has_moved = slot % 4 == 1 && seq >= slot / 4;
                    let base = [70_000_000, 74_000_000][usize::from(has_moved || slot % 4 == 2)];
                    let sent = interval.nanos() * i64::from(seq) + i64::from(slot);
                    let jitter = i64::from((slot * 7 + seq * 13) % 11) * 3000;
                    digest.push(&message(slot, seq, sent, base + jitter));
                }
            }
            digest.finish();
            let view = digest.view();
            let first = settings.detection.learning();
            let mut change_numbers: Vec<i64> = view
                .changes
                .iter()
                .map(|change| change.at.nanos() / interval.nanos())
                .collect();
            change_numbers.sort_unstable();
            change_numbers.truncate(12);
            let expected: Vec<i64> = (first..first + 12).collect();
            assert_eq!(
                change_numbers, expected,
                "none before, and each from there on"
            );
            let pair = &view.pairs[0];
            assert_eq!(pair.hidden.learning, view.learning().times(256));
            assert_eq!(pair.observable_changes(), pair.changes);
        }
    }
}
