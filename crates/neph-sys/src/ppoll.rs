//! Waiting for descriptors with a timeout in nanoseconds.
//!
//! Owns `ppoll`. Does not own the descriptors, and keeps no state between calls.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use crate::deadline::Deadline;

/// A descriptor to wait for until it can be read, and what came of it.
#[derive(Debug)]
#[repr(transparent)]
pub struct Awaited(libc::pollfd);

impl Awaited {
    /// Waits until `fd` is readable. The descriptor must stay open as long as this value is used;
    /// a closed one is reported as gone, never as readable.
    pub fn readable(fd: BorrowedFd<'_>) -> Self {
        Self(libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
    }

    /// Waits until `fd` is readable or can be written to. The descriptor must stay open likewise.
    pub fn readable_or_writable(fd: BorrowedFd<'_>) -> Self {
        Self(libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN | libc::POLLOUT,
            revents: 0,
        })
    }

    /// Waits until `fd` can be written to, even if there is data to read.
    pub fn writable(fd: BorrowedFd<'_>) -> Self {
        Self(libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLOUT,
            revents: 0,
        })
    }

    /// Whether the last wait found room to write.
    pub fn is_writable(&self) -> bool {
        self.0.revents & libc::POLLOUT != 0
    }

    /// Whether the last wait found something in the error queue: send timestamps, or a fault.
    pub fn has_notice(&self) -> bool {
        self.0.revents & libc::POLLERR != 0
    }

    /// Whether the last wait found anything at all.
    pub fn has_something(&self) -> bool {
        self.0.revents != 0
    }

    /// Whether the last wait found something to read.
    pub fn is_readable(&self) -> bool {
        self.0.revents & libc::POLLIN != 0
    }

    /// Whether the last wait found both directions closed.
    pub fn is_hung_up(&self) -> bool {
        self.0.revents & (libc::POLLHUP | libc::POLLNVAL) != 0
    }

    /// Whether the last wait found the other end closed, or the descriptor broken or closed.
    pub fn is_gone(&self) -> bool {
        self.0.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
    }
}

/// Sleeps until one of `awaited` has something, or `timeout` is over; for ever without one.
/// A signal ends the wait early with nothing found.
///
/// # Errors
/// `ENOMEM` only: the arguments cannot be wrong.
pub fn wait(awaited: &mut [Awaited], timeout: Option<Duration>) -> io::Result<()> {
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = awaited.len() as libc::nfds_t;
    // SAFETY: Awaited is a transparent pollfd, and the slice gives `count` of them. The timeout is
    // null or lives on this stack frame. A null signal mask leaves the mask alone.
    let outcome =
        unsafe { libc::ppoll(awaited.as_mut_ptr().cast(), count, limit, std::ptr::null()) };
    if outcome >= 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => {
            for entry in awaited {
                entry.0.revents = 0;
            }
            Ok(())
        }
        error => Err(error),
    }
}

/// As [`wait`], but a signal does not end it: where nothing was found the time is over.
///
/// # Errors
/// As [`wait`].
pub fn wait_through(awaited: &mut [Awaited], timeout: Option<Duration>) -> io::Result<()> {
    let until = timeout.map(Deadline::after);
    loop {
        let left = until.map(Deadline::left);
        wait(awaited, left)?;
        if awaited.iter().any(Awaited::has_something) || left == Some(Duration::ZERO) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::thread::JoinHandleExt;

    use crate::deadline::{Stopwatch, wait_until};

    extern "C" fn received(_: libc::c_int) {}

    #[test]
    fn a_signal_does_not_end_an_uninterruptible_wait() {
        // SAFETY: a zeroed sigaction has no flags and an empty mask; the handler does nothing.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = received as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
        }
        let (reader, writer) = io::pipe().expect("a pipe");
        let waiting = std::thread::spawn(move || {
            let stopwatch = Stopwatch::start();
            let mut awaited = [Awaited::readable(reader.as_fd())];
            wait_through(&mut awaited, Some(Duration::from_millis(300))).expect("wait");
            (awaited[0].has_something(), stopwatch.elapsed())
        });
        wait_until(Duration::from_mins(1), || {
            // SAFETY: the thread was not joined, so that its handle is good.
            unsafe { libc::pthread_kill(waiting.as_pthread_t() as libc::pthread_t, libc::SIGUSR1) };
            waiting.is_finished()
        });
        let (found, waited) = waiting.join().expect("it ends");
        assert!(!found && waited >= Duration::from_millis(300), "{waited:?}");
        drop(writer);
    }

    #[test]
    fn a_written_pipe_is_readable_and_a_closed_one_is_gone() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let mut awaited = [Awaited::readable(reader.as_fd())];
        wait(&mut awaited, Some(Duration::from_nanos(1))).expect("wait");
        assert!(!awaited[0].is_readable() && !awaited[0].is_gone());
        writer.write_all(b"x").expect("write");
        wait(&mut awaited, None).expect("wait");
        assert!(awaited[0].is_readable());
        drop(writer);
        wait(&mut awaited, None).expect("wait");
        assert!(awaited[0].is_gone());
    }
}
