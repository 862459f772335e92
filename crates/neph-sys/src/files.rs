//! How many files this process may have open at the same time.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::fs;
use std::io;

/// Flag of open(2): a symbolic link is not followed, and an error.
pub const NO_FOLLOW: i32 = libc::O_NOFOLLOW;

/// Raises this process's limit on open files as far as it may go itself (`RLIMIT_NOFILE`, from the
/// soft to the hard limit); returns how many more it can open then.
///
/// # Errors
/// None known on Linux.
pub fn raise_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: getrlimit writes one rlimit, alive for the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: setrlimit reads one rlimit, alive for the call.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // The one that is open for reading this counts as well.
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    Ok(limit.rlim_cur.saturating_sub(open))
}

/// Whether the error means that the process, or the whole system, has reached its limit of open files
/// (`EMFILE`, `ENFILE`).
pub fn is_limit(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_file_limits_are_distinguished_from_other_errors() {
        let is_limit_code = |code| is_limit(&io::Error::from_raw_os_error(code));
        assert!(is_limit_code(libc::EMFILE) && is_limit_code(libc::ENFILE));
        assert!(!is_limit_code(libc::EADDRINUSE) && !is_limit(&io::ErrorKind::Other.into()));
    }

    #[test]
    fn opening_files_fails_exactly_at_the_limit() {
        let more = raise_limit().expect("a limit");
        assert!(more > 0);
        assert!(raise_limit().expect("a limit").abs_diff(more) < 100);
    }
}
