//! Assembles a BPF program: instructions with labels, which become jump distances.
//!
//! Owns the opcodes. A comparison can skip at most 255 instructions, so each jump is a comparison
//! and an unconditional jump.

use super::Instruction;

/// A position in a program, set by [`Builder::place`]. Jumps only go forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(usize);

/// How many bytes to load.
#[derive(Debug, Clone, Copy)]
pub(super) enum Load {
    Byte,
    Half,
    Word,
}

/// An arithmetic operation on the loaded value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    Add,
    And,
    ShiftLeft,
    ShiftRight,
}

/// A comparison with the loaded value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Test {
    Equal,
    Differs,
}

pub(super) const LOAD_WORD: u16 = 0x40;
pub(super) const LOAD_HALF: u16 = 0x48;
pub(super) const LOAD_BYTE: u16 = 0x50;
pub(super) const LOAD_CONSTANT: u16 = 0x00;
pub(super) const LOAD_MEMORY: u16 = 0x60;
pub(super) const STORE: u16 = 0x02;
pub(super) const SET_INDEX: u16 = 0x01;
pub(super) const COPY_TO_INDEX: u16 = 0x07;
pub(super) const ADD: u16 = 0x04;
pub(super) const ADD_INDEX: u16 = 0x0c;
pub(super) const AND: u16 = 0x54;
pub(super) const SHIFT_LEFT: u16 = 0x64;
pub(super) const SHIFT_RIGHT: u16 = 0x74;
pub(super) const GO: u16 = 0x05;
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
pub(super) const GIVE: u16 = 0x06;

#[derive(Debug, Default)]
pub(super) struct Builder {
    steps: Vec<Instruction>,
    /// The position of each label.
    places: Vec<usize>,
    /// Jump instructions and their labels.
    pending_jumps: Vec<(usize, Label)>,
}

impl Builder {
    pub(super) fn labels<const N: usize>(&mut self) -> [Label; N] {
        std::array::from_fn(|_| {
            self.places.push(usize::MAX);
            Label(self.places.len() - 1)
        })
    }

    /// Places the label at the next instruction.
    pub(super) fn define(&mut self, label: Label) {
        self.places[label.0] = self.steps.len();
    }

    /// Loads from this offset after the index; beyond the packet's end the program rejects the
    /// packet.
    pub(super) fn load(&mut self, load: Load, at: u32) {
        let code = match load {
            Load::Byte => LOAD_BYTE,
            Load::Half => LOAD_HALF,
            Load::Word => LOAD_WORD,
        };
        self.step(code, at);
    }

    pub(super) fn constant(&mut self, value: u32) {
        self.step(LOAD_CONSTANT, value);
    }

    pub(super) fn remember(&mut self, index: u32) {
        self.step(STORE, index);
    }

    pub(super) fn recall(&mut self, index: u32) {
        self.step(LOAD_MEMORY, index);
    }

    pub(super) fn calculate(&mut self, operation: Operation, by: u32) {
        let code = match operation {
            Operation::Add => ADD,
            Operation::And => AND,
            Operation::ShiftLeft => SHIFT_LEFT,
            Operation::ShiftRight => SHIFT_RIGHT,
        };
        self.step(code, by);
    }

    pub(super) fn index(&mut self, value: u32) {
        self.step(SET_INDEX, value);
    }

    /// Adds the loaded value to the index.
    pub(super) fn move_index(&mut self) {
        self.step(ADD_INDEX, 0);
        self.step(COPY_TO_INDEX, 0);
    }

    pub(super) fn jump(&mut self, test: Test, value: u32, to: Label) {
        let (jt, jf) = match test {
            Test::Equal => (0, 1),
            Test::Differs => (1, 0),
        };
        self.steps.push(Instruction {
            code: JUMP_IF_EQUAL,
            jt,
            jf,
            k: value,
        });
        self.go(to);
    }

    pub(super) fn go(&mut self, to: Label) {
        self.pending_jumps.push((self.steps.len(), to));
        self.step(GO, 0);
    }

    /// Ends the program and accepts this many bytes.
    pub(super) fn give(&mut self, snaplen: u32) {
        self.step(GIVE, snaplen);
    }

    pub(super) fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.pending_jumps {
            let distance = self.places[label.0] - (at + 1);
            self.steps[at].k = u32::try_from(distance).expect("a program of some hundred steps");
        }
        self.steps
    }

    fn step(&mut self, code: u16, k: u32) {
        self.steps.push(Instruction {
            code,
            jt: 0,
            jf: 0,
            k,
        });
    }
}
