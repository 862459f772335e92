//! bpf(2): programs that the kernel runs for us, their maps, and their links.
//!
//! Owns the system call. What a program does stands where it is used: [`crate::steer`] and [`Copier`].
//! A link goes away with its descriptor, so that a process that is killed leaves nothing behind.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

pub(crate) mod assembly;
mod copier;
mod copying;
mod filter;
mod memory;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub use copier::{Copier, CopyProgress, Copying, MAX_MEMORY};
pub use memory::{Fill, MAX_KEPT};

/// Commands of bpf(2) (linux/bpf.h).
pub(crate) const MAP_CREATE: libc::c_long = 0;
pub(crate) const MAP_UPDATE: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
pub(crate) const LINK_CREATE: libc::c_long = 28;
/// A kind of map.
pub(crate) const ARRAY: u32 = 2;

/// Size of the verifier's log for a program; the log is seldom longer.
const LOG_BYTES: u32 = 1 << 20;

/// The argument of bpf(2): a union of structures, here as bytes.
pub(crate) struct Attributes([u8; 128]);

impl Attributes {
    pub(crate) const fn new() -> Self {
        Self([0; 128])
    }

    pub(crate) fn word(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn long(mut self, at: usize, value: u64) -> Self {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    pub(crate) fn fd(self, at: usize, fd: BorrowedFd<'_>) -> Self {
        self.word(at, fd.as_raw_fd().cast_unsigned())
    }

    /// Where `value` is. It must live as long as the call.
    pub(crate) fn pointer<T: ?Sized>(self, at: usize, value: *const T) -> Self {
        self.long(at, value.cast::<u8>() as u64)
    }

    /// # Safety
    /// Pointers that were written must point at what the command reads or writes, alive for the call.
    pub(crate) unsafe fn call(&self, command: libc::c_long) -> io::Result<libc::c_int> {
        // SAFETY: the kernel reads the attributes, whose true size is passed; the caller guarantees the
        // pointers in them.
        let outcome =
            unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_ptr(), self.0.len()) };
        libc::c_int::try_from(outcome)
            .ok()
            .filter(|outcome| *outcome >= 0)
            .ok_or_else(io::Error::last_os_error)
    }

    /// # Safety
    /// As [`Self::call`], with a command that returns a new descriptor.
    pub(crate) unsafe fn open(&self, command: libc::c_long) -> io::Result<OwnedFd> {
        // SAFETY: the caller vouches for the pointers.
        let fd = unsafe { self.call(command)? };
        // SAFETY: the descriptor was just made and has no other owner.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// A map with one value.
pub(crate) fn create_map(kind: u32, value_size: u32, flags: u32) -> io::Result<OwnedFd> {
    let attributes = Attributes::new()
        .word(0, kind)
        .word(4, 4)
        .word(8, value_size)
        .word(12, 1)
        .word(16, flags);
    // SAFETY: no pointer is passed.
    unsafe { attributes.open(MAP_CREATE) }
}

/// The kind of a program, and its attachment point, if that is passed at load time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) program: u32,
    pub(crate) attach: u32,
}

/// Hands the program to the kernel. Where its verifier refuses it the error has the verifier's last word.
pub(crate) fn load(kind: Kind, instructions: &[u64]) -> io::Result<OwnedFd> {
    let attempt = |log: &mut [u8]| {
        let license = c"GPL";
        let attributes = Attributes::new()
            .word(0, kind.program)
            .word(4, u32::try_from(instructions.len()).unwrap_or(u32::MAX))
            .pointer(8, instructions.as_ptr())
            .pointer(16, license.as_ptr())
            .word(68, kind.attach);
        let attributes = match u32::try_from(log.len()).unwrap_or(0) {
            0 => attributes,
            room => (attributes.word(24, 1).word(28, room)).pointer(32, log.as_ptr()),
        };
        // SAFETY: instructions, license and log live for the call; their sizes are passed (the license
        // ends with a zero). The log was borrowed to be written.
        unsafe { attributes.open(PROG_LOAD) }
    };
    let refused = match attempt(&mut []) {
        Ok(program) => return Ok(program),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
        Err(error) => error,
    };
    let mut log = vec![0; LOG_BYTES as usize];
    // Its log is wanted, not its success.
    let _ = attempt(&mut log);
    let log = String::from_utf8_lossy(&log);
    let mut printed = log.trim_end_matches('\0').lines();
    let last = printed.rfind(|line| !line.starts_with("processed"));
    Err(match last {
        Some(last) => io::Error::new(refused.kind(), format!("{refused} ({last})")),
        None => refused,
    })
}
