//! Selects a few flows message by message. A view has limited detail. It selects the flows, and a second pass
//! over the messages collects theirs.

use std::collections::BTreeMap;

use neph_model::{FleetMessage, FleetOutcome, Instant, Local, ProbeKind, Slot, Span};

use crate::direction::Direction;
use crate::dissected::{Dissected, DissectedOutcome, DissectedSample};
use crate::order::{Request, is_comparable, is_forward};
use crate::view::FleetView;

/// Maximum number of messages of a flow: the period with the most path changes is kept.
const MAX_MESSAGES: i64 = 6000;
/// A message can be reordered only with one of this many next messages.
const MAX_MESSAGES_AHEAD: usize = 64;

/// Collects the messages of a few flows.
#[derive(Clone, Debug)]
pub struct Dissector {
    probe: ProbeKind,
    selected_flows: BTreeMap<(Slot, u16), SelectedFlow>,
    order: Vec<(Slot, u16)>,
}

#[derive(Clone, Debug)]
struct SelectedFlow {
    from: Instant<Local>,
    until: Instant<Local>,
    messages: Vec<RawMessage>,
}

#[derive(Clone, Copy, Debug)]
struct RawMessage {
    seq: u32,
    sent: Instant<Local>,
    reply: Option<RawReply>,
    failed: bool,
}

#[derive(Clone, Copy, Debug)]
struct RawReply {
    round_trip: Span,
    /// `None` without information on the order of packets.
    order: Option<RawOrder>,
}

#[derive(Clone, Copy, Debug)]
struct RawOrder {
    /// When the reply arrived at the client host.
    arrived: i64,
    /// When its request arrived at the peer, by the peer's clock, and how many requests it had answered
    /// before.
    peer_report: Option<Request>,
}

impl Dissector {
    /// Selects the `flows` flows with the most path changes, in descending order, and of each the period with
    /// the most changes.
    pub fn new(view: &FleetView, flows: usize) -> Self {
        let mut changes: BTreeMap<(Slot, u16), Vec<Instant<Local>>> = view
            .flows
            .iter()
            .map(|flow| ((flow.slot, flow.source_port), Vec::new()))
            .collect();
        for change in &view.changes {
            let key = (change.slot, change.source_port);
            changes.entry(key).or_default().push(change.at);
        }
        let mut ranked: Vec<_> = changes.into_iter().collect();
        ranked.sort_by_key(|((slot, port), moments)| {
            (std::cmp::Reverse(moments.len()), *slot, *port)
        });
        ranked.truncate(flows);
        let order = ranked.iter().map(|(key, _)| *key).collect();
        let selected_flows = ranked.into_iter().map(|(key, moments)| {
            let (from, until) = retained_period(view, &moments);
            let messages = Vec::new();
            (
                key,
                SelectedFlow {
                    from,
                    until,
                    messages,
                },
            )
        });
        Self {
            probe: view.fleet.probe,
            selected_flows: selected_flows.collect(),
            order,
        }
    }

    /// Adds a message of the fleet; those of one flow may be in any order.
    pub fn push(&mut self, message: &FleetMessage) {
        let key = (message.slot, message.source_port);
        let Some(selected) = self.selected_flows.get_mut(&key) else {
            return;
        };
        if message.sent < selected.from || message.sent > selected.until {
            return;
        }
        let reply = message.reply().map(|reply| RawReply {
            round_trip: reply.network(),
            order: is_comparable(self.probe, reply).then(|| RawOrder {
                arrived: (message.sent + reply.round_trip).nanos(),
                peer_report: reply.peer_report.map(|peer| Request {
                    at: peer.rx.nanos(),
                    count: peer.count,
                }),
            }),
        });
        selected.messages.push(RawMessage {
            seq: message.seq,
            sent: message.sent,
            reply,
            failed: message.outcome == FleetOutcome::Failed,
        });
    }

    /// The flows that have messages.
    pub fn finish(mut self) -> Vec<Dissected> {
        let order = std::mem::take(&mut self.order);
        let flow_messages = order.into_iter().filter_map(|key| {
            let selected = self.selected_flows.remove(&key)?;
            Some((key, selected.messages))
        });
        flow_messages
            .filter(|(_, messages)| !messages.is_empty())
            .map(|((slot, source_port), mut messages)| {
                messages.sort_by_key(|raw| (raw.seq, raw.sent));
                let samples = build_samples(&messages);
                Dissected {
                    slot,
                    source_port,
                    samples,
                }
            })
            .collect()
    }
}

/// The period of a flow that is kept: all of it, or the maximum number of messages, with the most changes.
fn retained_period(
    view: &FleetView,
    changes: &[Instant<Local>],
) -> (Instant<Local>, Instant<Local>) {
    let max_period = view.fleet.interval.times(MAX_MESSAGES - 1);
    if view.until - view.from <= max_period {
        return (view.from, view.until);
    }
    // Some time before the first change is shown too.
    let lead_time = Span::from_nanos(max_period.nanos() / 20);
    let count_changes = |from: &Instant<Local>| {
        let end = *from - lead_time + max_period;
        changes.partition_point(|time| *time <= end) - changes.partition_point(|time| time < from)
    };
    let mut max_count: Option<(usize, Instant<Local>)> = None;
    for from in changes {
        let count = count_changes(from);
        if max_count.is_none_or(|(max, _)| count > max) {
            max_count = Some((count, *from));
        }
    }
    let from = max_count.map_or(view.from, |(_, from)| from - lead_time);
    let from = from.max(view.from);
    (from, from + max_period)
}

fn build_samples(messages: &[RawMessage]) -> Vec<DissectedSample> {
    let outcome = |index: usize, raw: &RawMessage| match raw.reply {
        _ if raw.failed => DissectedOutcome::NotSent,
        None => DissectedOutcome::Lost,
        Some(reply) => DissectedOutcome::Reply {
            round_trip: reply.round_trip,
            reordered: reply
                .order
                .and_then(|order| reordered_direction(&order, &messages[index + 1..])),
        },
    };
    let samples = messages
        .iter()
        .enumerate()
        .map(|(index, raw)| DissectedSample {
            sent: raw.sent,
            outcome: outcome(index, raw),
        });
    samples.collect()
}

/// The direction in which it arrived after one of these later messages.
fn reordered_direction(order: &RawOrder, later_messages: &[RawMessage]) -> Option<Direction> {
    let others = || {
        let next_messages = later_messages.iter().take(MAX_MESSAGES_AHEAD);
        next_messages.filter_map(|raw| raw.reply?.order)
    };
    let is_forward_reordered = order.peer_report.is_some_and(|order| {
        let mut others = others().filter_map(|other| other.peer_report);
        others.any(|other| is_forward(order, other))
    });
    if is_forward_reordered {
        return Some(Direction::Forward);
    }
    let is_reverse_reordered = others().any(|other| other.arrived < order.arrived);
    is_reverse_reordered.then_some(Direction::Reverse)
}

#[cfg(test)]
mod tests {
    use neph_model::{Fleet, FleetReply, PeerReport, ReadBy};

    use super::*;
    use crate::{Evidence, FlowTally, PathChange, Settings};

    fn instant(millis: i64) -> Instant<Local> {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Two slots; the path of the second changes at these moments.
    fn view(until: i64, changes: &[i64]) -> FleetView {
        let change = |moment: &i64| PathChange {
            slot: Slot(1),
            source_port: 5001,
            at: instant(*moment),
            reported: instant(*moment),
            before: Span::from_millis(80),
            after: Span::from_millis(70),
            evidence: Evidence::default(),
        };
        FleetView {
            fleet: Fleet {
                probe: ProbeKind::Udp,
                slots: 2,
                endpoints: Vec::new(),
                interval: Span::from_millis(200),
                lifetime: None,
                criteria: None,
            },
            from: instant(0),
            until: instant(until),
            flows: Vec::new(),
            changes: changes.iter().map(change).collect(),
            classes: Vec::new(),
            latency_bins: Vec::new(),
            spectra: Vec::new(),
            settings: Settings::default(),
            tally: FlowTally::default(),
            pairs: Vec::new(),
            dissected: Vec::new(),
            advice: Vec::new(),
        }
    }

    fn message(slot: u32, seq: u32, reply: Option<(i64, u32)>) -> FleetMessage {
        let outcome = reply.map_or(FleetOutcome::Lost, |(millis, count)| {
            FleetOutcome::Reply(FleetReply {
                round_trip: Span::from_millis(millis),
                read_by: ReadBy::Kernel,
                peer_report: Some(PeerReport {
                    // Requests arrive in the order of the peer's counter, which restarts later.
                    rx: Instant::from_nanos(i64::from(seq / 100) * 1_000_000 + i64::from(count)),
                    residence: Span::from_nanos(0),
                    count: Some(count),
                    ttl: None,
                }),
                ttl: None,
                copies: 0,
                answer: None,
            })
        });
        FleetMessage {
            slot: Slot(slot),
            source_port: 5000 + u16::try_from(slot).unwrap(),
            seq,
            sent: instant(i64::from(seq) * 5),
            late: Span::from_nanos(0),
            outcome,
        }
    }

    #[test]
    fn the_flow_with_the_most_changes_is_dissected() {
        let mut dissector = Dissector::new(&view(1000, &[15]), 1);
        // Message 1 arrives after 2 on the forward path, and 4 after 5 on the reverse path.
        let replies = [(80, 0), (80, 2), (70, 1), (70, 3), (90, 4), (70, 5)];
        for (seq, reply) in (0..).zip(replies) {
            dissector.push(&message(0, seq, Some(reply)));
            dissector.push(&message(1, seq, Some(reply)));
        }
        dissector.push(&message(1, 6, None));
        let dissections = dissector.finish();
        assert_eq!((dissections.len(), dissections[0].source_port), (1, 5001));
        let reordered = |sample: &DissectedSample| match sample.outcome {
            DissectedOutcome::Reply { reordered, .. } => reordered,
            DissectedOutcome::Lost | DissectedOutcome::NotSent => None,
        };
        let reordered_samples: Vec<_> = dissections[0].samples.iter().map(reordered).collect();
        let (forward, reverse) = (Some(Direction::Forward), Some(Direction::Reverse));
        assert_eq!(
            reordered_samples,
            [None, forward, None, None, reverse, None, None]
        );
        assert_eq!(dissections[0].samples[6].outcome, DissectedOutcome::Lost);
    }

    #[test]
    fn a_restarted_peer_counter_is_no_reordering() {
        let mut dissector = Dissector::new(&view(20_000, &[15]), 1);
        for seq in 0..200 {
            // The reflector was restarted before the hundredth message.
            dissector.push(&message(1, seq, Some((80, seq % 100))));
        }
        let dissections = dissector.finish();
        let is_reordered = |sample: &DissectedSample| {
            matches!(
                sample.outcome,
                DissectedOutcome::Reply {
                    reordered: Some(_),
                    ..
                }
            )
        };
        assert_eq!(dissections[0].samples.len(), 200);
        assert!(!dissections[0].samples.iter().any(is_reordered));
    }

    #[test]
    fn the_period_with_the_most_changes_of_a_long_flow_is_dissected() {
        let hour = 3_600_000;
        // 6000 messages of 0.2 s take 20 minutes.
        let view = view(
            100 * hour,
            &[hour, 50 * hour, 50 * hour + 60_000, 80 * hour],
        );
        let dissector = Dissector::new(&view, 1);
        let selected = &dissector.selected_flows[&(Slot(1), 5001)];
        assert!(selected.from < instant(50 * hour) && selected.from > instant(49 * hour));
        assert_eq!(
            selected.until - selected.from,
            Span::from_millis(200 * 5999)
        );
    }
}
