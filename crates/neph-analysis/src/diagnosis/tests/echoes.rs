//! The ICMP echoes of a virtual path.

use neph_model::{FlowIndex, Marks, Message, Outcome, Scenario, Seq};
use neph_stats::Random;

use super::path::{Connection, instant};
use super::stalling::StalledParty;

/// The ICMP echoes in addition to a scenario's messages, five a second.
#[expect(clippy::cast_precision_loss, reason = "small numbers of a test")]
pub(crate) fn echoes(
    connection: &Connection<'_>,
    scenario: &Scenario,
    random: &mut Random,
) -> Vec<Message> {
    let end_ms = scenario.messages as f64 * scenario.interval.millis_f64();
    (0..100_000_u64)
        .map(|seq| (seq, seq as f64 * 200.0))
        .take_while(|(_, at)| *at < end_ms)
        .map(|(seq, due)| {
            let mut marks = Marks::intended_at(instant(due));
            let world = connection.world;
            let wake = |parties: &[StalledParty], at: f64, random: &mut Random| {
                let stalls = world.stalls(parties);
                stalls.map_or(at, |stalling| stalling.wake(at, 200.0, random))
            };
            let client_parties = [StalledParty::ClientLate, StalledParty::ClientSkips];
            let sent = wake(&client_parties, due, random) + 0.01;
            let skipped_queue = connection.queue(sent) * (1.0 - world.echo_queue_share);
            let host_delay = wake(&[StalledParty::Host], sent, random) - sent;
            let round_trip = connection.round_trip_at(sent, random) - skipped_queue + world.icmp_ms;
            let received = sent + host_delay + round_trip;
            (marks.app_send, marks.nic_tx) = (Some(instant(sent)), Some(instant(sent + 0.002)));
            (marks.nic_rx, marks.app_recv) =
                (Some(instant(received)), Some(instant(received + 0.01)));
            let mut message = Message::new(FlowIndex(1), Seq(seq), marks);
            message.outcome = Outcome::Reply;
            message
        })
        .collect()
}
