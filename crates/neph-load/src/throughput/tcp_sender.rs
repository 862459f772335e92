//! Sends on one TCP connection, as fast as possible or at a rate.
//!
//! Large writes, measured over veth: 512 KiB per call and a receiver that discards reached 36 to 49
//! Gbit/s. sendfile(2) reached 29 to 33, since its 4 KiB pages make smaller packets.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

use neph_model::{BitRate, Permit, Span};
use neph_sys::clock::{self, Spin};
use neph_sys::ppoll::{self, Awaited};
use neph_sys::tcp;
use neph_wire::throughput::SentInterval;

use super::counters::{Counters, difference};
use super::course::{CompletedInterval, Course};
use super::run::{Run, TICK};
use crate::pace::Pace;

/// Bytes per write.
const CHUNK: usize = 512 << 10;
/// A rate-limited sender writes the bytes of this time at once.
const BURST_INTERVAL: Span = Span::from_millis(1);

/// Sends until the test's time is over or it is stopped.
pub(super) fn send(stream: TcpStream, id: u16, run: Run<'_>) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let mut sender = Sender {
        start_counters: Counters::read(&stream)?,
        course: Course::begin(),
        pace: Pace::new(run.rate()),
        buffer: pattern(run.rate()),
        sent: 0,
        counted: 0,
        stream,
        id,
        run,
    };
    let result = sender.work();
    let passed = sender.course.pass(sender.course.elapsed());
    sender.put(passed)?;
    // Unsent data is not part of the test: a reset frees the path at once.
    let socket = socket2::Socket::from(sender.stream);
    socket.set_linger(Some(Duration::ZERO))?;
    result
}

/// Incompressible bytes of one write.
fn pattern(rate: Option<BitRate>) -> Vec<u8> {
    let step = |rate: BitRate| {
        let bytes = u128::from(rate.bits_per_second())
            * u128::from(BURST_INTERVAL.nanos().unsigned_abs())
            / 8_000_000_000;
        usize::try_from(bytes)
            .unwrap_or(CHUNK)
            .clamp(Permit::MIN_ROOM, CHUNK)
    };
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = Vec::with_capacity(CHUNK);
    while bytes.len() < rate.map_or(CHUNK, step) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_ne_bytes());
    }
    bytes
}

struct Sender<'a> {
    stream: TcpStream,
    id: u16,
    run: Run<'a>,
    course: Course,
    pace: Pace,
    buffer: Vec<u8>,
    sent: u64,
    counted: u64,
    start_counters: Counters,
}

impl Sender<'_> {
    fn work(&mut self) -> io::Result<()> {
        let end = self.run.duration();
        loop {
            let now = self.course.elapsed();
            if now >= end || self.run.stop.is_set() {
                return Ok(());
            }
            if now >= self.course.due() {
                let passed = self.course.pass(now);
                self.put(passed)?;
            }
            let until = end.min(self.course.due()).min(now + TICK);
            let due = self.pace.due(now, self.sent);
            if due > now {
                clock::sleep_until(self.course.moment(due.min(until)), Spin::NONE);
                self.course.paced_since(now);
                continue;
            }
            let room = self
                .run
                .room_or_rest(Permit::MIN_ROOM, &mut self.course, now);
            let Some(room) = room else { continue };
            let room = room.min(self.buffer.len());
            match self.stream.write(&self.buffer[..room]) {
                Ok(count) => {
                    self.sent += count as u64;
                    self.run.spend(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let mut poll_fds = [Awaited::writable(self.stream.as_fd())];
                    ppoll::wait(&mut poll_fds, Some((until - now).to_duration()))?;
                    self.course.waited_since(now);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The receiver ends when its time is over, possibly just before the sender's.
                Err(error) if is_closed(&error) && now + ENDS_EARLY >= end => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn put(&mut self, passed: CompletedInterval) -> io::Result<()> {
        let now = Counters::read(&self.stream)?;
        let interval = SentInterval {
            stream: self.id,
            index: passed.index,
            from_ns: passed.from_ns,
            to_ns: passed.to_ns,
            bytes: self.sent - self.counted,
            waited_ns: passed.waited_ns,
            paced_ns: passed.paced_ns,
            policy_ns: passed.policy_ns,
            cpu_ns: passed.cpu_ns,
            core: passed.core,
            tcp: Some(difference(&self.start_counters, &now)),
            ..SentInterval::default()
        };
        self.run.board.lock().sent.push(interval);
        (self.counted, self.start_counters) = (self.sent, now);
        Ok(())
    }
}

/// How much earlier than the sender a receiver may end.
const ENDS_EARLY: Span = Span::from_secs(1);

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

/// Sets the congestion control of a sending connection.
pub(super) fn prepare(stream: &TcpStream, congestion: Option<&str>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let Some(name) = congestion else {
        return Ok(());
    };
    tcp::set_congestion_control(stream.as_fd(), name).map_err(|error| {
        let reason = format!("congestion control {name}: {error}");
        io::Error::new(error.kind(), reason)
    })
}
