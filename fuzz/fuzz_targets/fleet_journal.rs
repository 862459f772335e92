//! Journals of fleets. Frames of any bytes under right checksums, followed by any others: what reads
//! back is a prefix, and survives being written again. Pieces of the input behind their length (16
//! bits) are the frames, the rest is the tail.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_journal::fleet_fuzzing::{check_complete, framed};

#[path = "../checks/folder.rs"]
mod folder;

fuzz_target!(|bytes: &[u8]| {
    let folder = folder::path();
    check_complete(&folder, bytes);
    let (mut payloads, mut tail) = (Vec::new(), bytes);
    while let Some((length, remaining)) = tail.split_first_chunk::<2>()
        && let Some((payload, remaining)) =
            remaining.split_at_checked(u16::from_le_bytes(*length).into())
    {
        payloads.push(payload);
        tail = remaining;
    }
    framed(&folder, &payloads, tail);
});
