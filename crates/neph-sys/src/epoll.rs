//! Waiting for thousands of descriptors: each wait costs what happened, not what is watched.
//!
//! Owns `epoll` (level-triggered). Does not own the descriptors that are watched: closing one ends
//! its watch.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Events that one call takes at most.
const MAXIMUM: usize = 256;
/// The same for system calls.
const ROOM: libc::c_int = 256;

/// A set of watched descriptors.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
}

/// What a look at the set found: a list whose room is reused.
#[derive(Debug)]
pub struct ReadyList(Vec<libc::epoll_event>);

/// A watched descriptor with something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyEvent {
    /// What it was watched as.
    pub token: u64,
    /// There is something to read, or the other end is closed.
    pub is_readable: bool,
    /// It can be written to, where that was requested.
    pub is_writable: bool,
    /// There is something in its error queue, or a fault.
    pub has_notice: bool,
}

/// What a descriptor is watched for; errors are always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Something to read.
    Read,
    /// Something to read, or room to write.
    ReadWrite,
}

impl Epoll {
    /// An empty set.
    ///
    /// # Errors
    /// `EMFILE` when the process has no descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: epoll_create1 takes no pointer and returns a new descriptor or -1.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// Watches `fd` from now on, until it is closed.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`: `AlreadyExists` when it is watched already.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    /// Watches `fd` for something else than so far.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`: `NotFound` when it is not watched.
    pub fn change(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    fn control(
        &self,
        operation: libc::c_int,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let events = match interest {
            Interest::Read => libc::EPOLLIN,
            Interest::ReadWrite => libc::EPOLLIN | libc::EPOLLOUT,
        };
        let mut event = libc::epoll_event {
            events: events.cast_unsigned(),
            u64: token,
        };
        let (set, fd) = (self.fd.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: epoll_ctl reads one event, alive for the call; both descriptors are open.
        let outcome = unsafe { libc::epoll_ctl(set, operation, fd, &raw mut event) };
        if outcome == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Looks without waiting; whether the list is full, so that there may be more.
    ///
    /// # Errors
    /// None known: the arguments cannot be wrong.
    pub fn look(&self, found: &mut ReadyList) -> io::Result<bool> {
        self.wait(found, Duration::ZERO)
    }

    /// Waits until a descriptor has something, or `timeout` is over, to the nanosecond where the kernel has
    /// `epoll_pwait2` (Linux 5.11), else to the millisecond below. A signal ends the wait early. Returns
    /// whether the list is full, so that there may be more.
    ///
    /// # Errors
    /// None known: the arguments cannot be wrong.
    pub fn wait(&self, found: &mut ReadyList, timeout: Duration) -> io::Result<bool> {
        found.0.clear();
        let mut outcome = if timeout.is_zero() {
            self.wait_millis(found, 0)
        } else {
            self.wait_nanos(found, timeout)
        };
        if outcome
            .as_ref()
            .is_err_and(|error| error.raw_os_error() == Some(libc::ENOSYS))
        {
            let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
            outcome = self.wait_millis(found, millis);
        }
        let count = match outcome {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            outcome => outcome?,
        };
        // SAFETY: the kernel has written `count` events, and there is room for `MAXIMUM`.
        unsafe { found.0.set_len(count.min(MAXIMUM)) };
        Ok(count == MAXIMUM)
    }

    /// Fills the room of the list; how many events there are.
    fn wait_millis(&self, found: &mut ReadyList, millis: i32) -> io::Result<usize> {
        let events = found.0.as_mut_ptr();
        // SAFETY: the list has room for `MAXIMUM` events, which the kernel writes.
        let count = unsafe { libc::epoll_wait(self.fd.as_raw_fd(), events, ROOM, millis) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// As [`Self::wait_millis`], with a timeout in nanoseconds.
    fn wait_nanos(&self, found: &mut ReadyList, timeout: Duration) -> io::Result<usize> {
        let limit = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
        };
        // SAFETY: the list has room for `MAXIMUM` events, which the kernel writes. It reads the timeout,
        // which lives on this stack frame. A null signal mask leaves the mask alone.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                found.0.as_mut_ptr(),
                ROOM,
                &raw const limit,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }
}

impl AsFd for Epoll {
    /// Readable when one of the watched descriptors has something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Default for ReadyList {
    fn default() -> Self {
        Self(Vec::with_capacity(MAXIMUM))
    }
}

impl ReadyList {
    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = ReadyEvent> + '_ {
        self.0.iter().map(|event| {
            let events = event.events.cast_signed();
            ReadyEvent {
                token: event.u64,
                is_readable: events & (libc::EPOLLIN | libc::EPOLLHUP) != 0,
                is_writable: events & libc::EPOLLOUT != 0,
                has_notice: events & libc::EPOLLERR != 0,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_wait_ends_with_its_timeout_or_with_an_event() {
        let set = Epoll::new().expect("a descriptor");
        let (reader, mut writer) = io::pipe().expect("a pipe");
        set.add(reader.as_fd(), 7, Interest::Read).expect("watched");
        let mut found = ReadyList::default();
        let stopwatch = crate::deadline::Stopwatch::start();
        set.wait(&mut found, Duration::from_micros(1_500))
            .expect("a wait");
        assert!(stopwatch.elapsed() >= Duration::from_micros(1_500));
        assert_eq!(found.iter().count(), 0);
        writer.write_all(b"x").expect("write");
        set.wait(&mut found, Duration::from_mins(1))
            .expect("a wait");
        assert_eq!(
            found.iter().map(|event| event.token).collect::<Vec<_>>(),
            [7]
        );
    }

    #[test]
    fn epoll_reports_ready_tokens_and_forgets_closed_descriptors() {
        let set = Epoll::new().expect("a descriptor");
        let (mut quiet_reader, quiet) = io::pipe().expect("a pipe");
        let (mut reader, mut writer) = io::pipe().expect("a pipe");
        set.add(quiet_reader.as_fd(), 1, Interest::Read)
            .expect("watched");
        set.add(reader.as_fd(), 2, Interest::Read).expect("watched");
        let mut found = ReadyList::default();
        assert!(!set.look(&mut found).expect("a look"));
        assert_eq!(found.iter().count(), 0);
        writer.write_all(b"x").expect("write");
        assert!(!set.look(&mut found).expect("a look"));
        let tokens: Vec<u64> = found
            .iter()
            .filter(|ready_event| ready_event.is_readable)
            .map(|ready_event| ready_event.token)
            .collect();
        assert_eq!(tokens, [2]);
        reader.read_exact(&mut [0]).expect("read");
        drop(reader);
        drop(writer);
        set.look(&mut found).expect("a look");
        assert_eq!(found.iter().count(), 0);
        drop(quiet);
        assert!(quiet_reader.read(&mut [0]).is_ok_and(|read| read == 0));
    }
}
