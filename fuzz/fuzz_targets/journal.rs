//! Journals. Records of any bytes under right checksums, followed by any others: what reads back is
//! a prefix, what it tells can be written again, and its ledgers add up. Pieces of the input behind
//! their length (16 bits) are the records, the rest is the tail.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_journal::fuzzing::{check_complete, framed};
use neph_model::Message;

#[path = "../checks/folder.rs"]
mod folder;

/// Sums of differences of such times fit into 64 bits. Beyond, arithmetic saturates.
const MAX_EXACT_NANOS: u64 = 1 << 57;

fuzz_target!(|bytes: &[u8]| {
    let path = folder::path().join("x.journal");
    check_complete(&path, bytes);
    let (mut payloads, mut tail) = (Vec::new(), bytes);
    while let Some((length, remaining)) = tail.split_first_chunk::<2>()
        && let Some((payload, remaining)) =
            remaining.split_at_checked(u16::from_le_bytes(*length).into())
    {
        payloads.push(payload);
        tail = remaining;
    }
    for message in framed(&path, &payloads, tail) {
        assert_ledger_sum(&message);
    }
});

fn assert_ledger_sum(message: &Message) {
    let Some(ledger) = message.ledger() else {
        return;
    };
    let sum = ledger
        .entries()
        .iter()
        .map(|entry| i128::from(entry.time().nanos()))
        .sum::<i128>();
    let times = ledger.entries().iter().map(|entry| entry.time().nanos());
    let response_time = ledger.response_time().nanos();
    if times
        .chain([response_time])
        .all(|nanos| nanos.unsigned_abs() < MAX_EXACT_NANOS)
    {
        assert_eq!(sum, i128::from(response_time), "{message:?}");
    }
}
