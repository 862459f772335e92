//! A filter of classic BPF as part of a program.
//!
//! Owns the translation, step by step. The kernel's own loads of classic BPF end the whole program where
//! a packet is too short, and with it later programs of others. Here a load is a call that returns the
//! error.

use std::io;

use super::assembly::{
    ADD_32, ADD_IMM, ADD_IMM_32, AND_IMM_32, Assembly, FROM_NETWORK, JUMP_EQUAL_32, JUMP_NOT_EQUAL,
    LEFT_IMM_32, LOAD_BYTE, LOAD_BYTES, LOAD_HALF, LOAD_WORD, Label, MOVE, MOVE_32, MOVE_IMM,
    MOVE_IMM_32, PUT_WORD, R0, R1, R2, R3, R4, R6, R7, R8, RIGHT_IMM_32, STACK,
};
use crate::ring::FilterStep;

/// The packet, in all of the program.
pub(super) const CONTEXT: u8 = R6;
/// Classic BPF's accumulator and index.
const A: u8 = R7;
const X: u8 = R8;
/// On the stack: what a load gives, and the sixteen words to remember.
const LOADED: i16 = -8;
const MEMORY: i16 = -80;

/// Goes to `accept` for packets of which the filter keeps something, to `reject` for others.
pub(super) fn filter(
    program: &mut Assembly,
    steps: &[FilterStep],
    (accept, reject): (Label, Label),
) -> io::Result<()> {
    let places: Vec<Label> = steps.iter().map(|_| program.label()).collect();
    let label = |at: usize| places.get(at).copied().ok_or_else(unknown);
    // The verifier refuses what cannot be reached. Jumps only go forwards.
    let mut is_reached = vec![false; steps.len() + 1];
    is_reached[0] = true;
    for (at, step) in steps.iter().enumerate() {
        if !is_reached[at] {
            continue;
        }
        program.define(places[at]);
        let next = at + 1;
        let to = match step.code {
            // JA, JEQ, RET
            0x05 => vec![next + step.k as usize],
            0x15 => [step.jt, step.jf]
                .map(|skip| next + usize::from(skip))
                .to_vec(),
            0x06 => Vec::new(),
            _ => vec![next],
        };
        for reached in &to {
            *is_reached.get_mut(*reached).ok_or_else(unknown)? = true;
        }
        match step.code {
            0x05 => program.go(label(to[0])?),
            0x15 => {
                program.jump(JUMP_EQUAL_32, A, step.k.cast_signed(), label(to[0])?);
                program.go(label(to[1])?);
            }
            0x06 => program.go(if step.k == 0 { reject } else { accept }),
            _ => calculate(program, *step, reject)?,
        }
    }
    // A filter does not run over its end.
    if is_reached[steps.len()] {
        Err(unknown())
    } else {
        Ok(())
    }
}

/// A step that the next one follows.
fn calculate(program: &mut Assembly, step: FilterStep, reject: Label) -> io::Result<()> {
    let k = step.k.cast_signed();
    match step.code {
        // LD IND
        0x40 => load(program, k, LOAD_WORD, 4, reject),
        0x48 => load(program, k, LOAD_HALF, 2, reject),
        0x50 => load(program, k, LOAD_BYTE, 1, reject),
        // LD IMM, LD MEM, ST
        0x00 => program.put(MOVE_IMM_32, (A, 0), 0, k),
        0x60 => program.put(LOAD_WORD, (A, STACK), remembered(step.k)?, 0),
        0x02 => program.put(PUT_WORD, (STACK, A), remembered(step.k)?, 0),
        // LDX IMM, TAX
        0x01 => program.put(MOVE_IMM_32, (X, 0), 0, k),
        0x07 => program.put(MOVE_32, (X, A), 0, 0),
        0x04 => program.put(ADD_IMM_32, (A, 0), 0, k),
        0x0c => program.put(ADD_32, (A, X), 0, 0),
        0x54 => program.put(AND_IMM_32, (A, 0), 0, k),
        0x64 => program.put(LEFT_IMM_32, (A, 0), 0, k),
        0x74 => program.put(RIGHT_IMM_32, (A, 0), 0, k),
        _ => return Err(unknown()),
    }
    Ok(())
}

/// Loads from so far behind the index.
fn load(program: &mut Assembly, at: i32, operation: u8, bytes: i32, reject: Label) {
    program.put(MOVE, (R1, CONTEXT), 0, 0);
    program.put(MOVE_32, (R2, X), 0, 0);
    program.put(ADD_IMM_32, (R2, 0), 0, at);
    program.put(MOVE, (R3, STACK), 0, 0);
    program.put(ADD_IMM, (R3, 0), 0, LOADED.into());
    program.put(MOVE_IMM, (R4, 0), 0, bytes);
    program.call(LOAD_BYTES);
    program.jump(JUMP_NOT_EQUAL, R0, 0, reject);
    program.put(operation, (A, STACK), LOADED, 0);
    if bytes > 1 {
        program.put(FROM_NETWORK, (A, 0), 0, bytes * 8);
    }
}

fn remembered(number: u32) -> io::Result<i16> {
    let number = i16::try_from(number).ok().filter(|number| *number < 16);
    Ok(MEMORY + 4 * number.ok_or_else(unknown)?)
}

fn unknown() -> io::Error {
    let message = "a step of the filter has no translation";
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
