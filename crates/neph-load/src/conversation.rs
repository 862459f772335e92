//! One TCP connection to a reflector that carries traffic: messages one behind the other, or a
//! request only when the last reply is there.
//!
//! Owns the connection and what is counted on it. What was received there is known by its replies.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;

use neph_model::{BitRate, Permit, Span, Stop};
use neph_sys::tcp::{self, TcpStats};
use neph_wire::echo::{REQUEST_MIN, Request};
use neph_wire::frame::{FrameError, HELLO_LEN, Hello, Mode, Status, frame_prefix, next_frame};

use crate::beginning::Beginning;
use crate::by_second::{BySecond, CarriedBytes, LoadSecond};
use crate::pace::Pace;
use crate::transfer::{Driver, Next, Traffic, Unanswered, connect, greet, now};

/// For connecting and the answer to the hello: a busy peer takes its time.
const PATIENCE: Span = Span::from_secs(10);
/// How long what is on its way may take to arrive when the time is over.
const GRACE: Span = Span::from_secs(2);
/// Where it moves for so long, within that, neither way, nobody works at it any more.
const SILENCE: Span = Span::from_secs(1);
/// How often it is looked whether it moves.
const TICK: Span = Span::from_millis(50);
const PREFIX: usize = 4;

/// What a connection is to carry.
#[derive(Clone, Debug)]
pub struct Subject {
    pub address: SocketAddr,
    /// Bytes of each message.
    pub(crate) request: usize,
    /// Bytes of the reply to it.
    pub(crate) reply: usize,
    /// Whether each request waits for the last one's reply. The rate holds for both then.
    pub(crate) in_turn: bool,
    pub(crate) rate: Option<BitRate>,
    pub(crate) duration: Span,
    /// What may be sent by all that shares it; beyond it traffic waits.
    pub(crate) permit: Permit,
}

impl Subject {
    /// The same, which sends no more than this.
    #[must_use]
    pub fn within(self, permit: Permit) -> Self {
        Self { permit, ..self }
    }
}

/// What it carried.
#[derive(Debug, Default)]
pub struct Carried {
    /// Messages written, and those that were answered.
    pub messages: u64,
    pub answered: u64,
    /// Bytes written, those that the reflector received by its replies, and those of the replies.
    pub sent: u64,
    pub received: u64,
    pub back: u64,
    pub retransmissions: u32,
    /// Of these, those that the reflector had received already.
    pub spurious: u32,
    /// The time in which it was to send.
    pub lasted: Span,
    /// Of what was received and came back, the bytes within that time: of them are its rates.
    pub received_in_time: u64,
    pub back_in_time: u64,
    /// Its rates within each whole second, as the kernel counted: what was sent for the first time, and what
    /// the receiver's kernel acknowledged.
    pub seconds: Vec<LoadSecond>,
    /// Why it ended before its time, or its answers did.
    pub broken: Option<String>,
}

/// Carries the traffic until its time is over or `stop` is set; it has begun with the first reply.
pub(crate) fn converse(
    subject: &Subject,
    beginning: &Beginning,
    stop: &Stop,
) -> Result<Carried, String> {
    let connected = connect(subject.address, PATIENCE);
    let mut stream = connected.map_err(|error| unconnected(&error, subject.address.ip()))?;
    agree(&mut stream, subject)?;
    let mut talk = Talk::new(subject, beginning);
    let began = now();
    let driven = Driver::within(subject.permit.clone()).drive(&mut stream, &mut talk, began, stop);
    let (ended, stats) = (
        now() - began,
        tcp::stats(stream.as_fd()).unwrap_or_default(),
    );
    if let Err(broken) = driven {
        if talk.over.is_none() {
            talk.close(stats, ended);
        }
        talk.carried.broken = Some(broken.source.to_string());
    } else {
        talk.carried.broken = talk.unanswered(ended);
    }
    talk.carried.seconds = talk.by_second.into_seconds();
    talk.carried.retransmissions = stats.retransmissions;
    talk.carried.spurious = stats.dsack_duplicates.min(stats.retransmissions);
    Ok(talk.carried)
}

/// Why nobody is there, and what to do about it.
fn unconnected(error: &io::Error, target: IpAddr) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            format!("{error}: start neph reflect there, or name the port of one")
        }
        ErrorKind::NetworkUnreachable => {
            format!("{error}: no route leads there; see 'ip route get {target}'")
        }
        // Nobody in its network told who has the address, or a route forbids it.
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
    let answer = greet(stream, &hello, PATIENCE, &Stop::new()).map_err(|error| match error {
        Unanswered::Io(error) => silent(error),
        Unanswered::Frame(FrameError::Magic(_)) => {
            "it answers, but is no neph reflect: name the port of one".to_owned()
        }
        Unanswered::Frame(other) => other.to_string(),
    })?;
    if let Status::Refused(refusal) = answer.status {
        return Err(refusal.to_string());
    }
    if subject.request > answer.max_request as usize {
        let most = answer.max_request;
        return Err(format!("it takes no message of more than {most} bytes"));
    }
    stream.set_nonblocking(true).map_err(|e| e.to_string())
}

struct Talk<'s> {
    subject: &'s Subject,
    beginning: &'s Beginning<'s>,
    /// A whole message with its length, written again and again under another number.
    message: Vec<u8>,
    /// How much of it is written.
    written: usize,
    inbox: Vec<u8>,
    pace: Pace,
    is_stopped: bool,
    /// When something was heard last.
    received: Span,
    /// When its time was over.
    over: Option<Over>,
    by_second: BySecond,
    carried: Carried,
}

/// What is known of a connection since its time is over.
#[derive(Clone, Copy, Debug)]
struct Over {
    /// Bytes that the other end's kernel had then, and has now.
    had: u64,
    has: u64,
    /// When it had something new last.
    moved: Span,
    /// When that was looked at last.
    looked: Span,
}

impl<'s> Talk<'s> {
    fn new(subject: &'s Subject, beginning: &'s Beginning) -> Self {
        let size = subject.request.max(REQUEST_MIN);
        let mut message = frame_prefix(u32::try_from(size).unwrap_or(u32::MAX)).to_vec();
        Request { seq: 0 }.encode_into(size, &mut message);
        Self {
            subject,
            beginning,
            written: message.len(),
            message,
            inbox: Vec::new(),
            pace: Pace::new(subject.rate),
            is_stopped: false,
            received: Span::ZERO,
            over: None,
            by_second: BySecond::default(),
            carried: Carried::default(),
        }
    }

    /// Its time is over: nothing is begun any more, and rates are of what was until now.
    fn close(&mut self, stats: TcpStats, now: Span) {
        self.over = Some(Over {
            had: stats.bytes_acked,
            has: stats.bytes_acked,
            moved: now,
            looked: now,
        });
        self.carried.lasted = now;
        self.carried.received_in_time = self.carried.received;
        self.carried.back_in_time = self.carried.back;
    }

    /// Why messages are without a reply for which there was time enough: their reflector was silent, and
    /// either had all of the next one long ago or took in nothing more. What is slow is not silent.
    fn unanswered(&self, now: Span) -> Option<String> {
        let over = self.over.filter(|_| !self.is_all_there())?;
        let whole = (self.carried.answered + 1) * self.message.len() as u64 + HELLO_LEN as u64;
        // The kernel counts the beginning of the connection as a byte.
        let is_answerable = over.had > whole || now - over.moved >= SILENCE;
        if now - self.received < SILENCE || !is_answerable {
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

    /// What the rate counts.
    fn weight(&self) -> u64 {
        let back = if self.subject.in_turn {
            self.carried.back
        } else {
            0
        };
        self.carried.sent + back
    }

    /// Makes the next message.
    fn begin(&mut self) -> io::Result<()> {
        let seq = self.carried.messages;
        Request { seq }
            .overwrite(&mut self.message[PREFIX..])
            .map_err(io::Error::other)?;
        self.written = 0;
        Ok(())
    }

    /// A message without its frame, as a reply is counted too.
    fn size(&self) -> u64 {
        (self.message.len() - PREFIX) as u64
    }

    /// What to do once its time is over, until all is there or patience with it ends.
    fn rest(&self, over: Over, now: Span) -> Next<'_> {
        let latest = self.carried.lasted + GRACE;
        if self.is_all_there() || now >= latest {
            Next::End
        } else if now - over.looked >= TICK {
            Next::Measure
        } else {
            self.go_on(latest.min(over.looked + TICK))
        }
    }

    /// Writes what is begun, or waits for what comes.
    fn go_on(&self, until: Span) -> Next<'_> {
        match self.message.get(self.written..) {
            Some(bytes @ [_, ..]) => Next::Write { bytes, until },
            _ => Next::Wait(until),
        }
    }
}

impl Traffic for Talk<'_> {
    fn next(&mut self, now: Span) -> io::Result<Next<'_>> {
        if let Some(over) = self.over {
            return Ok(self.rest(over, now));
        }
        if self.is_to_end(now) || now >= self.by_second.due() {
            return Ok(Next::Measure);
        }
        let latest = self.subject.duration.min(self.by_second.due());
        let mut until = latest;
        if !self.is_writing() && self.may_ask() {
            let weight = self.weight();
            until = self.pace.due(now, weight).min(latest);
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

    /// Takes in the replies that are there.
    fn received(&mut self, bytes: &[u8], now: Span) -> io::Result<()> {
        self.received = now;
        self.inbox.extend_from_slice(bytes);
        let mut taken = 0;
        while let Some((consumed, payload)) =
            next_frame(&self.inbox[taken..], u32::MAX).map_err(io::Error::other)?
        {
            self.carried.answered += 1;
            if self.carried.answered == 1 {
                self.beginning.one_works();
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

    /// At the end of each second, and when its time is over; from then on it is looked whether the other
    /// end's kernel takes in more.
    fn measured(&mut self, stats: TcpStats, now: Span) {
        if self.over.is_none() && now >= self.by_second.due() {
            let (sent, received) = (stats.bytes_sent, stats.bytes_acked);
            self.by_second.mark(now, CarriedBytes { sent, received });
        }
        if self.over.is_none() && !self.is_to_end(now) {
            return;
        }
        let Some(over) = &mut self.over else {
            return self.close(stats, now);
        };
        over.looked = now;
        if stats.bytes_acked > over.has {
            (over.has, over.moved) = (stats.bytes_acked, now);
        }
    }

    fn stopped(&mut self) {
        self.is_stopped = true;
    }
}
