//! The Latency Tester's own columns, for the scripts that people have for them.

use std::io::Write;

use neph_model::{Experiment, FlowIndex, Message};

use crate::{Store, StoreError, WallClock};

/// Their header, byte for byte.
const HEADER: &str = "#client-send-timestamp,server-timestamp,e2e-rtt\n";

/// Writes the replied messages of the main flow of `experiments` as the Latency Tester does:
/// Unix nanoseconds, Unix nanoseconds, milliseconds with 6 decimals. Returns the number of rows.
///
/// The server's time is when its program had read the request, or the nearest mark there is; empty
/// if the peer told none. The round trip is the service time, from dialling or sending on. The
/// format has no place for a message that was lost.
///
/// # Errors
/// What the store cannot read, or `out` does not take.
pub fn export_latency_tester_csv(
    store: &dyn Store,
    experiments: &[Experiment],
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let failed = || StoreError::output("Latency Tester");
    out.write_all(HEADER.as_bytes()).map_err(failed())?;
    let mut rows = 0;
    for experiment in experiments {
        let clock = WallClock::of(experiment);
        store.visit_messages(experiment.id, &mut |batch| {
            for row in batch.iter().filter_map(|message| row(message, &clock)) {
                out.write_all(row.as_bytes()).map_err(failed())?;
                rows += 1;
            }
            Ok(())
        })?;
    }
    out.flush().map_err(failed())?;
    Ok(rows)
}

fn row(message: &Message, clock: &WallClock) -> Option<String> {
    if message.flow != FlowIndex(0) {
        return None;
    }
    let round_trip = message.ledger()?.service_time().nanos();
    let sent = clock.wall(message.marks.begun()?).unix_nanos();
    let peer = &message.marks.peer;
    let server = peer
        .app_rx
        .or(peer.app_tx)
        .or(peer.rx)
        .zip(message.peer_wall_offset)
        .map_or_else(String::new, |(at, offset)| {
            at.nanos().saturating_add(offset).to_string()
        });
    let sign = if round_trip < 0 { "-" } else { "" };
    let (millis, rest) = (
        round_trip.unsigned_abs() / 1_000_000,
        round_trip.unsigned_abs() % 1_000_000,
    );
    Some(format!("{sent},{server},{sign}{millis}.{rest:06}\n"))
}
