//! The server's thread for one RTSP connection: answers requests and sends the stream.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;

use neph_model::{Span, Stop};
use neph_sys::ppoll::{self, Awaited};
use neph_sys::{clock, sched};
use neph_wire::rtcp::ReceiverReport;
use neph_wire::rtsp::{Inbox, Message, Response};

use super::places::Served;
use super::ports::{self, Pair};
use super::served::{MediaServed, SentStatistics};
use super::session::{Answer, RequestedStream, Session, TIMEOUT_S};
use super::source::{RtpStart, Source};

/// How long a connection may wait without playing: several clients may wait for a common start.
const PLAY_TIMEOUT: Span = Span::from_secs(300);
/// Maximum delay until a set stop flag is noticed.
const TICK: Span = Span::from_millis(50);
/// Write timeout.
const WRITE_TIMEOUT: Span = Span::from_secs(5);
/// Number of port unreachable errors after which the client is gone. A single one may be caused by
/// another program.
const MAX_CLOSED: u32 = 3;
/// Maximum number of datagrams read per turn.
const MAX_DISCARDED: usize = 64;

/// An RTSP connection. Times are relative to its start.
pub(super) struct Connection<'a> {
    served: &'a Served<'a>,
    stream: TcpStream,
    peer: SocketAddr,
    session: Session,
    inbox: Inbox,
    first: RtpStart,
    began: i64,
    received: Span,
    sending: Option<Sending<'a>>,
}

/// A stream that was set up.
struct Sending<'a> {
    pair: Pair,
    source: Source<'a>,
    /// Send time of the first packet.
    began: Option<Span>,
    sent: SentStatistics,
    closed: u32,
}

impl<'a> Connection<'a> {
    /// Prepares an accepted connection.
    pub(super) fn new(
        served: &'a Served<'a>,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT.to_duration()))?;
        let id = neph_sys::random::token()?;
        let first = RtpStart {
            sequence: u16::from_be_bytes(neph_sys::random::bytes()?),
            timestamp: u32::from_be_bytes(neph_sys::random::bytes()?),
            ssrc: u32::from_be_bytes(neph_sys::random::bytes()?),
        };
        let peer = ports::plain(peer);
        Ok(Self {
            session: Session::new(peer.ip(), format!("{id:016x}"), first, &served.spec.trace),
            served,
            stream,
            peer,
            inbox: Inbox::default(),
            first,
            began: clock::raw().0,
            received: Span::ZERO,
            sending: None,
        })
    }

    fn now(&self) -> Span {
        Span::from_nanos(clock::raw().0 - self.began)
    }

    /// Serves until the client ends or is gone, or `stop` is set.
    pub(super) fn serve(mut self, stop: &Stop) {
        // Reduces lateness to the wake-up time. Without it the packet intervals are slightly less
        // even.
        let _ = sched::set_timer_slack(std::time::Duration::from_nanos(1));
        let fault_result = loop {
            match self.turn(stop) {
                Ok(false) => {}
                Ok(true) => break None,
                Err(fault) => break Some(fault),
            }
        };
        self.end_stream(fault_result);
    }

    /// Waits once and processes the result; returns whether the connection is over.
    fn turn(&mut self, stop: &Stop) -> Result<bool, String> {
        if stop.is_set() {
            return Err("the server was stopped".to_owned());
        }
        let now = self.now();
        if now - self.received > Span::from_secs(TIMEOUT_S.into()) {
            return Err(format!(
                "the client sent no request and no report for {TIMEOUT_S} s"
            ));
        }
        if !self.session.is_playing() && now > PLAY_TIMEOUT {
            return Err(format!("the client did not play within {PLAY_TIMEOUT}"));
        }
        let next = self.next_due();
        let wait = next
            .map_or(TICK, |due| (due - now).min(TICK))
            .max(Span::ZERO);
        let mut poll_fds = [Awaited::readable(self.stream.as_fd())];
        ppoll::wait(&mut poll_fds, Some(wait.to_duration())).map_err(|error| error.to_string())?;
        if poll_fds[0].has_something() && self.read()? {
            return Ok(true);
        }
        self.send_due()?;
        Ok(false)
    }

    /// When the next packet is due, since the start of the connection.
    fn next_due(&self) -> Option<Span> {
        let sending = self
            .sending
            .as_ref()
            .filter(|_| self.session.is_playing())?;
        Some(sending.began? + sending.source.due())
    }

    /// Reads and answers requests; returns whether the client closed the connection.
    fn read(&mut self) -> Result<bool, String> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) if self.session.is_playing() => {
                Err("the client closed its connection".to_owned())
            }
            Ok(0) => Ok(true),
            Ok(count) => {
                self.inbox.push(&buffer[..count]);
                self.answer_all()?;
                Ok(false)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
            // The client closed with unread data of the server.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                Err("the client closed its connection".to_owned())
            }
            Err(error) => Err(format!("read from the client: {error}")),
        }
    }

    fn answer_all(&mut self) -> Result<(), String> {
        while let Some(message) = self
            .inbox
            .next_message()
            .map_err(|error| error.to_string())?
        {
            let Message::Request(request) = message else {
                continue;
            };
            self.received = self.now();
            match self.session.answer(&request) {
                Answer::Reply(response) => self.reply(&response)?,
                Answer::Setup(requested) => {
                    let response = self.set_up(&requested);
                    self.reply(&response)?;
                }
                Answer::Play(response) => {
                    self.reply(&response)?;
                    self.begin();
                }
                Answer::End(response) => {
                    self.end_stream(None);
                    self.reply(&response)?;
                }
            }
        }
        Ok(())
    }

    fn reply(&mut self, response: &Response) -> Result<(), String> {
        let bytes = response.encode().map_err(|error| error.to_string())?;
        let written = self.stream.write_all(&bytes);
        written.map_err(|error| format!("write to the client: {error}"))
    }

    fn set_up(&mut self, requested: &RequestedStream) -> Response {
        // The place is reserved before ports are opened; `end_stream` releases it.
        let granted = self.served.take_place().and_then(|()| {
            let opened = self.open(requested);
            opened.map_err(|error| {
                self.served.free_place();
                format!("open UDP ports for it: {error}")
            })
        });
        match granted {
            Ok(sending) => {
                let response = self.session.granted(requested, sending.pair.ports);
                self.sending = Some(sending);
                response
            }
            Err(reason) => {
                let peer = self.peer;
                (self.served.event)(MediaServed::Refused { peer, reason });
                Session::refused(requested)
            }
        }
    }

    /// Opens ports that are connected to the client's, so that the kernel sends to no other
    /// address.
    fn open(&self, requested: &RequestedStream) -> io::Result<Sending<'a>> {
        let pair = ports::open(ports::plain(self.stream.local_addr()?))?;
        let mut to = self.peer;
        to.set_port(requested.ports.rtp);
        pair.rtp.connect(to)?;
        if let Some(rtcp) = requested.ports.rtcp {
            to.set_port(rtcp);
            pair.rtcp.connect(to)?;
        }
        Ok(Sending {
            pair,
            source: Source::new(&self.served.spec.trace, self.first),
            began: None,
            sent: SentStatistics::default(),
            closed: 0,
        })
    }

    /// Starts the stream at random within a frame's interval. Otherwise streams with a common start
    /// would send all their frames at the same time.
    fn begin(&mut self) {
        let now = self.now();
        let interval = self.served.spec.trace.time(1).nanos().max(1);
        let phase = i64::from(self.first.timestamp) * 997 % interval;
        if let Some(sending) = &mut self.sending {
            sending.began = Some(now + Span::from_nanos(phase));
            let (peer, streams) = (self.peer, self.served.streams());
            (self.served.event)(MediaServed::Began { peer, streams });
        }
    }

    fn send_due(&mut self) -> Result<(), String> {
        let now = self.now();
        let is_playing = self.session.is_playing();
        let Some(sending) = self.sending.as_mut().filter(|_| is_playing) else {
            return Ok(());
        };
        let rtp = receive_reports(&sending.pair.rtp, self.first.ssrc);
        sending.closed += rtp.closed;
        // A client may ignore RTCP.
        if receive_reports(&sending.pair.rtcp, self.first.ssrc).is_reported {
            self.received = now;
        }
        let Some(began) = sending.began else {
            return Ok(());
        };
        let since = now - began;
        let max = self.served.spec.caps.duration;
        if since >= max {
            return Err(format!(
                "the longest time that this server grants is over: {max}"
            ));
        }
        sending.send(since)
    }

    /// Releases the place and reports what was sent.
    fn end_stream(&mut self, fault: Option<String>) {
        let Some(mut sending) = self.sending.take() else {
            return;
        };
        self.served.free_place();
        let Some(began) = sending.began else { return };
        sending.sent.lasted = (self.now() - began).max(Span::ZERO);
        sending.sent.frames_left_out = sending.source.left_out();
        let (peer, sent) = (self.peer, sending.sent);
        (self.served.event)(MediaServed::Ended { peer, sent, fault });
    }
}

impl Sending<'_> {
    /// Sends the packets that are due; `since` is the time since the first packet.
    fn send(&mut self, since: Span) -> Result<(), String> {
        let mut packet = Vec::with_capacity(1_500);
        self.source.catch_up(since);
        while self.source.due() <= since {
            packet.clear();
            self.source.write(since, &mut packet);
            match self.pair.rtp.send(&packet) {
                Ok(length) => {
                    self.sent.packets += 1;
                    self.sent.bytes += length as u64;
                }
                Err(error) => {
                    self.closed += u32::from(error.kind() == ErrorKind::ConnectionRefused);
                    self.sent.refused += 1;
                }
            }
        }
        if self.closed >= MAX_CLOSED {
            return Err("the client's UDP port is closed".to_owned());
        }
        Ok(())
    }
}

/// Data on a port of the stream.
#[derive(Clone, Copy, Debug, Default)]
struct Received {
    /// Number of ICMP port unreachable errors about earlier packets.
    closed: u32,
    /// The client sent a report with the stream's SSRC, which only it knows.
    is_reported: bool,
}

/// Reads a client's datagrams: RTCP reports, and packets that open a firewall.
fn receive_reports(socket: &UdpSocket, ssrc: u32) -> Received {
    let (mut datagram, mut received) = ([0; 64], Received::default());
    for _ in 0..MAX_DISCARDED {
        match socket.recv(&mut datagram) {
            Ok(length) => {
                let report = ReceiverReport::decode(&datagram[..length]);
                received.is_reported |= report.is_some_and(|report| report.source == ssrc);
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => received.closed += 1,
            Err(_) => break,
        }
    }
    received
}
