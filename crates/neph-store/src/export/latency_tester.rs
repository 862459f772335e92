//! The Latency Tester's columns, for existing scripts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;

use neph_model::{Experiment, FlowIndex, Message};

use crate::{Store, StoreError, WallClock};

/// The Latency Tester's header, byte for byte.
const HEADER: &str = "#client-send-timestamp,server-timestamp,e2e-rtt\n";

/// Writes the replied messages of the main flow of `experiment` in the Latency Tester's format, in
/// the order of the replies. Columns: Unix nanoseconds, Unix nanoseconds, milliseconds with 6
/// decimals. Returns the number of rows. One file per experiment: rows do not identify it.
///
/// The server's time is when its application had read the request, or the nearest timestamp that
/// exists; empty without any. The RTT is the service time, from dialling or sending. The format has
/// no lost messages.
///
/// # Errors
/// The store cannot be read, or `out` cannot be written.
pub fn export_latency_tester_csv(
    store: &dyn Store,
    experiment: &Experiment,
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let output_error = || StoreError::output("Latency Tester");
    out.write_all(HEADER.as_bytes()).map_err(output_error())?;
    let mut rows = 0;
    let clock = WallClock::of(experiment);
    let mut waiting_rows: BinaryHeap<Reverse<Row>> = BinaryHeap::new();
    store.visit_messages(experiment.id, &mut |batch| {
        for row in batch
            .iter()
            .filter_map(|message| build_row(message, &clock))
        {
            // Messages come by send time: no later one has a reply before this send time.
            while let Some(Reverse(earliest)) = waiting_rows.peek()
                && earliest.received <= row.sent
            {
                out.write_all(earliest.text.as_bytes())
                    .map_err(output_error())?;
                waiting_rows.pop();
            }
            waiting_rows.push(Reverse(row));
            rows += 1;
        }
        Ok(())
    })?;
    while let Some(Reverse(row)) = waiting_rows.pop() {
        out.write_all(row.text.as_bytes()).map_err(output_error())?;
    }
    out.flush().map_err(output_error())?;
    Ok(rows)
}

/// A line, ordered by the arrival of its reply.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    received: i64,
    sent: i64,
    text: String,
}

fn build_row(message: &Message, clock: &WallClock) -> Option<Row> {
    if message.flow != FlowIndex(0) {
        return None;
    }
    let round_trip = message.ledger()?.service_time().nanos();
    let sent = clock.wall(message.marks.first_action()?).unix_nanos();
    let peer = &message.marks.peer;
    let server_time = peer
        .app_rx
        .or(peer.app_tx)
        .or(peer.rx)
        .zip(message.peer_wall_offset)
        .map_or_else(String::new, |(at, offset)| {
            at.nanos().saturating_add(offset).to_string()
        });
    let sign = if round_trip < 0 { "-" } else { "" };
    let (millis, submillis) = (
        round_trip.unsigned_abs() / 1_000_000,
        round_trip.unsigned_abs() % 1_000_000,
    );
    Some(Row {
        received: sent.saturating_add(round_trip),
        sent,
        text: format!("{sent},{server_time},{sign}{millis}.{submillis:06}\n"),
    })
}
