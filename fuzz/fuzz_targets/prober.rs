//! What the asking side understands of a server's bytes, on each kind of connection. However the
//! bytes are cut, it understands the same, and a hostile server makes it send no more than a little
//! (`neph_probe::fuzzing::ask` says how much). The first byte chooses the kind, the second the size
//! of the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_probe::fuzzing::{Peer, ask};

#[path = "../checks/pieces.rs"]
mod pieces;

const KINDS: [(&str, Peer); 5] = [
    ("ws://h/", Peer::Reflector),
    ("ws://h/", Peer::ThirdParty),
    ("http://h/", Peer::Reflector),
    ("http://h/", Peer::ThirdParty),
    ("tcp://h:1", Peer::Reflector),
];

fuzz_target!(|bytes: &[u8]| {
    let [kind, piece_size, bytes @ ..] = bytes else {
        return;
    };
    let (target, peer) = KINDS[usize::from(*kind) % KINDS.len()];
    let uncut = ask(target, peer, &[bytes]).expect("a kind with a protocol");
    if *piece_size != 0 {
        assert_eq!(
            ask(target, peer, &pieces::cut(*piece_size, bytes)),
            Some(uncut)
        );
    }
});
