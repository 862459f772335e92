//! Whether standard output was there when the process began.
//!
//! Owns a look at it before anything else runs: where it is closed, Rust's runtime opens `/dev/null`
//! in its place before `main` (so that no other file gets its number), and whatever is written
//! vanishes without an error. Afterwards nothing tells the two apart.

#![expect(
    unsafe_code,
    reason = "a system call before main; each block states why it is sound"
)]

use std::sync::atomic::{AtomicBool, Ordering};

/// A fact about the process that is written once, before `main`, and never changes.
static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section holds functions that the loader calls without waiting for what they return,
// with arguments that C lets a function ignore. This one needs nothing of Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD takes no pointer, and reads a flag of a number that may be closed.
    if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1 {
        WAS_CLOSED.store(true, Ordering::Relaxed);
    }
}

/// Whether standard output was closed when this process began (`>&-`).
#[must_use]
pub fn output_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
