//! The program that copies the beginnings of packets.
//!
//! It copies a packet that passes the filter to the free part of the processor's memory, with a
//! timestamp and its length. Then it moves the head of that part. If the part is full, the packet is
//! counted as lost. In all cases the packet goes on, to the next program of others too. Processors
//! share nothing. No program interrupts another one on its processor, since the kernel's network work
//! is not preempted there.

use std::io;
use std::os::fd::BorrowedFd;

use super::assembly::{
    ADD, ADD_IMM, AND_IMM, ATOMIC_LONG, Assembly, JUMP_ABOVE, JUMP_AT_LEAST, JUMP_BELOW,
    JUMP_EQUAL, JUMP_NOT_EQUAL, LEFT_IMM, LOAD_BYTES, LOAD_LONG, LOAD_WORD, Label, MOVE, MOVE_IMM,
    MULTIPLY_IMM, OR, OR_IMM, PROCESSOR, PUT_LONG, PUT_WORD, R0, R1, R2, R3, R4, R7, R8, R9, STACK,
    SUBTRACT, TAI_NANOS,
};
use super::filter::{CONTEXT, filter};
use super::memory::{
    BYTES_AT, CONTROL, HEAD_AT, IS_OUTGOING, IS_TAGGED, IS_WALL, KEPT_AT, LENGTH_AT, LONGEST,
    LOST_AT, NOTE_AT, PROTOCOL_AT, STAMP_AT, Shape, TAIL_AT,
};
use crate::ring::FilterStep;

/// A record, the part of the memory, its head.
const RECORD: u8 = R7;
const PART: u8 = R8;
const HEAD: u8 = R9;

/// Fields of `struct __sk_buff` (linux/bpf.h), by their offset.
const LENGTH: i16 = 0;
const PASSAGE: i16 = 4;
const PROTOCOL: i16 = 16;
const HAS_TAG: i16 = 20;
const TAG_CONTROL: i16 = 24;
const TAG_PROTOCOL: i16 = 28;
const RECEIVED: i16 = 152;

/// What lets the packet go on to the next program.
const NEXT: i32 = -1;
/// Places on the stack.
const KEPT: i16 = -8;
const NOTE: i16 = -16;
/// `BPF_XCHG`.
const EXCHANGE: i32 = 0xe1;

/// Where packets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    Ingress,
    Egress,
}

/// See the module; at most `kept` bytes of a packet.
pub(super) fn program(
    hook: Hook,
    map: BorrowedFd<'_>,
    shape: Shape,
    steps: &[FilterStep],
    snaplen: u32,
) -> io::Result<Vec<u64>> {
    let mut program = Assembly::default();
    let [copy, full, pass] = [(); 3].map(|()| program.label());
    program.put(MOVE, (CONTEXT, R1), 0, 0);
    if !steps.is_empty() {
        filter(&mut program, steps, (copy, pass))?;
    }
    program.define(copy);
    find_room(&mut program, map, shape, full, pass)?;
    stamp(&mut program, hook);
    describe(&mut program);
    copy_bytes(&mut program, number(snaplen)?, pass);
    // A record ends where the next may begin: at a multiple of eight.
    program.put(LOAD_LONG, (R4, STACK), KEPT, 0);
    program.put(ADD_IMM, (R4, 0), 0, i32::from(BYTES_AT) + 7);
    program.put(AND_IMM, (R4, 0), 0, -8);
    program.put(ADD, (HEAD, R4), 0, 0);
    publish(&mut program);
    program.define(pass);
    program.give(NEXT);
    program.define(full);
    program.put(LOAD_LONG, (R1, PART), LOST_AT, 0);
    program.put(ADD_IMM, (R1, 0), 0, 1);
    program.put(PUT_LONG, (PART, R1), LOST_AT, 0);
    program.give(NEXT);
    program.finish()
}

/// Finds the processor's part, and in it where the record goes.
fn find_room(
    program: &mut Assembly,
    map: BorrowedFd<'_>,
    shape: Shape,
    full: Label,
    pass: Label,
) -> io::Result<()> {
    program.call(PROCESSOR);
    program.jump(JUMP_AT_LEAST, R0, number(shape.parts)?, pass);
    program.put(MULTIPLY_IMM, (R0, 0), 0, number(shape.part())?);
    program.value_of(PART, map);
    program.put(ADD, (PART, R0), 0, 0);
    program.put(LOAD_LONG, (HEAD, PART), HEAD_AT, 0);
    program.put(LOAD_LONG, (R1, PART), TAIL_AT, 0);
    program.put(MOVE, (R2, HEAD), 0, 0);
    program.put(SUBTRACT, (R2, R1), 0, 0);
    program.jump(JUMP_ABOVE, R2, number(shape.room - LONGEST)?, full);
    program.put(MOVE, (RECORD, HEAD), 0, 0);
    program.put(AND_IMM, (RECORD, 0), 0, number(shape.room - 1)?);
    program.put(ADD, (RECORD, PART), 0, 0);
    program.put(ADD_IMM, (RECORD, 0), 0, number(CONTROL)?);
    Ok(())
}

/// Writes when the packet passed. If the kernel took a timestamp at arrival, the wall clock counts. Else
/// it is now by atomic time (TAI): the only clock for programs that steps with the wall clock.
fn stamp(program: &mut Assembly, hook: Hook) {
    let stamped = program.label();
    program.put(MOVE_IMM, (R1, 0), 0, 0);
    if hook == Hook::Egress {
        program.put(MOVE_IMM, (R1, 0), 0, IS_OUTGOING);
    }
    program.put(PUT_LONG, (STACK, R1), NOTE, 0);
    if hook == Hook::Ingress {
        let unstamped = program.label();
        program.put(LOAD_LONG, (R0, CONTEXT), RECEIVED, 0);
        program.jump(JUMP_EQUAL, R0, 0, unstamped);
        program.put(MOVE_IMM, (R1, 0), 0, IS_WALL);
        program.put(PUT_LONG, (STACK, R1), NOTE, 0);
        program.go(stamped);
        program.define(unstamped);
    }
    program.call(TAI_NANOS);
    program.define(stamped);
    program.put(PUT_LONG, (RECORD, R0), STAMP_AT, 0);
}

/// Writes the protocol, the tag and how it passed.
fn describe(program: &mut Assembly) {
    let untagged = program.label();
    program.put(LOAD_LONG, (R3, STACK), NOTE, 0);
    // The kernel knows it as 0 to 7.
    program.put(LOAD_WORD, (R2, CONTEXT), PASSAGE, 0);
    program.put(AND_IMM, (R2, 0), 0, 7);
    program.put(LEFT_IMM, (R2, 0), 0, 8);
    program.put(OR, (R3, R2), 0, 0);
    program.put(LOAD_WORD, (R1, CONTEXT), PROTOCOL, 0);
    program.put(LOAD_WORD, (R2, CONTEXT), HAS_TAG, 0);
    program.jump(JUMP_EQUAL, R2, 0, untagged);
    program.put(OR_IMM, (R3, 0), 0, IS_TAGGED);
    program.put(LOAD_WORD, (R2, CONTEXT), TAG_CONTROL, 0);
    program.put(LEFT_IMM, (R2, 0), 0, 16);
    program.put(OR, (R3, R2), 0, 0);
    program.put(LOAD_WORD, (R2, CONTEXT), TAG_PROTOCOL, 0);
    program.put(LEFT_IMM, (R2, 0), 0, 16);
    program.put(OR, (R1, R2), 0, 0);
    program.define(untagged);
    program.put(PUT_WORD, (RECORD, R3), NOTE_AT, 0);
    program.put(PUT_WORD, (RECORD, R1), PROTOCOL_AT, 0);
}

/// Writes the length, and the bytes from the link header on.
fn copy_bytes(program: &mut Assembly, snaplen: i32, pass: Label) {
    let is_short = program.label();
    program.put(LOAD_WORD, (R4, CONTEXT), LENGTH, 0);
    program.put(PUT_WORD, (RECORD, R4), LENGTH_AT, 0);
    program.jump(JUMP_BELOW, R4, snaplen, is_short);
    program.put(MOVE_IMM, (R4, 0), 0, snaplen);
    program.define(is_short);
    program.jump(JUMP_EQUAL, R4, 0, pass);
    program.put(PUT_WORD, (RECORD, R4), KEPT_AT, 0);
    program.put(PUT_LONG, (STACK, R4), KEPT, 0);
    program.put(MOVE, (R1, CONTEXT), 0, 0);
    program.put(MOVE_IMM, (R2, 0), 0, 0);
    program.put(MOVE, (R3, RECORD), 0, 0);
    program.put(ADD_IMM, (R3, 0), 0, BYTES_AT.into());
    program.call(LOAD_BYTES);
    // The packet has its stated length.
    program.jump(JUMP_NOT_EQUAL, R0, 0, pass);
}

/// Moves the head on, behind all that was written.
fn publish(program: &mut Assembly) {
    if cfg!(target_arch = "x86_64") {
        // What a processor writes is seen in its order.
        program.put(PUT_LONG, (PART, HEAD), HEAD_AT, 0);
    } else {
        program.put(ATOMIC_LONG, (PART, HEAD), HEAD_AT, EXCHANGE);
    }
}

fn number(value: u32) -> io::Result<i32> {
    let message = "the memory is too large for a program";
    i32::try_from(value).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, message))
}
