//! The seccomp filter: installed for all threads of this process.
//!
//! Owns the installation. Which calls pass is in [`super::calls`].

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::io;

use seccompiler::{BpfProgram, sock_filter};

use super::calls::{Extra, program};
use super::{Force, RestrictError};

/// `struct sock_fprog` of linux/filter.h.
#[repr(C)]
struct Program {
    length: libc::c_ushort,
    instructions: *const sock_filter,
}

/// From now on no program that is started can have more privileges than this process.
pub(super) fn forbid_new_privileges() -> Result<(), RestrictError> {
    // SAFETY: PR_SET_NO_NEW_PRIVS takes integers only.
    match unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(RestrictError::last("forbid new privileges")),
    }
}

/// Installs the filter that lets the calls of every command pass, and `extra`.
pub(super) fn install(extra: &[Extra]) -> Result<Force, RestrictError> {
    let program = match program(extra) {
        Ok(program) => program,
        // No table of calls for this kind of processor.
        Err(reason) => return Ok(Force::Off(reason)),
    };
    // Without SPEC_ALLOW kernels before 5.16 switch on a mitigation that slows this process down.
    let all_threads = libc::SECCOMP_FILTER_FLAG_TSYNC;
    let fast = all_threads | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    let outcome = match set(&program, fast) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => set(&program, all_threads),
        outcome => outcome,
    };
    match outcome {
        Ok(0) => Ok(Force::On),
        Ok(thread) => Err(RestrictError::new(
            format!("limit the system calls of thread {thread}"),
            io::ErrorKind::Other,
        )),
        Err(error) => match error.raw_os_error() {
            Some(libc::EINVAL | libc::ENOSYS) => {
                Ok(Force::Off("this kernel has no seccomp filters".to_owned()))
            }
            _ => Err(RestrictError::new("limit system calls", error)),
        },
    }
}

/// Returns 0, or the thread that could not be given the filter.
fn set(program: &BpfProgram, flags: libc::c_ulong) -> io::Result<libc::c_long> {
    let length = libc::c_ushort::try_from(program.len())
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let program = Program {
        length,
        instructions: program.as_ptr(),
    };
    // SAFETY: the kernel copies the program, whose true length is passed and which lives for the call.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    if outcome < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(outcome)
    }
}
