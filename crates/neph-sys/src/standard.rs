//! Whether standard output was open when the process began.
//!
//! Owns a check before anything else runs. If standard output is closed, Rust's runtime opens `/dev/null`
//! instead before `main`, so that no other file gets its number. Output then vanishes without an
//! error. After `main` begins, the two cases cannot be distinguished.

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
