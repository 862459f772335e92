//! The built-in bulk upload to a reflector: measures the throughput of a path, second by second.
//!
//! Counts what the peer's TCP acknowledged, not what was written: a full send buffer is no
//! throughput. Uses plain text for every scheme of the target: encryption costs CPU time, but the
//! path is measured.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use neph_model::{Permit, Span, Stop, Target, Wall};
use neph_sys::clock;
use neph_sys::place::Placement;
use neph_sys::tcp::{self, TcpStats};
use neph_wire::echo::Request;
use neph_wire::frame::{Hello, Mode, Status};
use socket2::SockRef;

use crate::transfer::{
    Driver, Meter, Next, Traffic, TransferError, TransferResult, Unanswered, connect, greet, now,
};

/// Timeout for connecting.
const CONNECT_TIMEOUT: Span = Span::from_secs(5);
/// Timeout for the reflector's answer to the hello: it may serve another upload first, for up to 10
/// s.
const TURN_TIMEOUT: Span = Span::from_secs(15);
/// A last part shorter than this has no meaningful rate.
const MIN_SAMPLE_INTERVAL: Span = Span::from_millis(100);
/// Bytes per write. Padding that no compressor on the path can shrink.
const CHUNK: usize = 256 << 10;

/// Parameters of an upload.
#[derive(Clone, Debug)]
pub struct UploadSpec {
    /// The target: a reflector of neph, whatever the scheme.
    pub target: Target,
    /// Its address.
    pub address: SocketAddr,
    /// Duration; the reflector has a cap (30 s by default).
    pub duration: Span,
    /// Congestion control; `None`: the system's default.
    pub congestion: Option<String>,
    /// The place (a lab's site) to send from.
    pub site: Option<Placement>,
    /// Send limit, shared with other traffic; beyond it the upload waits.
    pub permit: Permit,
}

/// Uploads until the duration is over or `stop` is set.
///
/// # Errors
/// There is no connection, the reflector refuses (busy, too long), or the connection breaks before
/// anything was measured.
pub fn upload(spec: &UploadSpec, stop: &Stop) -> Result<TransferResult, TransferError> {
    match &spec.site {
        None => carry_out(spec, stop),
        Some(site) => site.run(|| carry_out(spec, stop))?,
    }
}

fn carry_out(spec: &UploadSpec, stop: &Stop) -> Result<TransferResult, TransferError> {
    let fault = |operation| {
        move |source| TransferError::Socket {
            operation,
            address: spec.address,
            source,
        }
    };
    let mut stream =
        connect(spec.address, CONNECT_TIMEOUT).map_err(fault("connect for a bulk upload to"))?;
    if let Some(name) = &spec.congestion {
        tcp::set_congestion_control(stream.as_fd(), name)
            .map_err(|error| io::Error::new(error.kind(), format!("'{name}': {error}")))
            .map_err(fault("choose the congestion control of an upload to"))?;
    }
    request_upload(&mut stream, spec, stop)?;
    let to_fault = fault("upload to");
    // Drops unsent data at the end: waiting for it would prolong the upload.
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .map_err(to_fault)?;
    stream.set_nonblocking(true).map_err(to_fault)?;
    let started = Wall::from_unix_nanos(clock::wall().0);
    let mut pour = Uploader::new(tcp::stats(stream.as_fd()).map_err(to_fault)?, spec.duration);
    let outcome = Driver::within(spec.permit.clone()).drive(&mut stream, &mut pour, now(), stop);
    match outcome {
        Err(fault) if pour.meter.is_empty() => Err(to_fault(fault.source)),
        // Results from before the connection broke are valid.
        _ => {
            let (seconds, goodput) = pour.meter.end();
            Ok(TransferResult {
                tool: "neph",
                started,
                seconds,
                goodput,
            })
        }
    }
}

fn request_upload(
    stream: &mut TcpStream,
    spec: &UploadSpec,
    stop: &Stop,
) -> Result<(), TransferError> {
    let millis = spec.duration.nanos() / 1_000_000;
    let hello = Hello {
        mode: Mode::Upload,
        reply_size: 0,
        duration_ms: u32::try_from(millis).unwrap_or(u32::MAX),
    };
    let to_refused = |reason: String| TransferError::Refused {
        target: spec.target.to_string(),
        reason,
    };
    let reply = greet(stream, &hello, TURN_TIMEOUT, stop).map_err(|error| match error {
        Unanswered::Io(source) => TransferError::Socket {
            operation: "ask for a bulk upload at",
            address: spec.address,
            source,
        },
        Unanswered::Frame(error) => to_refused(error.to_string()),
    })?;
    match reply.status {
        Status::Granted => Ok(()),
        Status::Refused(refusal) => Err(to_refused(refusal.to_string())),
    }
}

/// Writes as fast as the path allows, and reads the meter every second.
#[derive(Debug)]
struct Uploader {
    chunk: Vec<u8>,
    meter: Meter,
    end: Span,
}

impl Uploader {
    fn new(stats: TcpStats, lasts: Span) -> Self {
        let mut chunk = Vec::with_capacity(CHUNK);
        Request { seq: 0 }.encode_into(CHUNK, &mut chunk);
        Self {
            chunk,
            meter: Meter::start(stats),
            end: lasts,
        }
    }
}

impl Traffic for Uploader {
    fn next(&mut self, now: Span) -> io::Result<Next<'_>> {
        Ok(if now >= self.end {
            if now - self.meter.since() >= MIN_SAMPLE_INTERVAL {
                Next::Measure
            } else {
                Next::End
            }
        } else if now >= self.meter.due() {
            Next::Measure
        } else {
            Next::Write {
                bytes: &self.chunk,
                until: self.meter.due().min(self.end),
            }
        })
    }

    /// A chunk is padding: the next write starts with a full one.
    fn wrote(&mut self, _count: usize) {}

    fn received(&mut self, _bytes: &[u8], _now: Span) -> io::Result<()> {
        Ok(())
    }

    fn closed(&mut self, _now: Span) -> io::Result<()> {
        Ok(())
    }

    fn measured(&mut self, stats: TcpStats, now: Span) {
        self.meter.read(stats, now);
    }

    fn stopped(&mut self) {
        self.end = Span::ZERO;
    }

    /// A reflector sends no data during an upload.
    fn needs_data(&self) -> bool {
        false
    }
}
