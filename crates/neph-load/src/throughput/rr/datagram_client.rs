//! The client's end of a stream over UDP.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::AsFd;

use neph_model::{Span, Stop};
use neph_sys::clock::{self, RawNanos};
use neph_sys::ppoll::{self, Awaited};
use neph_wire::throughput::{RrTag, Token};

use super::super::run::TICK;
use super::matching::{Arrival, Matching};
use super::pieces::is_pause;
use super::recorder::Recorder;
use super::spec::{RrRequest, RrSpec};

/// Pause after a request that could not be sent, was refused by the peer, or exceeds the permit.
const RETRY_PAUSE: Span = Span::from_millis(1);
const ENOBUFS: i32 = 105;

/// Runs transactions until the time is over or it is stopped.
pub(super) fn run_transactions(
    socket: &UdpSocket,
    rr_request: RrRequest<'_>,
    token: Token,
    stop: &Stop,
    recorder: Recorder<'_>,
) -> io::Result<()> {
    let spec = rr_request.spec;
    socket.set_nonblocking(spec.busy_poll)?;
    let duration = i64::try_from(spec.ask.duration_ns).unwrap_or(i64::MAX);
    let size = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    // `recv` times out up to a jiffy (4 ms) late, so the second half of the timeout is waited with
    // `ppoll`.
    let half = Span::from_nanos((spec.timeout.nanos() / 2).max(1_000));
    socket.set_read_timeout(Some(TICK.min(half).to_duration()))?;
    let mut work = DatagramRequester {
        request: vec![0x5a; size(spec.ask.request_bytes)],
        // One more byte detects a reply that is too long.
        reply: vec![0; size(spec.ask.reply_bytes) + 1],
        matching: Matching::new(),
        end: recorder.moment(Span::from_nanos(duration)),
        socket,
        rr_request,
        spec,
        token,
        stop,
        recorder,
    };
    let result = work.work();
    work.recorder.finish();
    result
}

struct DatagramRequester<'a> {
    socket: &'a UdpSocket,
    rr_request: RrRequest<'a>,
    spec: &'a RrSpec,
    token: Token,
    stop: &'a Stop,
    recorder: Recorder<'a>,
    matching: Matching,
    request: Vec<u8>,
    reply: Vec<u8>,
    end: RawNanos,
}

impl DatagramRequester<'_> {
    fn work(&mut self) -> io::Result<()> {
        let mut start = clock::raw();
        while start < self.end && !self.stop.is_set() {
            if !self.rr_request.may_begin(start) {
                clock::nap(RETRY_PAUSE.to_duration());
                start = self.recorder.tick(clock::raw());
                continue;
            }
            start = self.transact(start)?;
        }
        Ok(())
    }

    /// Runs one transaction; returns when the next one begins.
    fn transact(&mut self, start: RawNanos) -> io::Result<RawNanos> {
        let tag = RrTag {
            token: self.token,
            number: self.matching.begin(),
        };
        self.request[..RrTag::LEN].copy_from_slice(&tag.encode());
        if let Err(error) = self.socket.send(&self.request) {
            return self.refused(start, error);
        }
        loop {
            match self.socket.recv(&mut self.reply) {
                Ok(length) => {
                    if self.arrive(length) == Arrival::Reply {
                        return Ok(self.end(start, clock::raw()));
                    }
                }
                Err(error) if is_pause(&error) => {}
                Err(error) => return self.refused(start, error),
            }
            // No data of this transaction arrived: another `recv` would wait as long as the first.
            if let Some(next) = self.pause(start)? {
                return Ok(next);
            }
        }
    }

    #[inline]
    fn arrive(&mut self, length: usize) -> Arrival {
        let tag = RrTag::decode(&self.reply[..length]);
        let is_whole = length + 1 == self.reply.len();
        let tag = tag.filter(|tag| tag.token == self.token && is_whole);
        let arrival = tag.map_or(Arrival::Foreign, |tag| self.matching.arrive(tag.number));
        match arrival {
            Arrival::Reply => {}
            Arrival::Late => self.recorder.counted().late += 1,
            Arrival::Duplicate => self.recorder.counted().duplicates += 1,
            Arrival::Foreign => self.recorder.counted().foreign += 1,
        }
        arrival
    }

    /// Ends a transaction with a reply. It is late if this thread was delayed.
    #[inline]
    fn end(&mut self, start: RawNanos, now: RawNanos) -> RawNanos {
        if now.0 - start.0 <= self.spec.timeout.nanos() {
            return self.recorder.reply(start, now);
        }
        self.recorder.counted().late += 1;
        self.recorder.lose(start, now)
    }

    /// Waits until data arrives or the transaction times out.
    fn pause(&mut self, start: RawNanos) -> io::Result<Option<RawNanos>> {
        loop {
            let now = self.recorder.tick(clock::raw());
            let elapsed = Span::from_nanos(now.0 - start.0);
            if elapsed >= self.spec.timeout {
                self.matching.lose();
                return Ok(Some(self.recorder.lose(start, now)));
            }
            if self.stop.is_set() {
                return Ok(Some(now));
            }
            if self.spec.busy_poll {
                std::hint::spin_loop();
                return Ok(None);
            }
            let max_wait = (self.spec.timeout - elapsed).min(TICK);
            let mut poll_fds = [Awaited::readable(self.socket.as_fd())];
            ppoll::wait(&mut poll_fds, Some(max_wait.to_duration()))?;
            if poll_fds[0].has_something() {
                return Ok(None);
            }
        }
    }

    /// The peer has no such socket, or this host has no buffer: the transaction is lost at once.
    fn refused(&mut self, start: RawNanos, error: io::Error) -> io::Result<RawNanos> {
        let is_passing = matches!(
            error.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::WouldBlock
                | ErrorKind::Interrupted
        );
        if !is_passing && error.raw_os_error() != Some(ENOBUFS) {
            return Err(error);
        }
        clock::nap(RETRY_PAUSE.to_duration());
        self.matching.lose();
        Ok(self.recorder.lose(start, clock::raw()))
    }
}
