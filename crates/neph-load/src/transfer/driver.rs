//! Runs a transfer on a socket: reads, writes, waits and stops. It owns no protocol.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;

use neph_model::{Instant, Local, Permit, Span, Stop};
use neph_sys::clock;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::tcp::{self, TcpStats};

/// Bytes per read.
const CHUNK: usize = 256 << 10;

/// The next step of a transfer.
#[derive(Debug)]
pub(crate) enum Next<'a> {
    /// Write these bytes. If the kernel accepts none, [`Traffic::next`] is called once it does, or
    /// at `until`.
    Write {
        /// At least one.
        bytes: &'a [u8],
        /// Since the start.
        until: Span,
    },
    /// Wait for data, at most until this time.
    Wait(Span),
    /// Read the kernel's counters for [`Traffic::measured`].
    Measure,
    /// End the transfer.
    End,
}

/// The protocol of a transfer. Times are since the start.
pub(crate) trait Traffic {
    /// Returns the next step.
    fn next(&mut self, now: Span) -> io::Result<Next<'_>>;
    /// The kernel accepted this many bytes of [`Next::Write`].
    fn wrote(&mut self, count: usize);
    /// Processes received bytes.
    fn received(&mut self, bytes: &[u8], now: Span) -> io::Result<()>;
    /// The peer closed its direction. Called once, unless it returns an error.
    fn closed(&mut self, now: Span) -> io::Result<()>;
    /// Gets the counters for [`Next::Measure`].
    fn measured(&mut self, _stats: TcpStats, _now: Span) {}
    /// The stop flag is set. Called at each turn from then on.
    fn stopped(&mut self) {}
    /// Whether data of the peer is still needed; otherwise it is no longer read.
    fn needs_data(&self) -> bool {
        true
    }
}

/// The failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailedOperation {
    Reading,
    Writing,
    /// The protocol, or a system call that moves no bytes.
    Other,
}

/// Why a transfer ended early.
#[derive(Debug)]
pub(crate) struct TransferFailure {
    pub(crate) during: FailedOperation,
    pub(crate) source: io::Error,
}

impl TransferFailure {
    fn during(during: FailedOperation) -> impl Fn(io::Error) -> Self {
        move |source| Self { during, source }
    }
}

/// Current time of the local monotonic clock.
pub(crate) fn now() -> Instant<Local> {
    Instant::from_nanos(clock::raw().0)
}

/// Runs transfers one after the other; reuses its read buffer.
#[derive(Debug)]
pub(crate) struct Driver {
    buffer: Vec<u8>,
    permit: Permit,
}

impl Driver {
    pub(crate) fn new() -> Self {
        Self::within(Permit::ANYTHING)
    }

    /// A driver that sends within a permit.
    pub(crate) fn within(permit: Permit) -> Self {
        Self {
            buffer: vec![0; CHUNK],
            permit,
        }
    }

    /// Runs a transfer that `began` at this time until its end, on a non-blocking socket.
    pub(crate) fn drive(
        &mut self,
        stream: &mut TcpStream,
        traffic: &mut impl Traffic,
        began: Instant<Local>,
        stop: &Stop,
    ) -> Result<(), TransferFailure> {
        let other = TransferFailure::during(FailedOperation::Other);
        let elapsed = || now() - began;
        let mut is_open = true;
        loop {
            is_open = is_open && self.receive(stream, traffic, began)?;
            if stop.is_set() {
                traffic.stopped();
            }
            let (is_writing, until) = match traffic.next(elapsed()).map_err(&other)? {
                Next::End => return Ok(()),
                Next::Measure => {
                    let stats = tcp::stats(stream.as_fd()).map_err(&other)?;
                    traffic.measured(stats, elapsed());
                    continue;
                }
                Next::Wait(until) => (false, until),
                Next::Write { bytes, until } => match self.write(stream, bytes) {
                    Ok(None) => (false, until.min(elapsed() + Permit::REST)),
                    Ok(Some(count)) if count > 0 => {
                        traffic.wrote(count);
                        continue;
                    }
                    Ok(_) => (true, until),
                    Err(error) if is_later(&error) => (true, until),
                    Err(error) => {
                        return Err(TransferFailure::during(FailedOperation::Writing)(error));
                    }
                },
            };
            let max = (until - elapsed()).clamp(Span::ZERO, Stop::POLL_INTERVAL);
            let socket = stream.as_fd();
            let mut awaited = match (is_open, is_writing) {
                (true, true) => Some(Awaited::readable_or_writable(socket)),
                (true, false) => Some(Awaited::readable(socket)),
                (false, true) => Some(Awaited::writable(socket)),
                (false, false) => None,
            };
            ppoll::wait(awaited.as_mut_slice(), Some(max.to_duration())).map_err(&other)?;
        }
    }

    /// Writes as much as the permit allows; `None` if it allows too little.
    fn write(&self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<Option<usize>> {
        let room = self.permit.room(clock::raw().0).min(bytes.len());
        // Waits for more room, so that no tiny parts are sent.
        if room < bytes.len().min(Permit::MIN_ROOM) {
            return Ok(None);
        }
        let count = stream.write(&bytes[..room])?;
        self.permit.spend(count, clock::raw().0);
        Ok(Some(count))
    }

    /// Reads available data while it is needed; returns whether more may arrive.
    fn receive(
        &mut self,
        stream: &mut TcpStream,
        traffic: &mut impl Traffic,
        began: Instant<Local>,
    ) -> Result<bool, TransferFailure> {
        let other = TransferFailure::during(FailedOperation::Other);
        while traffic.needs_data() {
            match stream.read(&mut self.buffer) {
                Ok(0) => {
                    return traffic.closed(now() - began).map(|()| false).map_err(other);
                }
                Ok(count) => {
                    self.permit.spend(count, clock::raw().0);
                    let at = now() - began;
                    traffic
                        .received(&self.buffer[..count], at)
                        .map_err(&other)?;
                }
                Err(error) if is_later(&error) => return Ok(true),
                Err(error) => return Err(TransferFailure::during(FailedOperation::Reading)(error)),
            }
        }
        Ok(false)
    }
}

/// Whether the call may succeed later.
fn is_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::TimedOut
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Writes this many bytes, then waits until as many return.
    struct Echoed {
        left: usize,
        back: usize,
        measured: Option<TcpStats>,
        is_stopped: bool,
    }

    impl Traffic for Echoed {
        fn next(&mut self, now: Span) -> io::Result<Next<'_>> {
            let until = now + Span::from_secs(60);
            Ok(match (self.left, self.back, self.measured) {
                _ if self.is_stopped => Next::End,
                (1.., ..) => Next::Write {
                    bytes: &[7; 1 << 13][..self.left.min(1 << 13)],
                    until,
                },
                (0, 1.., _) => Next::Wait(until),
                (0, 0, None) => Next::Measure,
                (0, 0, Some(_)) => Next::End,
            })
        }

        fn wrote(&mut self, count: usize) {
            self.left -= count;
        }

        fn received(&mut self, bytes: &[u8], _now: Span) -> io::Result<()> {
            self.back -= bytes.len();
            Ok(())
        }

        fn closed(&mut self, _now: Span) -> io::Result<()> {
            Err(io::Error::other("closed"))
        }

        fn measured(&mut self, stats: TcpStats, _now: Span) {
            self.measured = Some(stats);
        }

        fn stopped(&mut self) {
            self.is_stopped = true;
        }
    }

    fn echoed(bytes: usize) -> Echoed {
        Echoed {
            left: bytes,
            back: bytes,
            measured: None,
            is_stopped: false,
        }
    }

    /// Runs it with a peer that echoes this many bytes.
    fn drive(traffic: &mut Echoed, max: u64, stop: &Stop) -> Result<(), TransferFailure> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            let reading = stream.try_clone()?;
            io::copy(&mut reading.take(max), &mut stream)
        });
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_nonblocking(true).expect("a socket");
        Driver::new().drive(&mut stream, traffic, now(), stop)
    }

    #[test]
    fn all_bytes_are_echoed_and_acknowledged() {
        let mut traffic = echoed(10 << 20);
        drive(&mut traffic, u64::MAX, &Stop::new()).expect("it is echoed");
        let acked = traffic.measured.map(|stats| stats.bytes_acked);
        assert!(acked >= Some(10 << 20), "{acked:?}");
    }

    #[test]
    fn a_close_by_the_peer_fails_the_transfer() {
        let broken = drive(&mut echoed(1 << 10), 100, &Stop::new()).expect_err("cut short");
        assert!(broken.during != FailedOperation::Writing, "{broken:?}");
    }

    #[test]
    fn a_stop_ends_the_transfer() {
        let stop = Stop::new();
        stop.set();
        drive(&mut echoed(1 << 30), u64::MAX, &stop).expect("it ends");
    }
}
