//! One lasting TCP connection of a fleet to a reflector, and its messages.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use neph_model::{Instant, Local, PeerReport, Span};
use neph_sys::stamp::{self, Carrier, Ending, Notice, Point, Received};
use neph_wire::marks::PeerMarks;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::connection_failure::{ConnectionFailure, Fault};
use super::session::{Departed, Event, Replied, RequestId, low};
use crate::codec::{Arrival, Codec, Step};
use crate::raw_tcp;
use crate::stamp_clock::{StampClock, now};
use crate::stream::in_progress;

/// A connection that is not established after this time is aborted: waiting messages would accumulate and
/// then go all at once.
const STANDS_WITHIN: Span = Span::from_secs(5);

/// Messages that wait for timestamps. If a kernel gives none, the oldest is dropped.
const MAX_UNSTAMPED: usize = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Dialling,
    Greeting,
    Ready,
}

#[derive(Debug)]
pub(crate) struct Link {
    socket: Socket,
    port: u16,
    phase: Phase,
    dialled: Instant<Local>,
    codec: Box<dyn Codec>,
    inbox: Vec<u8>,
    out: Vec<u8>,
    /// Messages that wait for the connection to be established.
    waiting: Vec<u64>,
    /// Bytes written since timestamps were enabled, and the ends in them of messages that still wait for a
    /// timestamp.
    written: u32,
    ends: VecDeque<(u32, RequestId)>,
}

impl Link {
    /// Begins to connect from this port.
    pub(crate) fn dial(address: SocketAddr, port: u16, codec: Box<dyn Codec>) -> io::Result<Self> {
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        // A connection that broke can then be replaced from the same port: the same flow.
        socket.set_reuse_address(true)?;
        socket.set_linger(Some(Duration::ZERO))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&SockAddr::from(raw_tcp::any(address, port)))?;
        match socket.connect(&SockAddr::from(address)) {
            Err(error) if !in_progress(&error) => return Err(error),
            _ => {}
        }
        Ok(Self {
            socket,
            port,
            phase: Phase::Dialling,
            dialled: now(),
            codec,
            inbox: Vec::new(),
            out: Vec::new(),
            waiting: Vec::new(),
            written: 0,
            ends: VecDeque::new(),
        })
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    pub(crate) const fn is_dialling(&self) -> bool {
        matches!(self.phase, Phase::Dialling)
    }

    const fn known(&self, seq: u64) -> RequestId {
        RequestId {
            port: self.port,
            seq: low(seq),
        }
    }

    /// Sends message `seq`, at once or when the connection is established.
    pub(crate) fn ask(&mut self, seq: u64, at: Instant<Local>) -> Result<(), Fault> {
        if self.phase == Phase::Ready {
            return self.send(seq);
        }
        if at - self.dialled > STANDS_WITHIN {
            return Err(ConnectionFailure::Unanswered.into());
        }
        self.waiting.push(seq);
        Ok(())
    }

    fn send(&mut self, seq: u64) -> Result<(), Fault> {
        self.out.clear();
        self.codec.request(seq, &mut self.out);
        self.write()?;
        let last = self.written.wrapping_sub(1);
        if self.ends.len() >= MAX_UNSTAMPED {
            self.ends.pop_front();
        }
        self.ends.push_back((last, self.known(seq)));
        Ok(())
    }

    /// A connection whose peer reads has room for a small message. Without room the connection continues
    /// without it. Only after half a message it cannot continue.
    fn write(&mut self) -> Result<(), Fault> {
        let written = match stamp::send(self.socket.as_fd(), &self.out, Ending::Message) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(Fault::Full),
            Err(error) => return Err(ConnectionFailure::from(&error).into()),
            Ok(written) if written < self.out.len() => return Err(ConnectionFailure::Unread.into()),
            Ok(written) => written,
        };
        let count = u32::try_from(written).map_err(|_| ConnectionFailure::Unread)?;
        self.written = self.written.wrapping_add(count);
        Ok(())
    }

    /// Checks whether the socket has connected.
    pub(crate) fn try_greet(&mut self) -> Result<(), ConnectionFailure> {
        match self.socket.take_error() {
            Ok(None) if self.socket.peer_addr().is_err() => return Ok(()),
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return Err(ConnectionFailure::from(&error)),
        }
        stamp::enable(self.socket.as_fd(), Carrier::StreamDepartures)
            .map_err(|error| ConnectionFailure::from(&error))?;
        self.phase = Phase::Greeting;
        self.out.clear();
        self.codec.open(&mut self.out);
        self.write().map_err(ConnectionFailure::from)
    }

    /// Reads arrivals.
    pub(crate) fn read(
        &mut self,
        clock: &StampClock,
        buffer: &mut [u8],
        events: &mut Vec<Event>,
    ) -> Result<(), ConnectionFailure> {
        let received = match stamp::receive(self.socket.as_fd(), buffer) {
            Ok(received) if received.len > 0 => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(ConnectionFailure::from(&error)),
            Ok(_) => return Err(ConnectionFailure::Closed),
        };
        let at = now();
        self.inbox.extend_from_slice(&buffer[..received.len]);
        loop {
            let step = self.codec.step(&mut self.inbox);
            let Step::Consumed(taken, arrival) = step.map_err(|_| ConnectionFailure::Unexpected)?
            else {
                return Ok(());
            };
            self.inbox.drain(..taken);
            match arrival {
                Arrival::Opened => self.on_connected()?,
                Arrival::Reply(reply) => {
                    let Some(seq) = reply.seq else { continue };
                    let stamp = self
                        .stamp(&received)
                        .and_then(|stamp| clock.own_instant(stamp));
                    events.push(Event::Replied(Replied {
                        answer: None,
                        repeated: None,
                        request: self.known(seq),
                        stamp,
                        read: at,
                        ttl: None,
                        peer_report: reply.marks.as_ref().and_then(peer_report),
                    }));
                }
                Arrival::Nothing => {}
                Arrival::Closed(_) => return Err(ConnectionFailure::Closed),
                Arrival::Refused(_) => return Err(ConnectionFailure::Refused),
            }
        }
    }

    /// The kernel timestamp belongs to a message only if its last byte was the last one received.
    fn stamp(&self, received: &Received) -> Option<neph_sys::clock::WallNanos> {
        received.stamp.filter(|_| self.inbox.is_empty())
    }

    fn on_connected(&mut self) -> Result<(), ConnectionFailure> {
        self.phase = Phase::Ready;
        for seq in std::mem::take(&mut self.waiting) {
            self.send(seq).map_err(ConnectionFailure::from)?;
        }
        Ok(())
    }

    /// Reads send timestamps. Returns whether there were any. A retransmission has another timestamp. The
    /// first one counts, so that the wait counts as network time.
    pub(crate) fn read_notices(&mut self, clock: &StampClock, events: &mut Vec<Event>) -> bool {
        let mut any = false;
        while let Ok(Some(notice)) = stamp::take_notice(self.socket.as_fd()) {
            any = true;
            let Notice::Stamp(stamp) = notice else {
                continue;
            };
            if stamp.point != Point::Sent {
                continue;
            }
            let index = self.ends.iter().position(|(end, _)| *end == stamp.id);
            let written_request = index.and_then(|index| self.ends.drain(..=index).next_back());
            if let (Some((_, request)), Some(at)) = (written_request, clock.own_instant(stamp.at)) {
                events.push(Event::Departed(Departed { request, at }));
            }
        }
        any
    }

    /// The messages that never left.
    pub(crate) fn unsent(&self) -> impl Iterator<Item = RequestId> + '_ {
        self.waiting.iter().map(|seq| self.known(*seq))
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Data of a neph reflector. It does not count a connection's messages, as TCP keeps their order.
fn peer_report(marks: &PeerMarks) -> Option<PeerReport> {
    let rx = marks.rx.or(marks.app_rx)?;
    // An impossible one is discarded and counted where the round trip is known.
    let residence = Span::from_nanos(marks.app_tx?.saturating_sub(rx));
    Some(PeerReport {
        rx: Instant::from_nanos(rx),
        residence,
        count: None,
        ttl: None,
    })
}

/// The moment from which a broken connection may be replaced.
pub(crate) fn retry_time(dialled: Instant<Local>) -> Instant<Local> {
    dialled + Span::from_secs(1)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use neph_model::Target;

    use super::*;
    use crate::codec::new_token;
    use crate::kinds::stream_codec;
    use crate::spec::FlowSpec;

    /// A listener, and a connection to it for requests of this many bytes.
    fn dialled(request_size: usize) -> (TcpListener, Link) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let target = Target::tcp("127.0.0.1", address.port()).expect("an address");
        let mut flow = FlowSpec::plain(target, address);
        flow.reflector = true;
        flow.request_size = request_size;
        let codec = stream_codec(&flow, new_token(), 0).expect("tcp has one");
        let link = Link::dial(address, 0, codec).expect("a port");
        (listener, link)
    }

    #[test]
    fn a_silent_connection_is_closed_and_its_pending_requests_fail() {
        let (_silent, mut link) = dialled(0);
        let started = now();
        assert_eq!(link.ask(0, started), Ok(()));
        assert_eq!(link.ask(1, started + Span::from_secs(1)), Ok(()));
        assert_eq!(
            link.ask(2, started + Span::from_secs(6)),
            Err(ConnectionFailure::Unanswered.into())
        );
        let unsent: Vec<u32> = link.unsent().map(|known| known.seq).collect();
        assert_eq!(unsent, [0, 1]);
    }

    #[test]
    fn a_message_beyond_a_full_buffer_fails_without_closing_the_connection() {
        let (listener, mut link) = dialled(4_096);
        let (mut peer, _) = listener.accept().expect("it dialled");
        link.phase = Phase::Ready;
        let mut seqs = 0..1_000_000_u64;
        let full = seqs.find_map(|seq| link.ask(seq, now()).err());
        assert_eq!(full, Some(Fault::Full), "its peer reads nothing");
        let mut unread = vec![0; 1 << 20];
        let is_full = (0..1_000).any(|_| {
            let _ = std::io::Read::read(&mut peer, &mut unread).expect("there is something");
            link.ask(0, now()) == Ok(())
        });
        assert!(is_full, "its peer reads again");
    }
}
