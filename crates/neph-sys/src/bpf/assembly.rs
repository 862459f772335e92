//! A program in the kernel's instructions (Documentation/bpf/standardization), with labels.
//!
//! Owns the numbers of operations, and how far jumps go.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Functions of the kernel's, by their number.
pub(crate) const MAP_LOOKUP: i32 = 1;
pub(crate) const PROCESSOR: i32 = 8;
pub(crate) const LOAD_BYTES: i32 = 26;
pub(crate) const SK_RELEASE: i32 = 86;
pub(crate) const SK_ASSIGN: i32 = 124;
pub(crate) const TAI_NANOS: i32 = 208;

/// Operation codes.
const LOAD_IMM64: u8 = 0x18;
pub(crate) const LOAD_WORD: u8 = 0x61;
pub(crate) const LOAD_HALF: u8 = 0x69;
pub(crate) const LOAD_BYTE: u8 = 0x71;
pub(crate) const LOAD_LONG: u8 = 0x79;
pub(crate) const STORE_WORD: u8 = 0x62;
pub(crate) const PUT_WORD: u8 = 0x63;
pub(crate) const PUT_LONG: u8 = 0x7b;
pub(crate) const ATOMIC_LONG: u8 = 0xdb;
pub(crate) const ADD: u8 = 0x0f;
pub(crate) const ADD_IMM: u8 = 0x07;
pub(crate) const SUBTRACT: u8 = 0x1f;
pub(crate) const MULTIPLY_IMM: u8 = 0x27;
pub(crate) const OR: u8 = 0x4f;
pub(crate) const OR_IMM: u8 = 0x47;
pub(crate) const AND_IMM: u8 = 0x57;
pub(crate) const LEFT_IMM: u8 = 0x67;
pub(crate) const RIGHT: u8 = 0x7f;
pub(crate) const RIGHT_IMM: u8 = 0x77;
pub(crate) const MOVE: u8 = 0xbf;
pub(crate) const MOVE_IMM: u8 = 0xb7;
/// On the lower halves of registers; the upper become zero.
pub(crate) const ADD_IMM_32: u8 = 0x04;
pub(crate) const ADD_32: u8 = 0x0c;
pub(crate) const AND_IMM_32: u8 = 0x54;
pub(crate) const LEFT_IMM_32: u8 = 0x64;
pub(crate) const RIGHT_IMM_32: u8 = 0x74;
pub(crate) const MOVE_32: u8 = 0xbc;
pub(crate) const MOVE_IMM_32: u8 = 0xb4;
/// From the order of the network, 16 or 32 bits.
pub(crate) const FROM_NETWORK: u8 = 0xdc;
pub(crate) const JUMP: u8 = 0x05;
pub(crate) const JUMP_EQUAL: u8 = 0x15;
pub(crate) const JUMP_NOT_EQUAL: u8 = 0x55;
pub(crate) const JUMP_ABOVE: u8 = 0x25;
pub(crate) const JUMP_AT_LEAST: u8 = 0x35;
pub(crate) const JUMP_BELOW: u8 = 0xa5;
pub(crate) const JUMP_EQUAL_32: u8 = 0x16;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// Marks the immediate value of a load as the descriptor of a map, or as where its one value is.
const MAP_FD: u8 = 1;
const MAP_VALUE: u8 = 2;

/// Registers: the result, the arguments, those that calls keep, the stack's end.
pub(crate) const R0: u8 = 0;
pub(crate) const R1: u8 = 1;
pub(crate) const R2: u8 = 2;
pub(crate) const R3: u8 = 3;
pub(crate) const R4: u8 = 4;
pub(crate) const R6: u8 = 6;
pub(crate) const R7: u8 = 7;
pub(crate) const R8: u8 = 8;
pub(crate) const R9: u8 = 9;
pub(crate) const STACK: u8 = 10;

/// Where in an instruction its offset is.
const OFFSET: Range<usize> = 2..4;

/// A place in a program, known when it is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// Instructions under way.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    code: Vec<[u8; 8]>,
    /// Where labels were placed.
    places: Vec<usize>,
    jumps: Vec<(usize, Label)>,
}

impl Assembly {
    pub(crate) fn put(&mut self, operation: u8, registers: (u8, u8), offset: i16, value: i32) {
        let (to, from) = registers;
        // `struct bpf_insn`: the two registers are bit fields, which begin where numbers do.
        let registers = if cfg!(target_endian = "little") {
            to | from << 4
        } else {
            to << 4 | from
        };
        let mut instruction = [0; 8];
        instruction[..2].copy_from_slice(&[operation, registers]);
        instruction[OFFSET].copy_from_slice(&offset.to_ne_bytes());
        instruction[4..].copy_from_slice(&value.to_ne_bytes());
        self.code.push(instruction);
    }

    pub(crate) fn label(&mut self) -> Label {
        self.places.push(usize::MAX);
        Label(self.places.len() - 1)
    }

    /// The label is here.
    pub(crate) fn define(&mut self, label: Label) {
        self.places[label.0] = self.code.len();
    }

    /// Jumps where the register compares so with the value.
    pub(crate) fn jump(&mut self, operation: u8, register: u8, value: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.put(operation, (register, 0), 0, value);
    }

    pub(crate) fn go(&mut self, to: Label) {
        self.jump(JUMP, 0, 0, to);
    }

    pub(crate) fn call(&mut self, function: i32) {
        self.put(CALL, (0, 0), 0, function);
    }

    pub(crate) fn map(&mut self, register: u8, map: BorrowedFd<'_>) {
        self.put(LOAD_IMM64, (register, MAP_FD), 0, map.as_raw_fd());
        self.put(0, (0, 0), 0, 0);
    }

    /// Where the one value of the map is.
    pub(crate) fn value_of(&mut self, register: u8, map: BorrowedFd<'_>) {
        self.put(LOAD_IMM64, (register, MAP_VALUE), 0, map.as_raw_fd());
        self.put(0, (0, 0), 0, 0);
    }

    /// Ends with this result.
    pub(crate) fn give(&mut self, result: i32) {
        self.put(MOVE_IMM, (R0, 0), 0, result);
        self.put(EXIT, (0, 0), 0, 0);
    }

    /// The program; an error where a jump goes further than the kernel lets it.
    pub(crate) fn finish(mut self) -> io::Result<Vec<u64>> {
        for (at, label) in self.jumps {
            // Counted from the instruction behind the jump.
            let distance = self.places[label.0].wrapping_sub(at + 1);
            let distance = i16::try_from(distance).map_err(|_| {
                io::Error::new(io::ErrorKind::InvalidInput, "the program is too long")
            })?;
            self.code[at][OFFSET].copy_from_slice(&distance.to_ne_bytes());
        }
        Ok(self.code.into_iter().map(u64::from_ne_bytes).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bpf_instruction_has_the_kernel_layout() {
        let mut program = Assembly::default();
        let end = program.label();
        program.put(LOAD_WORD, (R1, R6), -12, 0x0102_0304);
        program.jump(JUMP_EQUAL, R4, 7, end);
        program.put(MOVE, (R0, R1), 0, 0);
        program.define(end);
        program.give(-1);
        let code = program.finish().expect("short");
        // `__u8 code; __u8 dst_reg:4, src_reg:4; __s16 off; __s32 imm;` on either kind of machine.
        let number = |word: u64| {
            let [code, registers, o0, o1, v0, v1, v2, v3] = word.to_ne_bytes();
            let offset = i16::from_ne_bytes([o0, o1]);
            (
                code,
                registers,
                offset,
                i32::from_ne_bytes([v0, v1, v2, v3]),
            )
        };
        let registers = |to: u8, from: u8| match 1_u16.to_ne_bytes() {
            [1, _] => from << 4 | to,
            _ => to << 4 | from,
        };
        assert_eq!(number(code[0]), (0x61, registers(1, 6), -12, 0x0102_0304));
        assert_eq!(number(code[1]), (0x15, registers(4, 0), 1, 7));
        assert_eq!(number(code[3]), (0xb7, 0, 0, -1));
        assert_eq!(code.len(), 5);
    }

    #[test]
    fn a_jump_that_is_too_far_is_refused() {
        let mut program = Assembly::default();
        let end = program.label();
        program.go(end);
        for _ in 0..=i16::MAX {
            program.put(MOVE, (R0, R1), 0, 0);
        }
        program.define(end);
        assert!(program.finish().is_err());
    }
}
