//! The program that steers, in the kernel's instructions (Documentation/bpf/standardization).
//!
//! In words: a UDP datagram from one of the peers' ports to a port whose bit is set goes to the
//! socket; everything else goes where it would have gone.

use std::io;
use std::os::fd::BorrowedFd;

use crate::bpf::assembly::{
    ADD, ADD_IMM, AND_IMM, Assembly, JUMP_EQUAL, JUMP_NOT_EQUAL, LOAD_BYTE, LOAD_HALF, LOAD_WORD,
    Label, MAP_LOOKUP, MOVE, MOVE_IMM, R0, R1, R2, R3, R6, R7, R8, RIGHT, RIGHT_IMM, SK_ASSIGN,
    SK_RELEASE, STACK, STORE_WORD,
};

/// Fields of `struct bpf_sk_lookup` (linux/bpf.h), by their offset.
const PROTOCOL: i16 = 12;
const REMOTE_PORT: i16 = 36;
const LOCAL_PORT: i16 = 60;
const CONTEXT: u8 = R6;
const PORT: u8 = R7;
const SOCKET: u8 = R8;
/// Where the key of both maps is.
const KEY: i16 = -4;

/// The return value that lets every packet pass, with or without an assigned socket.
const PASS: i32 = 1;

/// Looks the map's only value up; R0 points at it.
fn look_up(program: &mut Assembly, map: BorrowedFd<'_>, end: Label) {
    program.map(R1, map);
    program.put(MOVE, (R2, STACK), 0, 0);
    program.put(ADD_IMM, (R2, 0), 0, KEY.into());
    program.call(MAP_LOOKUP);
    program.jump(JUMP_EQUAL, R0, 0, end);
}

/// See the module.
pub(super) fn program(
    ports: BorrowedFd<'_>,
    sockets: BorrowedFd<'_>,
    peers: &[u16],
) -> io::Result<Vec<u64>> {
    let mut program = Assembly::default();
    let end = program.label();
    program.put(MOVE, (CONTEXT, R1), 0, 0);
    program.put(LOAD_WORD, (R2, CONTEXT), PROTOCOL, 0);
    program.jump(JUMP_NOT_EQUAL, R2, libc::IPPROTO_UDP, end);
    from_a_peer(&mut program, peers, end);
    program.put(LOAD_WORD, (PORT, CONTEXT), LOCAL_PORT, 0);
    program.put(STORE_WORD, (STACK, 0), KEY, 0);
    look_up(&mut program, ports, end);
    program.put(MOVE, (R2, PORT), 0, 0);
    program.put(RIGHT_IMM, (R2, 0), 0, 3);
    // The verifier wants to see that it stays within the map's value.
    program.put(AND_IMM, (R2, 0), 0, 0x1fff);
    program.put(ADD, (R0, R2), 0, 0);
    program.put(LOAD_BYTE, (R3, R0), 0, 0);
    program.put(AND_IMM, (PORT, 0), 0, 7);
    program.put(RIGHT, (R3, PORT), 0, 0);
    program.put(AND_IMM, (R3, 0), 0, 1);
    program.jump(JUMP_EQUAL, R3, 0, end);
    look_up(&mut program, sockets, end);
    program.put(MOVE, (SOCKET, R0), 0, 0);
    program.put(MOVE, (R1, CONTEXT), 0, 0);
    program.put(MOVE, (R2, SOCKET), 0, 0);
    program.put(MOVE_IMM, (R3, 0), 0, 0);
    program.call(SK_ASSIGN);
    program.put(MOVE, (R1, SOCKET), 0, 0);
    program.call(SK_RELEASE);
    program.define(end);
    program.give(PASS);
    program.finish()
}

/// Goes on if the datagram comes from one of the peers' ports.
fn from_a_peer(program: &mut Assembly, peers: &[u16], end: Label) {
    // In the order of the network.
    program.put(LOAD_HALF, (R2, CONTEXT), REMOTE_PORT, 0);
    for (at, peer) in peers.iter().enumerate() {
        // Over the peers that follow, and the jump behind them.
        let over = i16::try_from(peers.len() - at).unwrap_or(i16::MAX);
        program.put(JUMP_EQUAL, (R2, 0), over, peer.to_be().into());
    }
    program.go(end);
}
