//! Receives UDP datagrams of one stream: missing, reordered and duplicate ones, and delay
//! variation.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::AsFd;

use neph_model::Span;
use neph_sys::bulk::{self, Burst};
use neph_sys::clock;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::stamp;
use neph_wire::throughput::{Content, Header, ReceivedInterval, StreamVariation, UdpCounters};

use super::course::{CompletedInterval, Course};
use super::run::{Run, TICK};
use super::sequence::{Arrival, Sequence};
use super::variation::Delays;

/// Size of the largest datagram, or of the datagrams that one call joins.
const BUFFER: usize = 1 << 16;
/// How long the first datagram may take before time counts without it.
const START_TIMEOUT: Span = Span::from_secs(1);
/// After the test's time, reception ends after this long without a datagram.
const QUIET_TIME: Span = Span::from_millis(300);
/// Reception ends at most this long after the test's time.
const MAX_DRAIN_TIME: Span = Span::from_secs(2);

/// Receives until the test's time is over or it is stopped, and then the data in flight.
pub(super) fn receive(socket: &UdpSocket, id: u16, run: Run<'_>) -> io::Result<()> {
    let mut receiver = Receiver {
        buffer: vec![0; BUFFER],
        course: Course::begin(),
        sequence: Sequence::default(),
        delays: Delays::default(),
        bytes: 0,
        dropped: 0,
        counts: ReceiveCounts::default(),
        offset: clock::pair().offset(),
        socket,
        id,
        run,
    };
    receiver.await_first()?;
    receiver.course = Course::begin();
    receiver.work()?;
    receiver.put(false);
    receiver.drain()?;
    receiver.put(true);
    let variation = receiver.delays.total();
    let total = StreamVariation {
        stream: id,
        variation,
    };
    run.board.lock().variation.push(total);
    Ok(())
}

/// Number of datagrams that the socket dropped, from the kernel's count of dropped packets. Where
/// the kernel joins datagrams (GRO), a dropped packet is assumed to have as many as a received one
/// on average.
fn dropped_datagrams(packets: u64, counts: ReceiveCounts) -> u64 {
    let datagrams = u128::from(packets) * u128::from(counts.datagrams.max(1));
    let datagrams = datagrams / u128::from(counts.calls.clamp(1, counts.datagrams.max(1)));
    u64::try_from(datagrams).unwrap_or(u64::MAX)
}

/// Results of receive calls since the start.
#[derive(Clone, Copy, Debug, Default)]
struct ReceiveCounts {
    calls: u64,
    datagrams: u64,
}

struct Receiver<'a> {
    socket: &'a UdpSocket,
    id: u16,
    run: Run<'a>,
    buffer: Vec<u8>,
    course: Course,
    sequence: Sequence,
    delays: Delays,
    bytes: u64,
    /// Packets that the kernel dropped at this socket so far.
    dropped: u64,
    counts: ReceiveCounts,
    /// Wall clock minus monotonic clock, nanoseconds.
    offset: i64,
}

impl Receiver<'_> {
    /// Waits for the first datagram: time counts from its arrival on.
    fn await_first(&self) -> io::Result<()> {
        while self.course.elapsed() < START_TIMEOUT && !self.run.stop.is_set() {
            let mut poll_fds = [Awaited::readable(self.socket.as_fd())];
            ppoll::wait(&mut poll_fds, Some(TICK.to_duration()))?;
            if poll_fds[0].is_readable() {
                break;
            }
        }
        Ok(())
    }

    fn work(&mut self) -> io::Result<()> {
        let end = self.run.duration();
        loop {
            let now = self.course.elapsed();
            if now >= end || self.run.stop.is_set() {
                return Ok(());
            }
            if now >= self.course.due() {
                self.put(false);
            }
            if self.run.read_pause > Span::ZERO {
                clock::nap(self.run.read_pause.to_duration());
            }
            let until = end.min(self.course.due()).min(now + TICK);
            self.receive_burst(now, until)?;
        }
    }

    fn drain(&mut self) -> io::Result<()> {
        let drain_start = self.course.elapsed();
        let mut last_arrival = drain_start;
        loop {
            let now = self.course.elapsed();
            if now >= last_arrival + QUIET_TIME || now >= drain_start + MAX_DRAIN_TIME {
                return Ok(());
            }
            if self.receive_burst(now, now + TICK)? {
                last_arrival = self.course.elapsed();
            }
        }
    }

    /// Processes the result of one receive call, or waits until `until`; returns whether data
    /// arrived.
    fn receive_burst(&mut self, now: Span, until: Span) -> io::Result<bool> {
        match bulk::receive(self.socket.as_fd(), &mut self.buffer) {
            Ok(burst) => {
                self.take(burst);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let max_wait = (until - now).to_duration();
                ppoll::wait(
                    &mut [Awaited::readable(self.socket.as_fd())],
                    Some(max_wait),
                )?;
                self.course.waited_since(now);
                Ok(false)
            }
            // An ICMP error about an earlier datagram of this socket.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn take(&mut self, burst: Burst) {
        self.counts.calls += 1;
        let stamp = burst.stamp.map(|stamp| stamp.0.saturating_sub(self.offset));
        let came_ns = stamp.unwrap_or_else(|| clock::raw().0);
        for datagram in burst.datagrams(&self.buffer) {
            let Ok(header) = Header::decode(datagram) else {
                continue;
            };
            let is_ours = header.token == self.run.token && header.stream == self.id;
            if !is_ours || header.content != Content::Data {
                continue;
            }
            self.counts.datagrams += 1;
            self.run.spend_received(datagram.len());
            let arrival = self.sequence.arrive(header.sequence);
            if arrival != Arrival::Duplicate {
                self.bytes += datagram.len() as u64;
            }
            let transit = came_ns.saturating_sub(header.sent_ns);
            self.delays.arrive(arrival, transit);
        }
    }

    fn put(&mut self, is_late: bool) {
        let passed: CompletedInterval = self.course.pass(self.course.elapsed());
        let counted = self.sequence.take();
        // Kernels before 4.12 lack this counter.
        let dropped = stamp::dropped(self.socket.as_fd()).unwrap_or(0);
        let packets = dropped.saturating_sub(self.dropped);
        self.dropped = dropped;
        let udp = UdpCounters {
            datagrams: counted.datagrams,
            lost: counted.lost(),
            found: counted.found(),
            reordered: counted.reordered,
            reordering_extent: counted.extent,
            duplicates: counted.duplicates,
            socket_drops: dropped_datagrams(packets, self.counts),
            jitter_ns: self.delays.jitter(),
            variation: self.delays.take_interval(),
        };
        let interval = ReceivedInterval {
            stream: self.id,
            index: passed.index,
            is_late,
            from_ns: passed.from_ns,
            to_ns: passed.to_ns,
            bytes: std::mem::take(&mut self.bytes),
            waited_ns: passed.waited_ns,
            policy_ns: passed.policy_ns,
            cpu_ns: passed.cpu_ns,
            core: passed.core,
            udp: Some(udp),
        };
        self.run.board.lock().received.push(interval);
        // A slewed or stepped wall clock changes the offset of kernel timestamps.
        self.offset = clock::pair().offset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_packet_counts_as_many_datagrams_as_a_delivered_one() {
        let counts = |calls, datagrams| ReceiveCounts { calls, datagrams };
        assert_eq!(dropped_datagrams(0, counts(10, 450)), 0);
        assert_eq!(dropped_datagrams(7, counts(10, 450)), 315);
        assert_eq!(dropped_datagrams(7, counts(10, 10)), 7);
        assert_eq!(dropped_datagrams(7, ReceiveCounts::default()), 7);
    }
}
