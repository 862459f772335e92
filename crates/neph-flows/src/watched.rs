//! For how long flows were watched, and of what part of it rates of path changes are: not of the time
//! of a queue that all flows shared ([`Blind`]), and not of that at the beginning of each flow in
//! which its level is learnt. Counts time and changes; finds neither.

use neph_model::{Fleet, Instant, Own, Span};

use crate::blind::Blind;
use crate::pair::Hidden;
use crate::settings::Settings;
use crate::view::{FlowHistory, PathChange};

/// Some flows, and when changes of them are told.
#[derive(Debug)]
pub(crate) struct Telling<'a> {
    flows: &'a [&'a FlowHistory],
    blind: Blind,
    /// From a flow's beginning until a change of it can be told.
    learning: Span,
    /// What was before is forgotten: a flow that is known from then on began earlier.
    horizon: Option<Instant<Own>>,
}

impl<'a> Telling<'a> {
    /// Flows by lane, then by time, each of which had a base latency; `queues` in the order of time;
    /// before the horizon nothing is known.
    pub(crate) fn new(
        flows: &'a [&'a FlowHistory],
        queues: &[(Instant<Own>, Instant<Own>)],
        fleet: &Fleet,
        settings: &Settings,
        horizon: Option<Instant<Own>>,
    ) -> Self {
        let rule = settings.detection;
        Self {
            flows,
            blind: Blind::new(queues, fleet.interval.times(rule.window.into())),
            learning: fleet.interval.times(rule.learning()),
            horizon,
        }
    }

    /// How long the flows were watched, and what no rate is of.
    pub(crate) fn watched(&self, changes: &[&PathChange]) -> (Span, Hidden) {
        let is_hidden = |change: &&&PathChange| !self.counts(change);
        let (mut watched, mut hidden) = (Span::ZERO, Hidden::default());
        hidden.changes = changes.iter().filter(is_hidden).count() as u64;
        for flow in self.flows {
            let (Some(begin), Some(last)) = (begin(flow), flow.segments.last()) else {
                continue;
            };
            let learnt = self.learnt(begin).min(last.until);
            watched += last.until - begin;
            hidden.time += self.blind.within(begin, last.until);
            hidden.learning += learnt - begin - self.blind.within(begin, learnt);
        }
        (watched, hidden)
    }

    /// Whether a change of these flows is in the time that rates are of.
    pub(crate) fn counts(&self, change: &PathChange) -> bool {
        let moment = (change.lane, Some(change.at));
        let next = self
            .flows
            .partition_point(|flow| (flow.lane, begin(flow)) <= moment);
        let flow = next.checked_sub(1).map(|index| self.flows[index]);
        let is_learnt = flow
            .and_then(begin)
            .is_none_or(|begin| self.learnt(begin) <= change.at);
        is_learnt && !self.blind.hides(change.at)
    }

    /// From when on changes of a flow are told that began then.
    fn learnt(&self, begin: Instant<Own>) -> Instant<Own> {
        if Some(begin) <= self.horizon {
            return begin;
        }
        // Nothing is learnt in a queue.
        self.blind.over(begin) + self.learning
    }
}

/// When a flow's first base latency began.
fn begin(flow: &FlowHistory) -> Option<Instant<Own>> {
    flow.segments.first().map(|segment| segment.from)
}

/// Whether flows lived too short for a path change of theirs to be told, had there been one.
pub(crate) fn is_too_short(fleet: &Fleet, settings: &Settings, measured: Span) -> bool {
    let life = fleet
        .renewal
        .map_or(measured, |renewal| renewal.min(measured));
    let rule = settings.detection;
    // A window, most of them of the new latency, tells it, and one is not enough where they jitter.
    let tell = i64::from(rule.window) + i64::from(rule.quorum);
    life < fleet.interval.times(rule.learning() + tell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::world::{World, message};

    const SECOND: i64 = 1_000_000_000;

    /// Ten messages a flow: a network that throws flows about would show none of it.
    #[test]
    fn flows_too_short_for_path_changes_have_no_rate() {
        let rate = |renewal: Option<i64>| {
            let world = World::default();
            let mut fleet = world.fleet();
            (fleet.interval, fleet.renewal) = (Span::from_secs(3), renewal.map(Span::from_secs));
            let mut digest = Digest::new(&fleet, Settings::default()).unwrap();
            for second in (0..120).step_by(3) {
                let flow = renewal.map_or(0, |renewal| second / renewal);
                let seq = second % renewal.unwrap_or(120) / 3;
                for lane in 0..64 {
                    let base = 70_000_000 + i64::from(lane) % 4 * 4_000_000;
                    let seq = u32::try_from(seq).unwrap();
                    let mut message = message(lane, seq, second * SECOND, base);
                    message.source_port += u16::try_from(flow * 100).unwrap();
                    digest.push(&message);
                }
            }
            digest.finish();
            digest.view().pairs[0].changes_per_flow_hour()
        };
        assert_eq!(rate(Some(30)), None);
        // Longer than a latency has to last, and its flows' first levels are learnt for 17 of 20 messages.
        assert_eq!(rate(Some(60)), None);
        assert_eq!(rate(None), Some(0.0));
    }

    /// Every fourth of 256 flows moves once, each a message later than the one before it, to where
    /// another fourth is.
    #[test]
    fn rates_are_of_the_time_from_the_first_message_on_that_a_change_can_begin_with() {
        let rules = [(Span::from_millis(200), 4, 3), (Span::from_secs(10), 8, 5)];
        for (interval, window, quorum) in rules {
            let world = World {
                lanes: 256,
                interval,
                ..World::default()
            };
            let mut settings = Settings::default();
            (settings.detection.window, settings.detection.quorum) = (window, quorum);
            let mut digest = Digest::new(&world.fleet(), settings).unwrap();
            for seq in 0..60_u32 {
                for lane in 0..256 {
                    let moved = lane % 4 == 1 && seq >= lane / 4;
                    let base = [70_000_000, 74_000_000][usize::from(moved || lane % 4 == 2)];
                    let sent = interval.nanos() * i64::from(seq) + i64::from(lane);
                    let jitter = i64::from((lane * 7 + seq * 13) % 11) * 3000;
                    digest.push(&message(lane, seq, sent, base + jitter));
                }
            }
            digest.finish();
            let view = digest.view();
            let first = settings.detection.learning();
            let mut told: Vec<i64> = view
                .changes
                .iter()
                .map(|change| change.at.nanos() / interval.nanos())
                .collect();
            told.sort_unstable();
            told.truncate(12);
            let wanted: Vec<i64> = (first..first + 12).collect();
            assert_eq!(told, wanted, "none before, and each from there on");
            let pair = &view.pairs[0];
            assert_eq!(pair.hidden.learning, view.learning().times(256));
            assert_eq!(pair.clear_changes(), pair.changes);
        }
    }
}
