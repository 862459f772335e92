//! Generates traffic on one TCP connection to a reflector. Messages follow each other, or each
//! request waits for the last reply.
//!
//! Owns the connection and its counters. Replies show what the reflector received.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;

use neph_model::{BitRate, Permit, Span, Stop};
use neph_sys::tcp::{self, TcpStats};
use neph_wire::echo::{REQUEST_MIN, Request};
use neph_wire::frame::{FrameError, HELLO_LEN, Hello, Mode, Status, frame_prefix, next_frame};

use crate::by_second::{BySecond, CarriedBytes, LoadSecond};
use crate::pace::Pace;
use crate::start_counter::StartCounter;
use crate::transfer::{Driver, Next, Traffic, Unanswered, connect, greet, now};

/// Timeout for connecting and for the answer to the hello: a busy peer is slow.
const CONNECT_TIMEOUT: Span = Span::from_secs(10);
/// How long data in flight may take to arrive after the end.
const REPLY_TIMEOUT: Span = Span::from_secs(2);
/// A connection without progress in either direction for this long within [`REPLY_TIMEOUT`] has
/// failed.
const NO_PROGRESS_TIMEOUT: Span = Span::from_secs(1);
/// Interval of the progress checks.
const TICK: Span = Span::from_millis(50);
const PREFIX: usize = 4;

/// The traffic of a connection.
#[derive(Clone, Debug)]
pub struct Subject {
    pub address: SocketAddr,
    /// Bytes of each message.
    pub(crate) request: usize,
    /// Bytes of each reply.
    pub(crate) reply: usize,
    /// Whether each request waits for the last reply. The rate then limits requests and replies
    /// together.
    pub(crate) in_turn: bool,
    pub(crate) rate: Option<BitRate>,
    pub(crate) duration: Span,
    /// Send limit, shared with other traffic; beyond it this traffic waits.
    pub(crate) permit: Permit,
}

impl Subject {
    /// Limits the traffic to `permit`.
    #[must_use]
    pub fn within(self, permit: Permit) -> Self {
        Self { permit, ..self }
    }
}

/// Counters of a connection.
#[derive(Debug, Default)]
pub struct Carried {
    /// Messages written, and messages answered.
    pub messages: u64,
    pub answered: u64,
    /// Bytes written, bytes that the reflector received according to its replies, and bytes of the
    /// replies.
    pub sent: u64,
    pub received: u64,
    pub back: u64,
    pub retransmissions: u32,
    /// Spurious retransmissions among them.
    pub spurious: u32,
    /// Planned sending time.
    pub lasted: Span,
    /// Bytes received and bytes of replies within that time: the rates are computed from these.
    pub received_in_time: u64,
    pub back_in_time: u64,
    /// Rates within each complete second from the kernel's counters: bytes sent without
    /// retransmissions, and bytes that the receiver's kernel acknowledged.
    pub seconds: Vec<LoadSecond>,
    /// Why it, or its replies, ended early.
    pub broken: Option<String>,
}

/// Generates the traffic until its time is over or `stop` is set. It works from the first reply on.
pub(crate) fn converse(
    subject: &Subject,
    start_counter: &StartCounter,
    stop: &Stop,
) -> Result<Carried, String> {
    let connected = connect(subject.address, CONNECT_TIMEOUT);
    let mut stream = connected.map_err(|error| unconnected(&error, subject.address.ip()))?;
    agree(&mut stream, subject)?;
    let mut talk = ConversationState::new(subject, start_counter);
    let start = now();
    let driven = Driver::within(subject.permit.clone()).drive(&mut stream, &mut talk, start, stop);
    let (end_time, stats) = (
        now() - start,
        tcp::stats(stream.as_fd()).unwrap_or_default(),
    );
    if let Err(broken) = driven {
        if talk.overrun.is_none() {
            talk.close(stats, end_time);
        }
        talk.carried.broken = Some(broken.source.to_string());
    } else {
        talk.carried.broken = talk.unanswered(end_time);
    }
    talk.carried.seconds = talk.by_second.into_seconds();
    talk.carried.retransmissions = stats.retransmissions;
    talk.carried.spurious = stats.dsack_duplicates.min(stats.retransmissions);
    Ok(talk.carried)
}

/// Why the connection failed, and the remedy.
fn unconnected(error: &io::Error, target: IpAddr) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            format!("{error}: start neph reflect there, or name the port of one")
        }
        ErrorKind::NetworkUnreachable => {
            format!("{error}: no route leads there; see 'ip route get {target}'")
        }
        // No answer to ARP or neighbour discovery, or a route that forbids the address.
        ErrorKind::HostUnreachable => format!(
            "{error}: is a machine with that address on, and does the route lead to it? See \
             'ip route get {target}'"
        ),
        _ => format!(
            "{error}: is neph reflect there, and does every firewall let TCP through to it?"
        ),
    }
}

fn agree(stream: &mut TcpStream, subject: &Subject) -> Result<(), String> {
    let hello = Hello {
        mode: Mode::Echo,
        reply_size: u32::try_from(subject.reply).unwrap_or(u32::MAX),
        duration_ms: 0,
    };
    let silent = |error| format!("it is no neph reflect, or does not answer: {error}");
    stream.set_nodelay(true).map_err(silent)?;
    let reply =
        greet(stream, &hello, CONNECT_TIMEOUT, &Stop::new()).map_err(|error| match error {
            Unanswered::Io(error) => silent(error),
            Unanswered::Frame(FrameError::WrongMagic(_)) => {
                "it answers, but is no neph reflect: name the port of one".to_owned()
            }
            Unanswered::Frame(other) => other.to_string(),
        })?;
    if let Status::Refused(refusal) = reply.status {
        return Err(refusal.to_string());
    }
    if subject.request > reply.max_request as usize {
        let max = reply.max_request;
        return Err(format!("it takes no message of more than {max} bytes"));
    }
    stream.set_nonblocking(true).map_err(|e| e.to_string())
}

struct ConversationState<'s> {
    subject: &'s Subject,
    start_counter: &'s StartCounter<'s>,
    /// A complete message with its length, rewritten with each sequence number.
    message: Vec<u8>,
    /// Bytes of it that are written.
    written: usize,
    inbox: Vec<u8>,
    pace: Pace,
    is_stopped: bool,
    /// Time of the last reply.
    received: Span,
    /// State since the end of its time.
    overrun: Option<OverrunProgress>,
    by_second: BySecond,
    carried: Carried,
}

/// Progress of a connection since the end of its time.
#[derive(Clone, Copy, Debug)]
struct OverrunProgress {
    /// Bytes that the peer's kernel had acknowledged at the end, and has acknowledged now.
    acked_before: u64,
    last_acked: u64,
    /// Time of the last newly acknowledged byte.
    moved: Span,
    /// Time of the last check.
    checked_at: Span,
}

impl<'s> ConversationState<'s> {
    fn new(subject: &'s Subject, start_counter: &'s StartCounter) -> Self {
        let size = subject.request.max(REQUEST_MIN);
        let mut message = frame_prefix(u32::try_from(size).unwrap_or(u32::MAX)).to_vec();
        Request { seq: 0 }.encode_into(size, &mut message);
        Self {
            subject,
            start_counter,
            written: message.len(),
            message,
            inbox: Vec::new(),
            pace: Pace::new(subject.rate),
            is_stopped: false,
            received: Span::ZERO,
            overrun: None,
            by_second: BySecond::default(),
            carried: Carried::default(),
        }
    }

    /// Ends the time: no new message begins, and rates count only the data until now.
    fn close(&mut self, stats: TcpStats, now: Span) {
        self.overrun = Some(OverrunProgress {
            acked_before: stats.bytes_acked,
            last_acked: stats.bytes_acked,
            moved: now,
            checked_at: now,
        });
        self.carried.lasted = now;
        self.carried.received_in_time = self.carried.received;
        self.carried.back_in_time = self.carried.back;
    }

    /// Why messages have no reply although there was enough time. The reflector sent nothing, and
    /// it either had all of the next message long ago or accepted no more data. A slow reflector is
    /// no fault.
    fn unanswered(&self, now: Span) -> Option<String> {
        let overrun = self.overrun.filter(|_| !self.is_all_there())?;
        let expected_bytes =
            (self.carried.answered + 1) * self.message.len() as u64 + HELLO_LEN as u64;
        // The kernel counts the SYN as a byte.
        let is_answerable =
            overrun.acked_before > expected_bytes || now - overrun.moved >= NO_PROGRESS_TIMEOUT;
        if now - self.received < NO_PROGRESS_TIMEOUT || !is_answerable {
            return None;
        }
        let (received, answered) = (self.received, self.carried.answered);
        let since = match answered {
            0 => "the reflector took the connection and answered no message".to_owned(),
            _ => format!(
                "the reflector stopped answering after {received}, with {answered} answered"
            ),
        };
        Some(format!("{since}: does neph reflect still work there?"))
    }

    fn is_all_there(&self) -> bool {
        self.carried.answered == self.carried.messages && !self.is_writing()
    }

    fn is_to_end(&self, now: Span) -> bool {
        now >= self.subject.duration || self.is_stopped
    }

    fn is_writing(&self) -> bool {
        self.written < self.message.len()
    }

    fn may_ask(&self) -> bool {
        !self.subject.in_turn || self.carried.answered == self.carried.messages
    }

    /// Bytes that the rate counts.
    fn weight(&self) -> u64 {
        let back = if self.subject.in_turn {
            self.carried.back
        } else {
            0
        };
        self.carried.sent + back
    }

    /// Prepares the next message.
    fn begin(&mut self) -> io::Result<()> {
        let seq = self.carried.messages;
        Request { seq }
            .overwrite(&mut self.message[PREFIX..])
            .map_err(io::Error::other)?;
        self.written = 0;
        Ok(())
    }

    /// Size of a message without its frame; a reply is counted in the same way.
    fn size(&self) -> u64 {
        (self.message.len() - PREFIX) as u64
    }

    /// The next step after the end of the time, until all data arrived or [`REPLY_TIMEOUT`] is
    /// over.
    fn next_overrun_step(&self, overrun: OverrunProgress, now: Span) -> Next<'_> {
        let deadline = self.carried.lasted + REPLY_TIMEOUT;
        if self.is_all_there() || now >= deadline {
            Next::End
        } else if now - overrun.checked_at >= TICK {
            Next::Measure
        } else {
            self.go_on(deadline.min(overrun.checked_at + TICK))
        }
    }

    /// Writes the rest of a message, or waits for replies.
    fn go_on(&self, until: Span) -> Next<'_> {
        match self.message.get(self.written..) {
            Some(bytes @ [_, ..]) => Next::Write { bytes, until },
            _ => Next::Wait(until),
        }
    }
}

impl Traffic for ConversationState<'_> {
    fn next(&mut self, now: Span) -> io::Result<Next<'_>> {
        if let Some(overrun) = self.overrun {
            return Ok(self.next_overrun_step(overrun, now));
        }
        if self.is_to_end(now) || now >= self.by_second.due() {
            return Ok(Next::Measure);
        }
        let send_end = self.subject.duration.min(self.by_second.due());
        let mut until = send_end;
        if !self.is_writing() && self.may_ask() {
            let weight = self.weight();
            until = self.pace.due(now, weight).min(send_end);
            if until <= now {
                self.begin()?;
            }
        }
        Ok(self.go_on(until))
    }

    fn wrote(&mut self, count: usize) {
        self.written += count;
        if !self.is_writing() {
            self.carried.messages += 1;
            self.carried.sent += self.size();
        }
    }

    /// Processes the complete replies.
    fn received(&mut self, bytes: &[u8], now: Span) -> io::Result<()> {
        self.received = now;
        self.inbox.extend_from_slice(bytes);
        let mut taken = 0;
        while let Some((consumed, payload)) =
            next_frame(&self.inbox[taken..], u32::MAX).map_err(io::Error::other)?
        {
            self.carried.answered += 1;
            if self.carried.answered == 1 {
                self.start_counter.mark_running();
            }
            self.carried.back += payload.len() as u64;
            self.carried.received += self.size();
            taken += consumed;
        }
        self.inbox.drain(..taken);
        Ok(())
    }

    fn closed(&mut self, _now: Span) -> io::Result<()> {
        Err(io::Error::other("the reflector closed the connection"))
    }

    /// Called at the end of each second and at the end of the time. Later calls check whether the
    /// peer's kernel accepts more data.
    fn measured(&mut self, stats: TcpStats, now: Span) {
        if self.overrun.is_none() && now >= self.by_second.due() {
            let (sent, received) = (stats.bytes_sent, stats.bytes_acked);
            self.by_second.mark(now, CarriedBytes { sent, received });
        }
        if self.overrun.is_none() && !self.is_to_end(now) {
            return;
        }
        let Some(overrun) = &mut self.overrun else {
            return self.close(stats, now);
        };
        overrun.checked_at = now;
        if stats.bytes_acked > overrun.last_acked {
            (overrun.last_acked, overrun.moved) = (stats.bytes_acked, now);
        }
    }

    fn stopped(&mut self) {
        self.is_stopped = true;
    }
}
