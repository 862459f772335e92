//! One TCP connection to a reflector that carries traffic: messages one behind the other, or a
//! request only when the last reply is there.
//!
//! Owns the connection and what is counted on it. What was received there is known by its replies.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use neph_model::{BitRate, Span, Stop};
use neph_sys::clock;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::tcp;
use neph_wire::echo::{REQUEST_MIN, Request};
use neph_wire::frame::{
    FrameError, HELLO_LEN, Hello, HelloReply, Mode, Status, frame_prefix, next_frame,
};

use crate::beginning::Beginning;
use crate::pace::Pace;

/// For connecting and the answer to the hello: a busy peer takes its time.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long what is on its way may take to arrive when the time is over.
const GRACE: Span = Span::from_secs(2);
/// Where it moves for so long, within that, neither way, nobody works at it any more.
const SILENCE: Span = Span::from_secs(1);
/// How soon a set stop flag is seen.
const TICK: Span = Span::from_millis(50);
const PREFIX: usize = 4;
const CHUNK: usize = 256 << 10;

/// What a connection is to carry.
#[derive(Clone, Copy, Debug)]
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
    /// Why it ended before its time, or its answers did.
    pub broken: Option<String>,
}

/// Carries the traffic until its time is over or `stop` is set; it has begun with the first reply.
pub(crate) fn converse(
    subject: &Subject,
    (beginning, stop): (&Beginning, &Stop),
) -> Result<Carried, String> {
    let connected = TcpStream::connect_timeout(&subject.address, PATIENCE);
    let mut stream = connected.map_err(|error| unconnected(&error, subject.address.ip()))?;
    greet(&mut stream, subject)?;
    let mut talk = Talk::new(stream, subject, beginning);
    if let Err(error) = talk.run(stop) {
        if talk.over.is_none() {
            talk.close();
        }
        talk.carried.broken = Some(error.to_string());
    } else {
        talk.carried.broken = talk.unanswered();
    }
    let stats = tcp::stats(talk.stream.as_fd()).unwrap_or_default();
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

fn greet(stream: &mut TcpStream, subject: &Subject) -> Result<(), String> {
    let mut hello = Vec::with_capacity(HELLO_LEN);
    Hello {
        mode: Mode::Echo,
        reply_size: u32::try_from(subject.reply).unwrap_or(u32::MAX),
        duration_ms: 0,
    }
    .encode(&mut hello);
    let mut told = [0; HELLO_LEN];
    stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.set_nodelay(true))
        .and_then(|()| stream.write_all(&hello))
        .and_then(|()| stream.read_exact(&mut told))
        .map_err(|error| format!("it is no neph reflect, or does not answer: {error}"))?;
    let told = HelloReply::decode(&told).map_err(|error| match error {
        FrameError::Magic(_) => {
            "it answers, but is no neph reflect: name the port of one".to_owned()
        }
        other => other.to_string(),
    })?;
    if let Status::Refused(refusal) = told.status {
        return Err(refusal.to_string());
    }
    if subject.request > told.max_request as usize {
        let most = told.max_request;
        return Err(format!("it takes no message of more than {most} bytes"));
    }
    stream.set_nonblocking(true).map_err(|e| e.to_string())
}

struct Talk<'s> {
    subject: &'s Subject,
    beginning: &'s Beginning<'s>,
    stream: TcpStream,
    /// A whole message with its length, written again and again under another number.
    message: Vec<u8>,
    /// How much of it is written.
    written: usize,
    inbox: Vec<u8>,
    pace: Pace,
    began: i64,
    /// When something was heard last.
    heard: Span,
    /// When its time was over.
    over: Option<Over>,
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
}

impl<'s> Talk<'s> {
    fn new(stream: TcpStream, subject: &'s Subject, beginning: &'s Beginning) -> Self {
        let size = subject.request.max(REQUEST_MIN);
        let mut message = frame_prefix(u32::try_from(size).unwrap_or(u32::MAX)).to_vec();
        Request { seq: 0 }.encode_into(size, &mut message);
        Self {
            subject,
            beginning,
            stream,
            written: message.len(),
            message,
            inbox: Vec::new(),
            pace: Pace::new(subject.rate),
            began: clock::raw().0,
            heard: Span::ZERO,
            over: None,
            carried: Carried::default(),
        }
    }

    fn elapsed(&self) -> Span {
        Span::from_nanos(clock::raw().0 - self.began)
    }

    fn run(&mut self, stop: &Stop) -> io::Result<()> {
        loop {
            self.hear()?;
            let elapsed = self.elapsed();
            if self.over.is_none() && (elapsed >= self.subject.duration || stop.is_set()) {
                self.close();
            }
            let mut next = self.subject.duration;
            if self.over.is_some() {
                next = self.carried.lasted + GRACE;
                if self.is_all_there() || elapsed >= next {
                    return Ok(());
                }
                self.watch();
            } else if !self.is_writing() && self.may_ask() {
                next = self.pace.due(elapsed, self.weight());
                if next <= elapsed {
                    self.begin()?;
                    continue;
                }
            }
            let took = self.is_writing() && self.write()?;
            if !took {
                self.wait((next - elapsed).min(TICK).max(Span::ZERO))?;
            }
        }
    }

    /// Its time is over: nothing is begun any more, and rates are of what was until now.
    fn close(&mut self) {
        let (moved, had) = (self.elapsed(), self.acknowledged());
        self.over = Some(Over {
            had,
            has: had,
            moved,
        });
        self.carried.lasted = moved;
        self.carried.received_in_time = self.carried.received;
        self.carried.back_in_time = self.carried.back;
    }

    /// Looks whether the other end's kernel takes in more.
    fn watch(&mut self) {
        let (moved, has) = (self.elapsed(), self.acknowledged());
        if let Some(over) = self.over.as_mut().filter(|over| has > over.has) {
            (over.has, over.moved) = (has, moved);
        }
    }

    fn acknowledged(&self) -> u64 {
        tcp::stats(self.stream.as_fd()).map_or(0, |stats| stats.bytes_acked)
    }

    /// Why messages are without a reply for which there was time enough: their reflector was silent, and
    /// either had all of the next one long ago or took in nothing more. What is slow is not silent.
    fn unanswered(&self) -> Option<String> {
        let over = self.over.filter(|_| !self.is_all_there())?;
        let now = self.elapsed();
        let whole = (self.carried.answered + 1) * self.message.len() as u64 + HELLO_LEN as u64;
        // The kernel counts the beginning of the connection as a byte.
        let is_answerable = over.had > whole || now - over.moved >= SILENCE;
        if now - self.heard < SILENCE || !is_answerable {
            return None;
        }
        let (heard, answered) = (self.heard, self.carried.answered);
        let since = match answered {
            0 => "the reflector took the connection and answered no message".to_owned(),
            _ => format!("the reflector stopped answering after {heard}, with {answered} answered"),
        };
        Some(format!("{since}: does neph reflect still work there?"))
    }

    fn is_all_there(&self) -> bool {
        self.carried.answered == self.carried.messages && !self.is_writing()
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

    fn begin(&mut self) -> io::Result<()> {
        let seq = self.carried.messages;
        Request { seq }
            .overwrite(&mut self.message[PREFIX..])
            .map_err(io::Error::other)?;
        self.written = 0;
        self.write().map(|_| ())
    }

    /// Writes on; whether the kernel took something.
    fn write(&mut self) -> io::Result<bool> {
        match self.stream.write(&self.message[self.written..]) {
            Ok(count) => {
                self.written += count;
                if !self.is_writing() {
                    self.carried.messages += 1;
                    self.carried.sent += self.size();
                }
                Ok(count > 0)
            }
            Err(error) if is_later(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A message without its frame, as a reply is counted too.
    fn size(&self) -> u64 {
        (self.message.len() - PREFIX) as u64
    }

    /// Takes in the replies that are there.
    fn hear(&mut self) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::Error::other("the reflector closed the connection")),
                Ok(count) => {
                    self.heard = self.elapsed();
                    self.inbox.extend_from_slice(&chunk[..count]);
                }
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
            let mut taken = 0;
            while let Some((consumed, payload)) =
                next_frame(&self.inbox[taken..], u32::MAX).map_err(io::Error::other)?
            {
                self.carried.answered += 1;
                if self.carried.answered == 1 {
                    self.beginning.one_works();
                }
                self.carried.back += payload.len() as u64;
                self.carried.received += (self.message.len() - PREFIX) as u64;
                taken += consumed;
            }
            self.inbox.drain(..taken);
        }
    }

    fn wait(&self, most: Span) -> io::Result<()> {
        let socket = self.stream.as_fd();
        let mut awaited = [if self.is_writing() {
            Awaited::readable_or_writable(socket)
        } else {
            Awaited::readable(socket)
        }];
        ppoll::wait(&mut awaited, Some(most.to_duration()))
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::TimedOut
    )
}
