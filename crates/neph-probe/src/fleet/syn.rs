//! SYNs that are built here: one raw socket per endpoint sends from all ports, one receives for all. No file
//! for each flow, so there can be as many flows as ports.
//!
//! A SYN opens no connection: the local kernel refuses the SYN-ACK with a RST, as the port is unused. That is
//! checked when a flow begins, and ensured as far as there are files ([`PortHolders`]).

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::time::Duration;

use neph_model::{Instant, Local, Slot, Span};
use neph_sys::epoll::{Epoll, Interest, ReadyList};
use neph_sys::port_filter;
use neph_sys::ppoll::Awaited;
use neph_sys::stamp::{self, Family, Received};
use neph_wire::syn::{self, Numbers, Verdict};
use socket2::Socket;

use super::port_holders::PortHolders;
use super::ports::Ports;
use super::session::{Event, Replied, RequestId, low};
use super::speaker::Speaker;
use super::spec::{FleetSpec, Sharing};
use super::transport::{Request, Transport, wait_for};
use crate::ProbeError;
use crate::codec::new_token;
use crate::raw_tcp;
use crate::stamp_clock::{StampClock, now};

/// Segments read in a row, so that a flood of answers does not delay a SYN.
const BATCH: usize = 2_048;
/// Receive buffer for answers: more than 100 ms of the fastest fleet.
const RECEIVE_BUFFER_BYTES: i32 = 16 << 20;
/// Epoll identity of the receiver; speakers have the numbers of their endpoints.
const RECEIVER: u64 = u64::MAX;
/// The filter's range grows by blocks of this many ports.
const BLOCK: u16 = 1_024;

#[derive(Debug)]
pub(crate) struct Syns {
    family: Family,
    speakers: Vec<Speaker>,
    receiver: Socket,
    /// Ports that the receiver's filter passes.
    incoming: Option<RangeInclusive<u16>>,
    ports: Ports,
    holders: PortHolders,
    /// By port.
    flows: Vec<Option<Flow>>,
    /// The port of each slot.
    slots: Vec<Option<u16>>,
    /// Ports of ended flows, each with the time until which it takes late replies.
    leaving: VecDeque<(Instant<Local>, u16)>,
    linger: Span,
    numbers: Numbers,
    objects: Objects,
    set: Epoll,
    found: ReadyList,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    endpoint: usize,
    /// The SYN whose SYN-ACK came last.
    accepted: Option<u32>,
    /// The latest SYN, until it is answered.
    unanswered: Option<u32>,
}

/// Whether the fleet refuses SYN-ACKs in addition to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Objects {
    /// The kernel's RST is enough.
    No,
    /// A SYN-ACK was retransmitted: a firewall that passes only segments of programs blocks the kernel's RST.
    Always,
}

impl Syns {
    pub(crate) fn new(spec: &FleetSpec) -> Result<Self, ProbeError> {
        let fleet = &spec.fleet;
        let first = fleet.endpoints[0].address;
        let fault = |address| {
            move |source| ProbeError::Socket {
                operation: "open a raw TCP socket to",
                address,
                source,
            }
        };
        let family = raw_tcp::family(first);
        let receiver = receiver(family).map_err(fault(first))?;
        let set = Epoll::new().map_err(fault(first))?;
        set.add(receiver.as_fd(), RECEIVER, Interest::Read)
            .map_err(fault(first))?;
        let mut speakers = Vec::with_capacity(fleet.endpoints.len());
        for endpoint in &fleet.endpoints {
            let address = endpoint.address;
            let speaker = Speaker::new(address).map_err(fault(address))?;
            set.add(speaker.as_fd(), speakers.len() as u64, Interest::Read)
                .map_err(fault(address))?;
            speakers.push(speaker);
        }
        Ok(Self {
            family,
            speakers,
            receiver,
            incoming: None,
            ports: Ports::unbound(spec.first_port, "tcp"),
            holders: PortHolders::new(),
            flows: vec![None; 1 << 16],
            slots: vec![None; fleet.slots as usize],
            leaving: VecDeque::new(),
            linger: spec.timeout,
            numbers: Numbers::new(new_token().0),
            objects: Objects::No,
            set,
            found: ReadyList::default(),
            buffer: vec![0; 2_048],
        })
    }

    fn close_left(&mut self, now: Instant<Local>) {
        while let Some((until, port)) = self.leaving.front().copied() {
            if until > now {
                return;
            }
            self.leaving.pop_front();
            self.take_back(port);
            self.flows[usize::from(port)] = None;
            self.holders.release(port);
            self.ports.give_back(port);
        }
    }

    /// Refuses the latest SYN's handshake before its SYN-ACK has arrived. A target that still waits for an
    /// earlier handshake does not answer the next SYN. It waits where the path is longer than the interval,
    /// and where a SYN-ACK was lost.
    fn take_back(&mut self, port: u16) {
        if let Some(flow) = &mut self.flows[usize::from(port)]
            && let Some(seq) = flow.unanswered.take()
            && let Some(speaker) = self.speakers.get_mut(flow.endpoint)
        {
            speaker.rst(port, seq);
        }
    }

    /// Extends the receiver's filter to this port.
    fn receive_on_port(&mut self, port: u16) -> io::Result<()> {
        let block = port - port % BLOCK..=port | (BLOCK - 1);
        let wanted = match &self.incoming {
            Some(incoming) if incoming.contains(&port) => return Ok(()),
            Some(incoming) => {
                *incoming.start().min(block.start())..=*incoming.end().max(block.end())
            }
            None => block,
        };
        port_filter::attach(self.receiver.as_fd(), self.family, &wanted)?;
        self.incoming = Some(wanted);
        Ok(())
    }

    /// The sequence number of a SYN: scattered, and different for each flow.
    fn seq(&self, port: u16, number: u32) -> u32 {
        self.numbers.seq(number ^ (u32::from(port) << 16))
    }

    fn number(&self, port: u16, seq: u32) -> u32 {
        self.numbers.number(seq) ^ (u32::from(port) << 16)
    }

    /// The SYN that a received packet answers, if it is for this fleet. Refuses a SYN-ACK if needed.
    fn answered(&mut self, received: &Received) -> Option<(RequestId, Verdict, Option<u8>)> {
        let packet = self.buffer.get(..received.len)?;
        let (segment, ttl) = raw_tcp::segment(self.family, packet)?;
        let answer = syn::parse_answer(segment)?;
        let flow = self.flows[usize::from(answer.to)].as_mut()?;
        let speaker = self.speakers.get_mut(flow.endpoint)?;
        let target = speaker.target();
        if answer.from != target.port() || !is_from(received.from, target.ip()) {
            return None;
        }
        flow.unanswered.take_if(|seq| *seq == answer.seq);
        if answer.verdict == Verdict::Accepted {
            if flow.accepted == Some(answer.seq) {
                self.objects = Objects::Always;
            }
            flow.accepted = Some(answer.seq);
            if self.objects == Objects::Always {
                speaker.rst(answer.to, answer.seq);
            }
        }
        let request = RequestId {
            port: answer.to,
            seq: self.number(answer.to, answer.seq),
        };
        Some((request, answer.verdict, ttl.or(received.ttl)))
    }

    fn listen(&mut self, clock: &StampClock, events: &mut Vec<Event>) {
        for _ in 0..BATCH {
            let Ok(received) = stamp::receive(self.receiver.as_fd(), &mut self.buffer) else {
                return;
            };
            if let Some((request, verdict, ttl)) = self.answered(&received) {
                events.push(Event::Replied(Replied {
                    repeated: None,
                    answer: Some(raw_tcp::answer(verdict)),
                    request,
                    stamp: received.stamp.and_then(|stamp| clock.own_instant(stamp)),
                    read: now(),
                    ttl,
                    peer_report: None,
                }));
            }
        }
    }
}

impl Drop for Syns {
    /// Leaves no state at the targets.
    fn drop(&mut self) {
        for port in 0..=u16::MAX {
            self.take_back(port);
        }
    }
}

fn receiver(family: Family) -> io::Result<Socket> {
    let socket = raw_tcp::open(family)?;
    // Nothing until there is a flow.
    port_filter::attach(socket.as_fd(), family, &(0..=0))?;
    stamp::make_room(socket.as_fd(), RECEIVE_BUFFER_BYTES)?;
    stamp::enable_receive(socket.as_fd())?;
    stamp::enable_ttl(socket.as_fd(), family)?;
    Ok(socket)
}

fn is_from(from: Option<SocketAddr>, target: IpAddr) -> bool {
    from.is_some_and(|from| from.ip() == target)
}

impl Transport for Syns {
    fn open(&mut self, slot: Slot, now: Instant<Local>) -> Result<u16, ProbeError> {
        self.close_left(now);
        let endpoint = slot.0 as usize % self.speakers.len();
        let address = self.speakers[endpoint].target();
        let refusal = |source| ProbeError::Socket {
            operation: "take a source port to reach",
            address,
            source,
        };
        let taken = self
            .ports
            .take(|port| raw_tcp::hold(raw_tcp::any(address, port)));
        let taken = taken.map_err(refusal)?;
        let (port, holder) = taken.ok_or(ProbeError::NoPort { address })?;
        self.receive_on_port(port)
            .inspect_err(|_| self.ports.give_back(port))
            .map_err(refusal)?;
        self.holders.keep(port, holder);
        self.flows[usize::from(port)] = Some(Flow {
            endpoint,
            accepted: None,
            unanswered: None,
        });
        if let Some(earlier) = self.slots[slot.0 as usize].replace(port) {
            self.leaving.push_back((now + self.linger, earlier));
        }
        Ok(port)
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        let seq = self.seq(request.port, low(request.seq));
        let endpoint = request.slot.0 as usize % self.speakers.len();
        let known = RequestId {
            port: request.port,
            seq: low(request.seq),
        };
        self.take_back(request.port);
        self.speakers[endpoint].syn(known, seq)?;
        if let Some(flow) = &mut self.flows[usize::from(request.port)] {
            flow.unanswered = Some(seq);
        }
        Ok(())
    }

    fn read(&mut self, clock: &StampClock, events: &mut Vec<Event>) {
        let mut ready_events = std::mem::take(&mut self.found);
        if self.set.look(&mut ready_events).is_ok() {
            for ready_event in ready_events.iter() {
                if ready_event.token == RECEIVER {
                    self.listen(clock, events);
                } else if let Ok(at) = usize::try_from(ready_event.token)
                    && let Some(speaker) = self.speakers.get_mut(at)
                {
                    speaker.read(clock, events);
                }
            }
        }
        self.found = ready_events;
    }

    fn wait(&self, patience: Duration) -> bool {
        wait_for(&mut [Awaited::readable(self.set.as_fd())], patience)
    }

    fn dropped(&self) -> u64 {
        stamp::dropped(self.receiver.as_fd()).unwrap_or(0)
    }

    fn sharing(&self) -> Sharing {
        Sharing::SharedSockets
    }
}
