//! A connection to the reflector: our framing, HTTP and WebSocket, told apart by their first bytes.
//! However the bytes are cut, the peer gets the same report; caps and budget hold at each step
//! (`neph_probe::fuzzing::answer` says which). The first byte is the size of the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_probe::fuzzing::answer;

#[path = "../checks/pieces.rs"]
mod pieces;

fuzz_target!(|bytes: &[u8]| {
    let Some((piece_size, bytes)) = bytes.split_first() else {
        return;
    };
    let uncut = answer(&[bytes]);
    if *piece_size != 0 {
        assert_eq!(answer(&pieces::cut(*piece_size, bytes)), uncut);
    }
});
