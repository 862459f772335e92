//! Probes without privilege: a socket for each flow, whose kernel reports ICMP errors (`IP_RECVERR`). A
//! router may quote no payload, so the answered probe is not known and a flow asks one hop at a time.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use neph_model::{Instant, Local, TraceKind};
use neph_sys::clock::WallNanos;
use neph_sys::icmp_error::{self, Queued};
use neph_sys::ppoll::{self, Awaited};
use neph_sys::stamp::{self, Notice, Point};
use neph_wire::icmp::{self, Family, IcmpMessage};
use neph_wire::probe;
use neph_wire::stamp::{Auth, decode_reply};
use socket2::{Protocol, SockAddr, SockRef, Socket, Type};

use super::carrier::{self, Carrier};
use super::flow::{Answer, AnswerKind, ProbeId};
use super::tracer::Tracer;
use super::tracer_io::{ProbeToSend, ReceivedAnswer};
use crate::fleet::take_bound;
use crate::stamp_clock::{StampClock, now};

/// One flow's socket.
#[derive(Debug)]
struct FlowSocket {
    socket: Socket,
    /// By the kernel's number of their send timestamps.
    sent: Vec<ProbeId>,
}

/// A socket for each flow, by port.
#[derive(Debug)]
pub(super) struct Plain {
    source: IpAddr,
    destination: SocketAddr,
    kind: TraceKind,
    clock: StampClock,
    flows: BTreeMap<u16, FlowSocket>,
}

impl Plain {
    /// # Errors
    /// No route.
    pub(super) fn open(destination: SocketAddr, kind: TraceKind) -> io::Result<Self> {
        Ok(Self {
            source: carrier::own_address(destination)?,
            destination,
            kind,
            clock: StampClock::new(),
            flows: BTreeMap::new(),
        })
    }

    fn bind(&self, port: u16, protocol: Protocol) -> io::Result<Socket> {
        let socket = carrier::socket(self.destination, Type::DGRAM, protocol)?;
        icmp_error::enable(socket.as_fd(), carrier::family(self.destination))?;
        stamp::enable(socket.as_fd(), stamp::Carrier::Datagrams)?;
        socket.bind(&carrier::local_sock_addr(
            self.source,
            port,
            self.destination,
        ))?;
        let mut peer = self.destination;
        if self.kind == TraceKind::Icmp {
            peer.set_port(0);
        }
        socket.connect(&SockAddr::from(peer))?;
        Ok(socket)
    }

    fn payload(&self, probe: &ProbeToSend) -> Option<Vec<u8>> {
        match self.kind {
            TraceKind::Icmp => {
                let ends = (self.source, self.destination.ip());
                probe::echo(ends, probe.port, probe.number).map(Vec::from)
            }
            TraceKind::Udp | TraceKind::Syn => Some(carrier::stamp_request(probe.number)),
        }
    }

    /// The number in a quoted payload (for ICMP: a message) of this trace, if it is complete.
    fn number(&self, quoted: &[u8]) -> Option<u16> {
        let number = match self.kind {
            TraceKind::Icmp => u16::from_be_bytes(quoted.get(6..8)?.try_into().ok()?),
            TraceKind::Udp | TraceKind::Syn => {
                let number = u32::from_be_bytes(quoted.get(..4)?.try_into().ok()?);
                u16::try_from(number).ok()?
            }
        };
        (number > 0).then_some(number)
    }

    fn incoming(&self, port: u16, number: Option<u16>, stamp: Option<WallNanos>) -> ReceivedAnswer {
        let (at, read_by) = carrier::arrival(&self.clock, stamp);
        ReceivedAnswer {
            port,
            number,
            answer: Answer {
                from: self.destination.ip(),
                kind: AnswerKind::Arrived,
                at,
                read_by,
            },
            labels: Vec::new(),
        }
    }

    fn take_errors(&self, port: u16, flow: &FlowSocket, tracer: &mut Tracer) {
        let mut quoted = [0; 64];
        while let Ok(Some((queued, len))) =
            icmp_error::take_quoted(flow.socket.as_fd(), &mut quoted)
        {
            match queued {
                Queued::Notice(Notice::Stamp(stamp)) if stamp.point == Point::Sent => {
                    carrier::note_left(&self.clock, &flow.sent, stamp, tracer);
                }
                Queued::Notice(_) => {}
                Queued::Icmp(error) => {
                    let number = self.number(quoted.get(..len).unwrap_or_default());
                    let Some(from) = error.from else { continue };
                    let Some(kind) = carrier::reported_error(self.destination, from, &error) else {
                        continue;
                    };
                    let mut incoming = self.incoming(port, number, error.at);
                    incoming.answer.from = from;
                    incoming.answer.kind = kind;
                    tracer.on_answer(&incoming);
                }
            }
        }
    }

    fn take_replies(&self, port: u16, flow: &FlowSocket, tracer: &mut Tracer) {
        let mut buffer = [0; 2048];
        while let Ok(received) = stamp::receive(flow.socket.as_fd(), &mut buffer) {
            let bytes = buffer.get(..received.len).unwrap_or_default();
            let number = match self.kind {
                TraceKind::Icmp => echo_number(carrier::icmp_family(self.destination), bytes),
                TraceKind::Udp | TraceKind::Syn => decode_reply(bytes, Auth::Open)
                    .ok()
                    .and_then(|reply| u16::try_from(reply.packet.sender_seq).ok()),
            };
            // The socket is connected: every datagram is the destination's answer to this flow.
            tracer.on_answer(&self.incoming(port, number, received.stamp));
        }
    }
}

fn echo_number(family: Family, message: &[u8]) -> Option<u16> {
    match icmp::parse(family, message).ok()? {
        IcmpMessage::EchoReply(echo) => Some(echo.seq16),
        _ => None,
    }
}

impl Carrier for Plain {
    fn hold(&mut self, port: u16) -> io::Result<()> {
        let socket = match self.kind {
            TraceKind::Icmp => self.bind(port, carrier::icmp_protocol(self.destination)),
            TraceKind::Udp | TraceKind::Syn => {
                take_bound("udp", port, |port| self.bind(port, Protocol::UDP))
            }
        }?;
        let sent = Vec::new();
        self.flows.insert(port, FlowSocket { socket, sent });
        Ok(())
    }

    fn room(&self) -> usize {
        carrier::files_left()
    }

    fn release(&mut self) -> bool {
        !std::mem::take(&mut self.flows).is_empty()
    }

    fn send(&mut self, probe: &ProbeToSend) -> io::Result<()> {
        let Some(bytes) = self.payload(probe) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let Some(flow) = self.flows.get_mut(&probe.port) else {
            return Ok(());
        };
        carrier::set_ttl(&SockRef::from(&flow.socket), self.destination, probe.ttl)?;
        let FlowSocket { socket, sent } = flow;
        carrier::send_counted(socket, sent, probe.id, || socket.send(&bytes))
    }

    fn take_in(&mut self, until: Instant<Local>, tracer: &mut Tracer) -> io::Result<()> {
        let sockets = self.flows.values();
        let mut poll_fds: Vec<Awaited> = sockets
            .map(|flow| Awaited::readable(flow.socket.as_fd()))
            .collect();
        let timeout = (until - now()).to_duration();
        ppoll::wait(&mut poll_fds, Some(timeout))?;
        self.clock.refresh();
        for ((port, flow), poll_fd) in self.flows.iter().zip(&poll_fds) {
            if poll_fd.has_something() {
                self.take_errors(*port, flow, tracer);
                self.take_replies(*port, flow, tracer);
            }
        }
        Ok(())
    }
}
