//! The messages of a world's flows, as a prober tells them.

use neph_model::{FleetMessage, FleetOutcome, FleetReply, Instant, PeerReport, ReadBy, Span};
use neph_stats::Random;

use super::{FleetModel, exponential, seconds};

/// Every message of every flow, in the order of sending; one in five hundred is lost. A jitter of
/// 0.03 ms on average lies above the base latency.
pub(crate) fn messages(fleet_model: &FleetModel) -> Vec<FleetMessage> {
    let (flows, _) = super::history::flows(fleet_model);
    let mut random = Random::new(11);
    let mut messages = Vec::new();
    for tick in 0..fleet_model.seconds * 5 {
        for flow in &flows {
            let offset =
                Span::from_micros(200_000 * i64::from(flow.slot.0) / i64::from(fleet_model.flows));
            let sent = seconds(0.0) + Span::from_millis(tick * 200) + offset;
            let index = flow
                .segments
                .partition_point(|segment| segment.from <= sent);
            let base = flow.segments[index.max(1) - 1].base;
            #[expect(clippy::cast_possible_truncation, reason = "microseconds")]
            let jitter = Span::from_micros(exponential(&mut random, 30.0) as i64);
            let reply = FleetReply {
                round_trip: base + jitter,
                read_by: ReadBy::Kernel,
                peer_report: Some(PeerReport {
                    rx: Instant::from_nanos(sent.nanos() + base.nanos() / 2),
                    residence: Span::from_nanos(0),
                    count: None,
                    ttl: None,
                }),
                ttl: Some(60),
                copies: 0,
                answer: None,
            };
            messages.push(FleetMessage {
                slot: flow.slot,
                source_port: flow.source_port,
                seq: u32::try_from(tick).unwrap(),
                sent,
                late: Span::from_nanos(0),
                outcome: if random.below(500) == 0 {
                    FleetOutcome::Lost
                } else {
                    FleetOutcome::Reply(reply)
                },
            });
        }
    }
    messages
}
