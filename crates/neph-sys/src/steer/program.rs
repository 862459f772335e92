//! The program that steers, in the kernel's instructions (Documentation/bpf/standardization).
//!
//! In words: a UDP datagram from one of the peers' ports to a port whose bit is set goes to the
//! socket; everything else goes where it would have gone.

use std::os::fd::{AsRawFd, BorrowedFd};

/// Fields of `struct bpf_sk_lookup` (linux/bpf.h), by their offset.
const PROTOCOL: i16 = 12;
const REMOTE_PORT: i16 = 36;
const LOCAL_PORT: i16 = 60;
/// Functions of the kernel's, by their number.
const MAP_LOOKUP: i32 = 1;
const SK_RELEASE: i32 = 86;
const SK_ASSIGN: i32 = 124;

/// Operation codes.
const LOAD_IMM64: u8 = 0x18;
const LOAD_WORD: u8 = 0x61;
const LOAD_HALF: u8 = 0x69;
const LOAD_BYTE: u8 = 0x71;
const STORE_WORD: u8 = 0x62;
const ADD: u8 = 0x0f;
const ADD_IMM: u8 = 0x07;
const AND_IMM: u8 = 0x57;
const RIGHT: u8 = 0x7f;
const RIGHT_IMM: u8 = 0x77;
const MOVE: u8 = 0xbf;
const MOVE_IMM: u8 = 0xb7;
const JUMP: u8 = 0x05;
const JUMP_EQUAL: u8 = 0x15;
const JUMP_NOT_EQUAL: u8 = 0x55;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// Marks the immediate value of a load as the descriptor of a map.
const MAP_FD: u8 = 1;
/// Registers: the result, the arguments, those that calls keep, the stack's end.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const CONTEXT: u8 = 6;
const PORT: u8 = 7;
const SOCKET: u8 = 8;
const STACK: u8 = 10;
/// Where the key of both maps is.
const KEY: i16 = -4;

/// Instructions under way, and the jumps to the end among them.
#[derive(Default)]
struct Assembly {
    code: Vec<u64>,
    to_end: Vec<usize>,
}

impl Assembly {
    fn put(&mut self, operation: u8, registers: (u8, u8), offset: i16, value: i32) {
        let (to, from) = registers;
        self.code.push(
            u64::from(operation)
                | u64::from(to | from << 4) << 8
                | u64::from(offset.cast_unsigned()) << 16
                | u64::from(value.cast_unsigned()) << 32,
        );
    }

    fn jump_to_end(&mut self, operation: u8, register: u8, value: i32) {
        self.to_end.push(self.code.len());
        self.put(operation, (register, 0), 0, value);
    }

    /// Looks the map's only value up; R0 points at it.
    fn look_up(&mut self, map: BorrowedFd<'_>) {
        self.put(LOAD_IMM64, (R1, MAP_FD), 0, map.as_raw_fd());
        self.put(0, (0, 0), 0, 0);
        self.put(MOVE, (R2, STACK), 0, 0);
        self.put(ADD_IMM, (R2, 0), 0, KEY.into());
        self.put(CALL, (0, 0), 0, MAP_LOOKUP);
        self.jump_to_end(JUMP_EQUAL, R0, 0);
    }

    /// What a program has that lets everything pass, whatever it assigned.
    fn finish(mut self) -> Vec<u64> {
        let end = self.code.len();
        self.put(MOVE_IMM, (R0, 0), 0, 1);
        self.put(EXIT, (0, 0), 0, 0);
        for at in self.to_end {
            // Counted from the instruction behind the jump.
            let distance = u16::try_from(end - at - 1).unwrap_or(u16::MAX);
            self.code[at] |= u64::from(distance) << 16;
        }
        self.code
    }
}

/// See the module.
pub(super) fn program(ports: BorrowedFd<'_>, sockets: BorrowedFd<'_>, peers: &[u16]) -> Vec<u64> {
    let mut program = Assembly::default();
    program.put(MOVE, (CONTEXT, R1), 0, 0);
    program.put(LOAD_WORD, (R2, CONTEXT), PROTOCOL, 0);
    program.jump_to_end(JUMP_NOT_EQUAL, R2, libc::IPPROTO_UDP);
    from_a_peer(&mut program, peers);
    program.put(LOAD_WORD, (PORT, CONTEXT), LOCAL_PORT, 0);
    program.put(STORE_WORD, (STACK, 0), KEY, 0);
    program.look_up(ports);
    program.put(MOVE, (R2, PORT), 0, 0);
    program.put(RIGHT_IMM, (R2, 0), 0, 3);
    // The verifier wants to see that it stays within the map's value.
    program.put(AND_IMM, (R2, 0), 0, 0x1fff);
    program.put(ADD, (R0, R2), 0, 0);
    program.put(LOAD_BYTE, (R3, R0), 0, 0);
    program.put(AND_IMM, (PORT, 0), 0, 7);
    program.put(RIGHT, (R3, PORT), 0, 0);
    program.put(AND_IMM, (R3, 0), 0, 1);
    program.jump_to_end(JUMP_EQUAL, R3, 0);
    program.look_up(sockets);
    program.put(MOVE, (SOCKET, R0), 0, 0);
    program.put(MOVE, (R1, CONTEXT), 0, 0);
    program.put(MOVE, (R2, SOCKET), 0, 0);
    program.put(MOVE_IMM, (R3, 0), 0, 0);
    program.put(CALL, (0, 0), 0, SK_ASSIGN);
    program.put(MOVE, (R1, SOCKET), 0, 0);
    program.put(CALL, (0, 0), 0, SK_RELEASE);
    program.finish()
}

/// Goes on if the datagram comes from one of the peers' ports.
fn from_a_peer(program: &mut Assembly, peers: &[u16]) {
    // In the order of the network.
    program.put(LOAD_HALF, (R2, CONTEXT), REMOTE_PORT, 0);
    for (at, peer) in peers.iter().enumerate() {
        // Over the peers that follow, and the jump behind them.
        let over = i16::try_from(peers.len() - at).unwrap_or(i16::MAX);
        program.put(JUMP_EQUAL, (R2, 0), over, peer.to_be().into());
    }
    program.jump_to_end(JUMP, 0, 0);
}
