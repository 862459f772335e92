//! A constant bit-rate in UDP packets, in frames as a video has them.
//!
//! The packets are STAMP requests, so that a reflector sends each back and tells how many it had:
//! what was lost on the way there and on the way back is known apart.

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

use crate::beginning::Beginning;
use crate::by_second::{BySecond, CarriedBytes, LoadSecond};
use crate::duty::HELD;
use crate::error::LoadError;
use crate::video;

/// How long the last packets may take to come back.
const GRACE: Span = Span::from_secs(1);
/// How soon a set stop flag is seen.
const TICK: Span = Span::from_millis(50);
/// The largest datagram there is.
const LARGEST: usize = 1 << 16;

/// A stream to a reflector, which sends it back.
#[derive(Clone, Debug)]
pub struct StreamLoad {
    /// Where it goes.
    pub address: SocketAddr,
    /// Payload that is sent, each way.
    pub rate: BitRate,
    /// After how long it ends.
    pub duration: Span,
    /// What may be sent by all that shares it; packets beyond it are refused.
    pub permit: Permit,
}

/// What was sent, and what became of it.
#[derive(Clone, Debug, Default)]
pub struct Streamed {
    /// Frames that were sent whole.
    pub frames: u64,
    /// Frames whose time came, and their payload.
    pub due: u64,
    pub due_bytes: u64,
    pub packets: u64,
    pub bytes: u64,
    /// Packets that the reflector had, as the last one that came back tells.
    pub there: u64,
    /// Packets and bytes that came back.
    pub back: u64,
    pub reverse_bytes: u64,
    /// When something came back last.
    pub incoming: Span,
    /// Packets that this host did not send.
    pub refused: u64,
    pub lasted: Span,
    /// Its rates within each whole second. What the reflector had is known by its count of packets.
    pub seconds: Vec<LoadSecond>,
}

impl Streamed {
    /// Frames whose time passed before they were sent whole.
    pub fn left_out(&self) -> u64 {
        self.due - self.frames
    }

    /// How much of what was due was sent, percent.
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn percent(&self) -> f64 {
        100.0 * self.bytes as f64 / self.due_bytes.max(1) as f64
    }

    /// Why it is not the stream that was asked for.
    pub fn fault(&self, rate: BitRate, to: SocketAddr) -> Option<String> {
        if self.back == 0 {
            return Some(format!(
                "no packet came back from {to}: is neph reflect there, and does it take UDP without \
                 a key?"
            ));
        }
        let silent = self.lasted - self.incoming;
        if silent >= GRACE {
            let incoming = self.incoming;
            return Some(format!(
                "{to} stopped answering after {incoming}, {silent} before the end: does neph reflect still \
                 work there?"
            ));
        }
        let held = self.percent();
        (100.0 - held > HELD).then(|| {
            let (left_out, due) = (self.left_out(), self.due);
            format!(
                "{held:.1} % of {rate} was sent; frames skipped: {left_out} of {due}: other processes used the CPU, or a CPU limit applies"
            )
        })
    }
}

impl StreamLoad {
    /// Streams until the time is over or `stop` is set, and what came back until a second later.
    ///
    /// # Errors
    /// No socket can be opened, or waited on.
    pub fn run(&self, beginning: &Beginning<'_>, stop: &Stop) -> Result<Streamed, LoadError> {
        let to = self.address;
        let socket = open(to).map_err(|source| LoadError::Socket { to, source })?;
        let mut stream = Stream {
            load: self,
            beginning,
            socket,
            reported: Streamed::default(),
            buffer: vec![0; LARGEST],
            began: clock::raw().0,
            by_second: BySecond::default(),
        };
        let streamed = stream.run(stop);
        streamed.map_err(|source| LoadError::Stream { to, source })
    }
}

fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    // A datagram that was announced and then found broken is not waited for.
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    Ok(socket)
}

struct Stream<'a> {
    load: &'a StreamLoad,
    beginning: &'a Beginning<'a>,
    socket: UdpSocket,
    reported: Streamed,
    buffer: Vec<u8>,
    began: i64,
    by_second: BySecond,
}

impl Stream<'_> {
    fn elapsed(&self) -> Span {
        Span::from_nanos(clock::raw().0 - self.began)
    }

    fn run(&mut self, stop: &Stop) -> io::Result<Streamed> {
        self.send_all(stop)?;
        self.reported.lasted = self.elapsed();
        let until = self.elapsed() + GRACE;
        while self.reported.back < self.reported.packets && self.elapsed() < until {
            self.hear(TICK)?;
        }
        let mut reported = std::mem::take(&mut self.reported);
        reported.seconds = std::mem::take(&mut self.by_second).into_seconds();
        Ok(reported)
    }

    /// The rates of a second that is over.
    fn mark_second(&mut self) {
        let now = self.elapsed();
        if now < self.by_second.due() {
            return;
        }
        let reported = &self.reported;
        let mean = reported.bytes.checked_div(reported.packets).unwrap_or(0);
        let received = reported.reverse_bytes + reported.there.saturating_sub(reported.back) * mean;
        let sent = reported.bytes;
        self.by_second.mark(now, CarriedBytes { sent, received });
    }

    fn send_all(&mut self, stop: &Stop) -> io::Result<()> {
        let due = |frame| video::INTERVAL.times(frame);
        let mut frame = 0;
        while due(frame) < self.load.duration && !stop.is_set() {
            while self.elapsed() < due(frame) && !stop.is_set() {
                self.hear((due(frame) - self.elapsed()).min(TICK).max(Span::ZERO))?;
            }
            if stop.is_set() {
                return Ok(());
            }
            self.mark_second();
            self.reported.frames += u64::from(self.send_frame(number(frame), stop)?);
            // Who was kept from sending leaves frames out, as a player would: it sends no burst.
            let now = self.elapsed().min(self.load.duration);
            let next = (now.nanos() / video::INTERVAL.nanos()).max(frame + 1);
            self.count_due(frame, next);
            frame = next;
        }
        if !stop.is_set() {
            let end = RawNanos(self.began + self.load.duration.nanos());
            clock::sleep_until(end, clock::Spin::NONE);
            self.mark_second();
        }
        Ok(())
    }

    /// Sends one frame; whether all of it, before the end of the time and before it was stopped.
    fn send_frame(&mut self, frame: u64, stop: &Stop) -> io::Result<bool> {
        for size in video::packets(frame, self.load.rate) {
            // A frame of a large rate takes longer than its time.
            if stop.is_set() || self.elapsed() >= self.load.duration {
                return Ok(false);
            }
            self.send(size)?;
        }
        Ok(true)
    }

    /// The time of these frames came.
    fn count_due(&mut self, from: i64, until: i64) {
        self.reported.due += number(until - from);
        let bytes = (from..until).map(|frame| video::bytes(number(frame), self.load.rate));
        self.reported.due_bytes += bytes.sum::<u64>();
    }

    fn send(&mut self, size: u64) -> io::Result<()> {
        let wall = clock::wall().0;
        #[expect(clippy::cast_possible_truncation, reason = "STAMP numbers wrap")]
        let packet = SenderPacket {
            seq: self.reported.packets as u32,
            timestamp: Timestamp::from_unix(wall, StampFormat::Ntp).unwrap_or(Timestamp(0)),
            // Nobody asks what time it is here.
            error: ErrorEstimate::from_nanos(1_000_000_000, StampFormat::Ntp),
            ssid: 0,
        };
        let size = usize::try_from(size).unwrap_or(LARGEST);
        let size = request_size(Auth::Open, size);
        let mut datagram = Vec::with_capacity(size);
        encode_request(&packet, Auth::Open, size, &mut datagram).map_err(io::Error::other)?;
        let bytes = datagram.len() as u64;
        if !self.load.permit.message(bytes, clock::raw().0) {
            self.reported.refused += 1;
            return Ok(());
        }
        match self.socket.send(&datagram) {
            Ok(_) => {
                self.reported.packets += 1;
                self.reported.bytes += datagram.len() as u64;
            }
            // A full queue here, or the word that nobody listened to an earlier one.
            Err(_) => self.reported.refused += 1,
        }
        Ok(())
    }

    /// Takes in what comes back within a time.
    fn hear(&mut self, most: Span) -> io::Result<()> {
        let mut most = most;
        loop {
            let mut awaited = [Awaited::readable(self.socket.as_fd())];
            ppoll::wait(&mut awaited, Some(most.to_duration()))?;
            if !awaited[0].has_something() {
                return Ok(());
            }
            most = Span::ZERO;
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
        self.reported.back += 1;
        if self.reported.back == 1 {
            self.beginning.one_works();
        }
        self.reported.reverse_bytes += length as u64;
        self.reported.incoming = self.elapsed();
        // The reflector numbers what it answers from 0.
        self.reported.there = self.reported.there.max(u64::from(reply.packet.seq) + 1);
    }
}

/// Of frames, from 0 on.
fn number(frames: i64) -> u64 {
    u64::try_from(frames).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Of 100 Gbit/s, of which the first frame alone takes seconds.
    fn stream<'a>(load: &'a StreamLoad, beginning: &'a Beginning<'a>) -> Stream<'a> {
        let to = load.address;
        Stream {
            load,
            beginning,
            socket: open(to).expect("a socket"),
            reported: Streamed::default(),
            buffer: vec![0; LARGEST],
            began: clock::raw().0,
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
    fn the_end_of_the_time_is_heard_within_a_frame_and_what_was_left_out_is_counted() {
        let there = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let load = load(&there, Span::from_millis(90));
        let beginning = Beginning::of(1, &|| {});
        let mut stream = stream(&load, &beginning);
        stream.send_all(&Stop::new()).expect("it ends");
        let reported = &stream.reported;
        assert_eq!(
            (reported.frames, reported.due, reported.left_out()),
            (0, 3, 3)
        );
        assert!(reported.percent() < 100.0 - HELD, "{reported:?}");
    }

    #[test]
    fn a_stop_is_heard_within_a_frame() {
        let there = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let load = load(&there, Span::from_secs(3_600));
        let beginning = Beginning::of(1, &|| {});
        let mut stream = stream(&load, &beginning);
        let stop = Stop::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                there.recv(&mut [0; 8]).expect("the first packet");
                stop.set();
            });
            stream.send_all(&stop).expect("it ends");
        });
        assert_eq!(stream.reported.frames, 0);
        assert!(stream.reported.left_out() >= 1, "{:?}", stream.reported);
    }
}
