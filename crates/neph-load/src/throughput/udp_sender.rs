//! Sends UDP datagrams of one size, as fast as possible or at a rate, several per call (GSO).

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::AsFd;

use neph_model::{BitRate, Span};
use neph_sys::clock::{self, Spin};
use neph_sys::ppoll::{self, Awaited};
use neph_sys::{bulk, sched};
use neph_wire::throughput::{Content, Header, SentInterval};

use super::course::{CompletedInterval, Course};
use super::run::{Run, TICK};
use crate::pace::Pace;

/// A rate-limited sender sends the datagrams of this time at once, at least one. Bursts of a whole
/// pacing timer overflow small queues (iperf issues 296 and 386).
const BURST_INTERVAL: Span = Span::from_micros(200);
/// Send buffer in bytes.
const SEND_BUFFER_BYTES: i32 = 4 << 20;
/// Pause after a refusal because buffers are missing.
const RETRY_PAUSE: Span = Span::from_micros(100);
const EMSGSIZE: i32 = 90;
const EINVAL: i32 = 22;
const ENOBUFS: i32 = 105;

/// Sends until the test's time is over or it is stopped.
pub(super) fn send(socket: &UdpSocket, id: u16, run: Run<'_>) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    bulk::make_send_room(socket.as_fd(), SEND_BUFFER_BYTES)?;
    // Reduces lateness to the wake-up time. Without it the packet intervals are slightly less even.
    let _ = sched::set_timer_slack(std::time::Duration::from_nanos(1));
    let size = usize::try_from(run.test_request.datagram_bytes).unwrap_or(usize::MAX);
    let mut sender = Sender {
        burst: burst(run.rate(), size),
        buffer: vec![
            0x5a;
            size.saturating_mul(bulk::MAX_SEGMENTS)
                .min(bulk::LARGEST_BURST)
        ],
        course: Course::begin(),
        pace: Pace::new(run.rate()),
        size,
        sequence: 0,
        counted: 0,
        refused: 0,
        socket,
        id,
        run,
    };
    sender.begin_segments();
    let result = sender.work();
    let passed = sender.course.pass(sender.course.elapsed());
    sender.put(passed);
    result
}

/// Number of datagrams per call.
fn burst(rate: Option<BitRate>, size: usize) -> usize {
    let max_segments = (bulk::LARGEST_BURST / size.max(1)).clamp(1, bulk::MAX_SEGMENTS);
    let Some(rate) = rate else {
        return max_segments;
    };
    let bits =
        u128::from(rate.bits_per_second()) * u128::from(BURST_INTERVAL.nanos().unsigned_abs());
    let bytes = bits / 8_000_000_000;
    let count = usize::try_from(bytes).unwrap_or(usize::MAX) / size.max(1);
    count.clamp(1, max_segments)
}

struct Sender<'a> {
    socket: &'a UdpSocket,
    id: u16,
    run: Run<'a>,
    course: Course,
    pace: Pace,
    buffer: Vec<u8>,
    size: usize,
    burst: usize,
    sequence: u64,
    counted: u64,
    refused: u64,
}

impl Sender<'_> {
    /// Sends several datagrams per call, if the kernel supports it.
    fn begin_segments(&mut self) {
        let segment = u16::try_from(self.size).unwrap_or(0);
        let is_possible = bulk::segment_datagrams(self.socket.as_fd(), segment).is_ok();
        if self.burst == 1 || !is_possible {
            self.end_segments();
        }
    }

    /// Sends one datagram per call: a datagram above the MTU is fragmented and cannot be a segment.
    fn end_segments(&mut self) {
        // If it cannot be disabled, it was never enabled.
        let _ = bulk::segment_datagrams(self.socket.as_fd(), 0);
        self.burst = 1;
    }

    fn work(&mut self) -> io::Result<()> {
        let end = self.run.duration();
        loop {
            let now = self.course.elapsed();
            if now >= end || self.run.stop.is_set() {
                return Ok(());
            }
            if now >= self.course.due() {
                let passed = self.course.pass(now);
                self.put(passed);
            }
            let until = end.min(self.course.due()).min(now + TICK);
            let due = self.pace.due(now, self.sequence * self.size as u64);
            if due > now {
                clock::sleep_until(self.course.moment(due.min(until)), Spin::NONE);
                self.course.paced_since(now);
                continue;
            }
            let burst_bytes = self.burst * self.size;
            let room = self.run.room_or_rest(burst_bytes, &mut self.course, now);
            if room.is_none() {
                continue;
            }
            self.send_burst(now, until)?;
        }
    }

    fn send_burst(&mut self, now: Span, until: Span) -> io::Result<()> {
        let length = self.fill();
        let Err(error) = self.socket.send(&self.buffer[..length]) else {
            self.sequence += self.burst as u64;
            self.run.spend(length);
            if self.sequence & 0x3f < self.burst as u64 {
                self.course.look();
            }
            return Ok(());
        };
        match (error.kind(), error.raw_os_error()) {
            (ErrorKind::WouldBlock, _) => {
                let mut poll_fds = [Awaited::writable(self.socket.as_fd())];
                ppoll::wait(&mut poll_fds, Some((until - now).to_duration()))?;
                self.course.waited_since(now);
                Ok(())
            }
            (_, Some(EINVAL | EMSGSIZE)) if self.burst > 1 => {
                self.end_segments();
                Ok(())
            }
            (ErrorKind::Interrupted, _) => Ok(()),
            (_, Some(ENOBUFS)) | (ErrorKind::ConnectionRefused, _) => {
                self.refused += self.burst as u64;
                clock::nap(RETRY_PAUSE.to_duration());
                self.course.waited_since(now);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Writes the headers of the next datagrams; returns their total size in bytes.
    fn fill(&mut self) -> usize {
        let sent_ns = clock::raw().0;
        let datagrams = self.buffer.chunks_exact_mut(self.size).take(self.burst);
        for (sequence, datagram) in (self.sequence..).zip(datagrams) {
            let header = Header {
                content: Content::Data,
                stream: self.id,
                token: self.run.token,
                sequence,
                sent_ns,
            };
            datagram[..Header::LEN].copy_from_slice(&header.encode());
        }
        self.burst * self.size
    }

    fn put(&mut self, passed: CompletedInterval) {
        let datagrams = self.sequence - self.counted;
        let interval = SentInterval {
            stream: self.id,
            index: passed.index,
            from_ns: passed.from_ns,
            to_ns: passed.to_ns,
            bytes: datagrams * self.size as u64,
            datagrams,
            refused: std::mem::take(&mut self.refused),
            waited_ns: passed.waited_ns,
            paced_ns: passed.paced_ns,
            policy_ns: passed.policy_ns,
            cpu_ns: passed.cpu_ns,
            core: passed.core,
            tcp: None,
        };
        self.run.board.lock().sent.push(interval);
        self.counted = self.sequence;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_sends_bursts_of_200_us_and_at_most_one_full_call() {
        assert_eq!(burst(None, 1448), 45);
        assert_eq!(burst(None, 64), 64);
        assert_eq!(burst(None, 65_507), 1);
        assert_eq!(burst(Some(BitRate(50_000_000)), 1448), 1);
        // 200 us of 1 Gbit/s are 25,000 bytes.
        assert_eq!(burst(Some(BitRate(1_000_000_000)), 1448), 17);
        assert_eq!(burst(Some(BitRate(100_000_000_000)), 1448), 45);
    }
}
