//! Probes that are built here and sent on raw sockets: many at once, each with a number that ICMP errors
//! quote.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use neph_model::{Instant, Local, MplsLabel, TraceKind};
use neph_sys::clock::{self, RawNanos, Spin, WallNanos};
use neph_sys::ppoll::{self, Awaited};
use neph_sys::stamp::{self, Notice, Point};
use neph_wire::icmp::{self, IcmpMessage};
use neph_wire::ip::{self, TcpHeader};
use neph_wire::probe::{self, Label, QuoteKind, Tag};
use neph_wire::stamp::{Auth, decode_reply};
use socket2::{Protocol, SockAddr, SockRef, Socket, Type};

use super::carrier::{self, BALANCE_AT, Carrier};
use super::flow::{Answer, AnswerKind, ProbeId};
use super::spec::PortUse;
use super::tracer::Tracer;
use super::tracer_io::{ProbeToSend, ReceivedAnswer};
use crate::fleet::take_bound;
use crate::stamp_clock::{StampClock, now};

/// Timestamps may be missing in the first milliseconds after they were enabled.
const WARM_UP_NANOS: i64 = 5_000_000;
/// Room for answers of a thousand flows at once, in bytes.
const RECEIVE_BUFFER: usize = 1 << 20;
/// Too short for a STAMP packet.
const NON_STAMP_PAYLOAD: [u8; 16] = [0; 16];

/// Raw sockets to one destination.
#[derive(Debug)]
pub(super) struct Raw {
    source: IpAddr,
    destination: SocketAddr,
    kind: TraceKind,
    ports: PortUse,
    /// Sends probes, and receives the destination's answers.
    sender: Socket,
    /// Receives all ICMP errors of this host.
    errors: Socket,
    /// They hold the flows' ports.
    holders: Vec<Socket>,
    clock: StampClock,
    /// By the kernel's number of their send timestamps.
    sent: Vec<ProbeId>,
}

impl Raw {
    /// # Errors
    /// `PermissionDenied` without `CAP_NET_RAW`.
    pub(super) fn open(
        destination: SocketAddr,
        kind: TraceKind,
        ports: PortUse,
    ) -> io::Result<Self> {
        let icmp = carrier::icmp_protocol(destination);
        let protocol = match kind {
            TraceKind::Udp => Protocol::UDP,
            TraceKind::Syn => Protocol::TCP,
            TraceKind::Icmp => icmp,
        };
        let errors = carrier::socket(destination, Type::RAW, icmp)?;
        let sender = carrier::socket(destination, Type::RAW, protocol)?;
        let source = carrier::own_address(destination)?;
        // Connected: it receives only the destination's packets.
        let mut peer = destination;
        peer.set_port(0);
        sender.connect(&SockAddr::from(peer))?;
        for socket in [&errors, &sender] {
            socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        }
        stamp::enable_receive(errors.as_fd())?;
        stamp::enable(sender.as_fd(), stamp::Carrier::Datagrams)?;
        clock::sleep_until(RawNanos(clock::raw().0 + WARM_UP_NANOS), Spin::NONE);
        Ok(Self {
            source,
            destination,
            kind,
            ports,
            sender,
            errors,
            holders: Vec::new(),
            clock: StampClock::new(),
            sent: Vec::new(),
        })
    }

    /// The bytes after the IP header.
    fn probe(&self, probe: &ProbeToSend) -> Option<Vec<u8>> {
        let source = SocketAddr::new(self.source, probe.port);
        match (self.kind, self.ports) {
            (TraceKind::Udp, PortUse::Ours) => {
                let payload = carrier::stamp_request(probe.number);
                probe::udp(source, self.destination, &payload, BALANCE_AT, probe.number)
            }
            (TraceKind::Udp, PortUse::Shared) => probe::udp(
                source,
                self.destination,
                &NON_STAMP_PAYLOAD,
                BALANCE_AT,
                probe.number,
            ),
            (TraceKind::Syn, PortUse::Ours) => {
                probe::syn(source, self.destination, seq_of(probe.port, probe.number))
            }
            (TraceKind::Syn, PortUse::Shared) => {
                probe::mute_syn(source, self.destination, seq_of(probe.port, probe.number))
            }
            (TraceKind::Icmp, _) => {
                let ends = (self.source, self.destination.ip());
                probe::echo(ends, probe.port, probe.number).map(Vec::from)
            }
        }
    }

    fn take_stamps(&mut self, tracer: &mut Tracer) {
        while let Ok(Some(notice)) = stamp::take_notice(self.sender.as_fd()) {
            let Notice::Stamp(stamp) = notice else {
                continue;
            };
            if stamp.point == Point::Sent {
                carrier::note_left(&self.clock, &self.sent, stamp, tracer);
            }
        }
    }

    /// Passes the packets of a socket that `meaning` turns into answers to the tracer.
    fn take_answers(
        &self,
        socket: &Socket,
        tracer: &mut Tracer,
        meaning: impl Fn(&Self, IpAddr, &[u8]) -> Option<UntimedAnswer>,
    ) {
        let mut buffer = [0; 2048];
        while let Ok(received) = stamp::receive(socket.as_fd(), &mut buffer) {
            let bytes = buffer.get(..received.len).unwrap_or_default();
            let from = received.from.map(|from| from.ip());
            // Raw sockets of IPv4 include the IP header.
            let packet = match self.destination {
                SocketAddr::V4(_) => ip::parse_ip(bytes).ok().map(|ip| (ip.source, ip.payload)),
                SocketAddr::V6(_) => from.map(|from| (from, bytes)),
            };
            let Some((from, message)) = packet else {
                continue;
            };
            if let Some(meant) = meaning(self, from, message) {
                tracer.on_answer(&self.received(from, received.stamp, &meant));
            }
        }
    }

    fn received(
        &self,
        from: IpAddr,
        stamp: Option<WallNanos>,
        meant: &UntimedAnswer,
    ) -> ReceivedAnswer {
        let (at, read_by) = carrier::arrival(&self.clock, stamp);
        ReceivedAnswer {
            port: meant.port,
            number: Some(meant.number),
            answer: Answer {
                from,
                kind: meant.kind,
                at,
                read_by,
            },
            labels: meant.labels.iter().copied().map(model_label).collect(),
        }
    }

    /// The meaning of an ICMP message for this trace.
    fn error(&self, from: IpAddr, message: &[u8]) -> Option<UntimedAnswer> {
        let family = carrier::icmp_family(self.destination);
        let quote = probe::parse_error(family, message).ok()??;
        if !quote.is_between(self.source, self.destination.ip()) {
            return None;
        }
        let is_ours = quote.flow.destination_port == self.destination.port();
        let port = quote.flow.source_port;
        let (port, number) = match (self.kind, quote.tag) {
            (TraceKind::Udp, Tag::Udp { checksum }) if is_ours => (port, checksum),
            (TraceKind::Syn, Tag::Tcp { seq }) if is_ours => (port, number_of(seq, port)?),
            (TraceKind::Icmp, Tag::Echo { ident, seq }) => (ident, seq),
            _ => return None,
        };
        let kind = match quote.kind {
            QuoteKind::TimeExceeded => AnswerKind::Exceeded,
            QuoteKind::PortUnreachable => {
                carrier::reported_unreachable(from, self.destination.ip(), PORT_UNREACHABLE)
            }
            QuoteKind::Unreachable(code) => {
                carrier::reported_unreachable(from, self.destination.ip(), code)
            }
        };
        Some(UntimedAnswer {
            port,
            number,
            kind,
            labels: quote.labels,
        })
    }

    /// The meaning of a packet from the destination for this trace.
    fn reply(&self, _from: IpAddr, message: &[u8]) -> Option<UntimedAnswer> {
        let (port, number) = match self.kind {
            // These probes get no reply: the packets answer the program that uses the port.
            TraceKind::Udp | TraceKind::Syn if self.ports == PortUse::Shared => return None,
            TraceKind::Udp => {
                let udp = ip::parse_udp(message).ok()?;
                let reply = decode_reply(udp.payload, Auth::Open).ok()?;
                let number = u16::try_from(reply.packet.sender_seq).ok()?;
                let is_ours = udp.source == self.destination.port();
                is_ours.then_some((udp.destination, number))?
            }
            TraceKind::Syn => {
                let tcp = ip::parse_tcp(message).ok()?;
                let answers = tcp.flags & (TcpHeader::SYN | TcpHeader::RST) != 0
                    && tcp.flags & TcpHeader::ACK != 0;
                let port = tcp.destination;
                let number = number_of(tcp.ack.wrapping_sub(1), port)?;
                let is_ours = answers && tcp.source == self.destination.port();
                is_ours.then_some((port, number))?
            }
            TraceKind::Icmp => {
                let family = carrier::icmp_family(self.destination);
                let IcmpMessage::EchoReply(echo) = icmp::parse(family, message).ok()? else {
                    return None;
                };
                (echo.ident, echo.seq16)
            }
        };
        Some(UntimedAnswer {
            port,
            number,
            kind: AnswerKind::Arrived,
            labels: Vec::new(),
        })
    }
}

/// The ICMP code of a closed port. `ICMPv6` has another number, which is not reported.
const PORT_UNREACHABLE: u8 = 3;

/// An answer without its time.
struct UntimedAnswer {
    port: u16,
    number: u16,
    kind: AnswerKind,
    labels: Vec<Label>,
}

/// A sequence number here is the port, then the probe's number.
fn seq_of(port: u16, number: u16) -> u32 {
    u32::from(port) << 16 | u32::from(number)
}

fn number_of(seq: u32, port: u16) -> Option<u16> {
    (seq >> 16 == u32::from(port)).then_some((seq & 0xffff) as u16)
}

fn model_label(label: Label) -> MplsLabel {
    MplsLabel {
        label: label.label,
        traffic_class: label.traffic_class,
        ttl: label.ttl,
    }
}

impl Carrier for Raw {
    fn hold(&mut self, port: u16) -> io::Result<()> {
        let (kind, protocol, transport) = match (self.ports, self.kind) {
            (PortUse::Shared, _) | (_, TraceKind::Icmp) => return Ok(()),
            (PortUse::Ours, TraceKind::Udp) => (Type::DGRAM, Protocol::UDP, "udp"),
            (PortUse::Ours, TraceKind::Syn) => (Type::STREAM, Protocol::TCP, "tcp"),
        };
        let holder = take_bound(transport, port, |port| {
            let holder = carrier::socket(self.destination, kind, protocol)?;
            // Another socket reads its packets.
            holder.set_recv_buffer_size(0)?;
            holder.bind(&carrier::local_sock_addr(
                self.source,
                port,
                self.destination,
            ))?;
            Ok(holder)
        })?;
        self.holders.push(holder);
        Ok(())
    }

    fn room(&self) -> usize {
        match (self.ports, self.kind) {
            (PortUse::Shared, _) | (_, TraceKind::Icmp) => usize::MAX,
            (PortUse::Ours, TraceKind::Udp | TraceKind::Syn) => carrier::files_left(),
        }
    }

    fn release(&mut self) -> bool {
        self.holders.drain(..).count() > 0
    }

    fn send(&mut self, probe: &ProbeToSend) -> io::Result<()> {
        let Some(bytes) = self.probe(probe) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        carrier::set_ttl(&SockRef::from(&self.sender), self.destination, probe.ttl)?;
        let send = || self.sender.send(&bytes);
        carrier::send_counted(&self.sender, &mut self.sent, probe.id, send)
    }

    fn take_in(&mut self, until: Instant<Local>, tracer: &mut Tracer) -> io::Result<()> {
        let mut poll_fds = [
            Awaited::readable(self.errors.as_fd()),
            Awaited::readable(self.sender.as_fd()),
        ];
        let timeout = (until - now()).to_duration();
        ppoll::wait(&mut poll_fds, Some(timeout))?;
        self.clock.refresh();
        self.take_stamps(tracer);
        self.take_answers(&self.errors, tracer, Self::error);
        self.take_answers(&self.sender, tracer, Self::reply);
        Ok(())
    }
}
