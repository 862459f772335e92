//! Our own bulk upload to a reflector: how much a path carries, second by second.
//!
//! Counts what the peer's TCP acknowledged, not what was written: a full send buffer is no
//! throughput. Goes in plain text whatever the target's scheme: encryption costs processor time,
//! and the path is what is asked about.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use neph_model::{Instant, Own, Span, Stop, Target, ThroughputSecond};
use neph_sys::place::Place;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::tcp::{self, TcpStats};
use neph_wire::echo::Request;
use neph_wire::frame::{HELLO_LEN, Hello, HelloReply, Mode, Status};
use socket2::SockRef;

use crate::ProbeError;
use crate::fault;
use crate::stamp_clock::{StampClock, now};
use crate::transfer::{Transfer, rate};

/// For connecting.
const PATIENCE: Duration = Duration::from_secs(5);
/// For the reflector's answer to the hello: another upload may have the turn, for 10 s at most while we
/// wait.
const TURN_PATIENCE: Span = Span::from_secs(15);
const SECOND: Span = Span::from_secs(1);
/// A last piece shorter than this says nothing about a rate.
const LEAST_PIECE: Span = Span::from_millis(100);
/// Written at once. Padding that no compressor on the way can shrink.
const CHUNK: usize = 256 << 10;

/// What is asked of an upload.
#[derive(Clone, Debug)]
pub struct UploadSpec {
    /// What the upload is aimed at: a reflector of ours, whatever the scheme.
    pub target: Target,
    /// Where that is.
    pub address: SocketAddr,
    /// How long it lasts; the reflector has a cap (30 s by default).
    pub duration: Span,
    /// Congestion control; `None` keeps the system's.
    pub congestion: Option<String>,
    /// The place (a lab's site) to send from.
    pub site: Option<Place>,
}

/// Uploads for the asked time, or until `stop` is set.
///
/// # Errors
/// When there is no connection, the reflector refuses (busy, too long), or the connection breaks
/// before a piece was measured.
pub fn upload(spec: &UploadSpec, stop: &Stop) -> Result<Transfer, ProbeError> {
    match &spec.site {
        None => carry_out(spec, stop),
        Some(site) => site.run(|| carry_out(spec, stop))?,
    }
}

fn carry_out(spec: &UploadSpec, stop: &Stop) -> Result<Transfer, ProbeError> {
    let fault = |operation| {
        move |source| ProbeError::Socket {
            operation,
            address: spec.address,
            source,
        }
    };
    let mut stream = TcpStream::connect_timeout(&spec.address, PATIENCE)
        .map_err(fault("connect for a bulk upload to"))?;
    if let Some(name) = &spec.congestion {
        tcp::set_congestion_control(stream.as_fd(), name)
            .map_err(|error| io::Error::new(error.kind(), format!("'{name}': {error}")))
            .map_err(fault("choose the congestion control of an upload to"))?;
    }
    greet(&mut stream, spec, stop)?;
    let broken = fault("upload to");
    // What the kernel still holds at the end is dropped: waiting for it would outlast the upload.
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .map_err(broken)?;
    stream.set_nonblocking(true).map_err(broken)?;
    let started = StampClock::new().anchor().wall;
    let mut meter = Meter::start(tcp::stats(stream.as_fd()).map_err(broken)?);
    let outcome = pour(&mut stream, &mut meter, spec.duration, stop);
    match outcome {
        Err(source) if meter.seconds.is_empty() => Err(broken(source)),
        // What was measured before the connection broke stands.
        _ => Ok(Transfer {
            tool: "neph",
            started,
            goodput: meter.overall(),
            seconds: meter.seconds,
        }),
    }
}

fn greet(stream: &mut TcpStream, spec: &UploadSpec, stop: &Stop) -> Result<(), ProbeError> {
    let millis = spec.duration.nanos() / 1_000_000;
    let hello = Hello {
        mode: Mode::Upload,
        reply_size: 0,
        duration_ms: u32::try_from(millis).unwrap_or(u32::MAX),
    };
    let mut bytes = Vec::with_capacity(HELLO_LEN);
    hello.encode(&mut bytes);
    let mut reply = [0; HELLO_LEN];
    stream
        .set_read_timeout(Some(Stop::PATIENCE.to_duration()))
        .and_then(|()| stream.write_all(&bytes))
        .and_then(|()| read_reply(stream, &mut reply, stop))
        .map_err(|source| ProbeError::Socket {
            operation: "ask for a bulk upload at",
            address: spec.address,
            source,
        })?;
    let refused = |reason: String| ProbeError::UploadRefused {
        target: spec.target.to_string(),
        reason,
    };
    match HelloReply::decode(&reply)
        .map_err(|error| refused(error.to_string()))?
        .status
    {
        Status::Granted => Ok(()),
        Status::Refused(refusal) => Err(refused(refusal.to_string())),
    }
}

/// Reads the reflector's answer, which comes when it is our turn.
fn read_reply(stream: &mut TcpStream, reply: &mut [u8], stop: &Stop) -> io::Result<()> {
    let latest = now() + TURN_PATIENCE;
    let mut filled = 0;
    while filled < reply.len() {
        match stream.read(&mut reply[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if fault::is_late(&error) && stop.is_set() => {
                return Err(io::ErrorKind::Interrupted.into());
            }
            Err(error) if fault::is_late(&error) && now() < latest => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes as fast as the path takes it, and has the meter read at every second.
fn pour(stream: &mut TcpStream, meter: &mut Meter, span: Span, stop: &Stop) -> io::Result<()> {
    let mut chunk = Vec::with_capacity(CHUNK);
    Request { seq: 0 }.encode_into(CHUNK, &mut chunk);
    let end = meter.began + span;
    while now() < end && !stop.is_set() {
        if now() >= meter.next() {
            meter.read(tcp::stats(stream.as_fd())?, now());
        }
        match stream.write(&chunk) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let until = meter.next().min(end).min(now() + Stop::PATIENCE);
                let mut awaited = [Awaited::writable(stream.as_fd())];
                ppoll::wait(&mut awaited, Some((until - now()).to_duration()))?;
            }
            Err(error) => return Err(error),
        }
    }
    if now() - meter.since >= LEAST_PIECE {
        meter.read(tcp::stats(stream.as_fd())?, now());
    }
    Ok(())
}

/// Turns the connection's counters into seconds.
#[derive(Debug)]
struct Meter {
    began: Instant<Own>,
    first: TcpStats,
    since: Instant<Own>,
    latest: TcpStats,
    seconds: Vec<ThroughputSecond>,
}

impl Meter {
    fn start(stats: TcpStats) -> Self {
        let began = now();
        Self {
            began,
            first: stats,
            since: began,
            latest: stats,
            seconds: Vec::with_capacity(64),
        }
    }

    /// When to read next: whole seconds since the beginning, however late the last reading was.
    fn next(&self) -> Instant<Own> {
        let whole = i64::try_from(self.seconds.len() + 1).unwrap_or(i64::MAX);
        self.began + SECOND.times(whole)
    }

    fn read(&mut self, stats: TcpStats, at: Instant<Own>) {
        let before = self.latest;
        self.seconds.push(ThroughputSecond {
            goodput: rate(stats.bytes_acked - before.bytes_acked, at - self.since),
            retransmissions: stats.retransmissions.wrapping_sub(before.retransmissions),
            spurious_retransmissions: self.spurious(stats) - self.spurious(before),
            cwnd_segments: Some(stats.cwnd),
            srtt: Some(Span::from_micros(i64::from(stats.srtt_us))),
        });
        (self.since, self.latest) = (at, stats);
    }

    /// Retransmissions since the beginning that the receiver reported as duplicates. Neither counter
    /// ever falls.
    fn spurious(&self, stats: TcpStats) -> u32 {
        let sent = stats
            .retransmissions
            .wrapping_sub(self.first.retransmissions);
        let doubled = stats
            .dsack_duplicates
            .wrapping_sub(self.first.dsack_duplicates);
        doubled.min(sent)
    }

    fn overall(&self) -> neph_model::BitRate {
        let bytes = self.latest.bytes_acked - self.first.bytes_acked;
        rate(bytes, self.since - self.began)
    }
}
