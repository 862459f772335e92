//! Sends UDP packets at a constant bit rate, with the frame sizes of a video.
//!
//! The packets are STAMP requests. The reflector returns each of them with the number of packets
//! that it received. So loss on the forward path and loss on the reverse path can be distinguished.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use neph_model::{BitRate, Permit, Span, Stop};
use neph_sys::clock::{self, RawNanos};
use neph_sys::ppoll::{self, Awaited};
use neph_wire::stamp::{
    Auth, ErrorEstimate, Format as StampFormat, SenderPacket, Timestamp, decode_reply,
    encode_request, request_size,
};

use crate::by_second::{BySecond, CarriedBytes, LoadSecond};
use crate::duty_cycle::HELD;
use crate::error::LoadError;
use crate::start_counter::StartCounter;
use crate::video;

/// How long the last packets may take to return.
const REPLY_TIMEOUT: Span = Span::from_secs(1);
/// Maximum delay until a set stop flag is noticed.
const TICK: Span = Span::from_millis(50);
/// Size of the largest datagram.
const BUFFER_BYTES: usize = 1 << 16;

/// A stream to a reflector, which returns it.
#[derive(Clone, Debug)]
pub struct StreamLoad {
    /// The destination.
    pub address: SocketAddr,
    /// Payload rate in each direction.
    pub rate: BitRate,
    /// Duration.
    pub duration: Span,
    /// Send limit, shared with other traffic; packets beyond it are dropped.
    pub permit: Permit,
}

/// Counters of a stream.
#[derive(Clone, Debug, Default)]
pub struct Streamed {
    /// Frames that were sent completely.
    pub frames: u64,
    /// Frames that were due, and their payload.
    pub due: u64,
    pub due_bytes: u64,
    pub packets: u64,
    pub bytes: u64,
    /// Packets that the reflector received, according to the last returned one.
    pub received_bytes: u64,
    /// Packets and bytes that returned.
    pub back: u64,
    pub reverse_bytes: u64,
    /// When the last packet returned.
    pub incoming: Span,
    /// Packets that this host did not send.
    pub refused: u64,
    pub lasted: Span,
    /// Rates within each whole second. The received bytes are estimated from the reflector's count
    /// of packets.
    pub seconds: Vec<LoadSecond>,
}

impl Streamed {
    /// Frames that were not sent completely in time.
    pub fn left_out(&self) -> u64 {
        self.due - self.frames
    }

    /// Sent share of the payload that was due, percent.
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn percent(&self) -> f64 {
        100.0 * self.bytes as f64 / self.due_bytes.max(1) as f64
    }

    /// Why the stream is not the requested one.
    pub fn fault(&self, rate: BitRate, to: SocketAddr) -> Option<String> {
        if self.back == 0 {
            return Some(format!(
                "no packet came back from {to}: is neph reflect there, and does it take UDP without \
                 a key?"
            ));
        }
        let silent = self.lasted - self.incoming;
        if silent >= REPLY_TIMEOUT {
            let incoming = self.incoming;
            return Some(format!(
                "{to} stopped answering after {incoming}, {silent} before the end: does neph reflect still \
                 work there?"
            ));
        }
        let achieved = self.percent();
        (100.0 - achieved > HELD).then(|| {
            let (left_out, due) = (self.left_out(), self.due);
            format!(
                "{achieved:.1} % of {rate} was sent; frames skipped: {left_out} of {due}: other processes used the CPU, or a CPU limit applies"
            )
        })
    }
}

impl StreamLoad {
    /// Sends until the time is over or `stop` is set, then waits up to a second for the last
    /// packets.
    ///
    /// # Errors
    /// No socket can be opened or polled.
    pub fn run(
        &self,
        start_counter: &StartCounter<'_>,
        stop: &Stop,
    ) -> Result<Streamed, LoadError> {
        let to = self.address;
        let socket = open(to).map_err(|source| LoadError::Socket { to, source })?;
        let mut stream = Stream {
            load: self,
            start_counter,
            socket,
            streamed: Streamed::default(),
            buffer: vec![0; BUFFER_BYTES],
            start_nanos: clock::raw().0,
            by_second: BySecond::default(),
        };
        let streamed = stream.run(stop);
        streamed.map_err(|source| LoadError::Stream { to, source })
    }
}

fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let unspecified = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(unspecified)?;
    socket.connect(address)?;
    // Needed if the kernel announces a datagram and then discards it for a bad checksum.
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    Ok(socket)
}

struct Stream<'a> {
    load: &'a StreamLoad,
    start_counter: &'a StartCounter<'a>,
    socket: UdpSocket,
    streamed: Streamed,
    buffer: Vec<u8>,
    start_nanos: i64,
    by_second: BySecond,
}

impl Stream<'_> {
    fn elapsed(&self) -> Span {
        Span::from_nanos(clock::raw().0 - self.start_nanos)
    }

    fn run(&mut self, stop: &Stop) -> io::Result<Streamed> {
        self.send_all(stop)?;
        self.streamed.lasted = self.elapsed();
        let until = self.elapsed() + REPLY_TIMEOUT;
        while self.streamed.back < self.streamed.packets && self.elapsed() < until {
            self.receive_replies(TICK)?;
        }
        let mut streamed = std::mem::take(&mut self.streamed);
        streamed.seconds = std::mem::take(&mut self.by_second).into_seconds();
        Ok(streamed)
    }

    /// Adds the rates of a completed second.
    fn mark_second(&mut self) {
        let now = self.elapsed();
        if now < self.by_second.due() {
            return;
        }
        let streamed = &self.streamed;
        let mean = streamed.bytes.checked_div(streamed.packets).unwrap_or(0);
        let received =
            streamed.reverse_bytes + streamed.received_bytes.saturating_sub(streamed.back) * mean;
        let sent = streamed.bytes;
        self.by_second.mark(now, CarriedBytes { sent, received });
    }

    fn send_all(&mut self, stop: &Stop) -> io::Result<()> {
        let due = |frame| video::FRAME_INTERVAL.times(frame);
        let mut frame = 0;
        while due(frame) < self.load.duration && !stop.is_set() {
            while self.elapsed() < due(frame) && !stop.is_set() {
                self.receive_replies((due(frame) - self.elapsed()).min(TICK).max(Span::ZERO))?;
            }
            if stop.is_set() {
                return Ok(());
            }
            self.mark_second();
            self.streamed.frames += u64::from(self.send_frame(number(frame), stop)?);
            // A late sender skips frames, as a player would, and sends no burst.
            let now = self.elapsed().min(self.load.duration);
            let next = (now.nanos() / video::FRAME_INTERVAL.nanos()).max(frame + 1);
            self.count_due(frame, next);
            frame = next;
        }
        if !stop.is_set() {
            let end = RawNanos(self.start_nanos + self.load.duration.nanos());
            clock::sleep_until(end, clock::Spin::NONE);
            self.mark_second();
        }
        Ok(())
    }

    /// Sends one frame; returns whether it was sent completely before the end or a stop.
    fn send_frame(&mut self, frame: u64, stop: &Stop) -> io::Result<bool> {
        for size in video::packets(frame, self.load.rate) {
            // At a high rate a frame takes longer than its interval.
            if stop.is_set() || self.elapsed() >= self.load.duration {
                return Ok(false);
            }
            self.send(size)?;
        }
        Ok(true)
    }

    /// Counts these frames as due.
    fn count_due(&mut self, from: i64, until: i64) {
        self.streamed.due += number(until - from);
        let bytes = (from..until).map(|frame| video::bytes(number(frame), self.load.rate));
        self.streamed.due_bytes += bytes.sum::<u64>();
    }

    fn send(&mut self, size: u64) -> io::Result<()> {
        let wall = clock::wall().0;
        #[expect(clippy::cast_possible_truncation, reason = "STAMP numbers wrap")]
        let packet = SenderPacket {
            seq: self.streamed.packets as u32,
            timestamp: Timestamp::from_unix(wall, StampFormat::Ntp).unwrap_or(Timestamp(0)),
            // This timestamp needs no accuracy.
            error: ErrorEstimate::from_nanos(1_000_000_000, StampFormat::Ntp),
            ssid: 0,
        };
        let size = usize::try_from(size).unwrap_or(BUFFER_BYTES);
        let size = request_size(Auth::Open, size);
        let mut datagram = Vec::with_capacity(size);
        encode_request(&packet, Auth::Open, size, &mut datagram).map_err(io::Error::other)?;
        let bytes = datagram.len() as u64;
        if !self.load.permit.message(bytes, clock::raw().0) {
            self.streamed.refused += 1;
            return Ok(());
        }
        match self.socket.send(&datagram) {
            Ok(_) => {
                self.streamed.packets += 1;
                self.streamed.bytes += datagram.len() as u64;
            }
            // A full queue, or an ICMP error about an earlier packet.
            Err(_) => self.streamed.refused += 1,
        }
        Ok(())
    }

    /// Reads returned packets; waits at most this long.
    fn receive_replies(&mut self, max: Span) -> io::Result<()> {
        let mut max = max;
        loop {
            let mut poll_fds = [Awaited::readable(self.socket.as_fd())];
            ppoll::wait(&mut poll_fds, Some(max.to_duration()))?;
            if !poll_fds[0].has_something() {
                return Ok(());
            }
            max = Span::ZERO;
            match self.socket.recv(&mut self.buffer) {
                Ok(length) => self.take(length),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(_) => return Ok(()),
            }
        }
    }

    fn take(&mut self, length: usize) {
        let Ok(reply) = decode_reply(&self.buffer[..length], Auth::Open) else {
            return;
        };
        self.streamed.back += 1;
        if self.streamed.back == 1 {
            self.start_counter.mark_running();
        }
        self.streamed.reverse_bytes += length as u64;
        self.streamed.incoming = self.elapsed();
        // The reflector numbers its replies from 0.
        self.streamed.received_bytes = self
            .streamed
            .received_bytes
            .max(u64::from(reply.packet.seq) + 1);
    }
}

/// A non-negative frame number.
fn number(frames: i64) -> u64 {
    u64::try_from(frames).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Of 100 Gbit/s: the first frame alone takes seconds.
    fn stream<'a>(load: &'a StreamLoad, start_counter: &'a StartCounter<'a>) -> Stream<'a> {
        let to = load.address;
        Stream {
            load,
            start_counter,
            socket: open(to).expect("a socket"),
            streamed: Streamed::default(),
            buffer: vec![0; BUFFER_BYTES],
            start_nanos: clock::raw().0,
            by_second: BySecond::default(),
        }
    }

    fn load(to: &UdpSocket, duration: Span) -> StreamLoad {
        StreamLoad {
            address: to.local_addr().expect("an address"),
            rate: BitRate(100_000_000_000),
            duration,
            permit: Permit::ANYTHING,
        }
    }

    #[test]
    fn a_stream_ends_within_a_frame_and_counts_unsent_frames() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let load = load(&receiver, Span::from_millis(90));
        let start_counter = StartCounter::of(1, &|| {});
        let mut stream = stream(&load, &start_counter);
        stream.send_all(&Stop::new()).expect("it ends");
        let streamed = &stream.streamed;
        assert_eq!(
            (streamed.frames, streamed.due, streamed.left_out()),
            (0, 3, 3)
        );
        assert!(streamed.percent() < 100.0 - HELD, "{streamed:?}");
    }

    #[test]
    fn a_stream_stops_within_a_frame() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let load = load(&receiver, Span::from_secs(3_600));
        let start_counter = StartCounter::of(1, &|| {});
        let mut stream = stream(&load, &start_counter);
        let stop = Stop::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                receiver.recv(&mut [0; 8]).expect("the first packet");
                stop.set();
            });
            stream.send_all(&stop).expect("it ends");
        });
        assert_eq!(stream.streamed.frames, 0);
        assert!(stream.streamed.left_out() >= 1, "{:?}", stream.streamed);
    }
}
