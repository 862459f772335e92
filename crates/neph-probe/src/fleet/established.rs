//! Probes on established TCP connections: each flow is one lasting connection to a neph reflector with small
//! messages. They show the path of real connections.
//!
//! TCP hides losses: a lost message has a longer round trip instead, by the time of its retransmission.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use neph_model::{Instant, Local, REFLECT_PORT, Slot, Span, Target};
use neph_sys::epoll::{Interest, ReadyEvent};
use neph_sys::ppoll::Awaited;

use super::connection_failure::{ConnectionFailure, Fault};
use super::link::{Link, retry_time};
use super::ports::Ports;
use super::session::Event;
use super::spec::{FleetSpec, Sharing};
use super::transport::{Request, Transport, wait_for};
use super::watched::Watched;
use crate::ProbeError;
use crate::codec::{Codec, new_token};
use crate::discover::{DiscoveryOptions, discover};
use crate::kinds;
use crate::spec::{FlowSpec, Trust};
use crate::stamp_clock::{StampClock, now};

/// How long an endpoint may take to identify itself.
const IDENTIFICATION_TIMEOUT: Span = Span::from_secs(5);
/// Least time between the beginnings of two connections: thousands at once overflow a listener's queue.
const DIAL_INTERVAL: Span = Span::from_millis(1);

#[derive(Debug)]
pub(crate) struct Established {
    /// One for each endpoint.
    flows: Vec<FlowSpec>,
    ports: Ports,
    links: Watched<Link>,
    slots: Vec<Option<SlotConnection>>,
    /// Connections of ended flows, each with the time until which it takes late replies.
    leaving: VecDeque<(Instant<Local>, usize, u16)>,
    linger: Span,
    /// Time between the beginnings of two connections.
    dialling: Span,
    /// Events that happened during sends.
    at_once: Vec<Event>,
    buffer: Vec<u8>,
}

/// A slot's flow.
#[derive(Clone, Copy, Debug)]
struct SlotConnection {
    port: u16,
    link: usize,
    /// When it was last dialled.
    dialled: Instant<Local>,
    /// Why its connection broke, if it did.
    failure: Option<ConnectionFailure>,
}

impl Established {
    pub(crate) fn new(spec: &FleetSpec) -> Result<Self, ProbeError> {
        let fleet = &spec.fleet;
        let mut flows = Vec::with_capacity(fleet.endpoints.len());
        for endpoint in &fleet.endpoints {
            flows.push(flow_to(endpoint.address, spec)?);
        }
        let links = Watched::new().map_err(|source| ProbeError::Socket {
            operation: "watch connections to",
            address: flows[0].address,
            source,
        })?;
        Ok(Self {
            flows,
            ports: Ports::bound(spec.first_port, "tcp"),
            links,
            slots: vec![None; fleet.slots as usize],
            leaving: VecDeque::new(),
            linger: spec.timeout,
            dialling: DIAL_INTERVAL.max(spec.least_gap()),
            at_once: Vec::new(),
            buffer: vec![0; 1 << 16],
        })
    }

    fn close_left(&mut self, now: Instant<Local>) {
        while let Some((until, index, port)) = self.leaving.front().copied()
            && until <= now
        {
            self.leaving.pop_front();
            // If it broke, another flow may have its place already.
            let is_its = |link: &Link| link.port() == port;
            if self.links.get(index).is_some_and(is_its) {
                drop_link(&mut self.links, index, &mut self.at_once);
            }
            self.ports.give_back(port);
        }
    }

    /// The slot's connection. If it broke, a new one from the same port.
    fn link_of(&mut self, slot: Slot) -> io::Result<usize> {
        let at = slot.0 as usize;
        let connection = self.slots.get(at).copied().flatten();
        let connection = connection.ok_or(io::ErrorKind::NotConnected)?;
        let link = self.links.get(connection.link);
        if link.is_some_and(|link| link.port() == connection.port) {
            return Ok(connection.link);
        }
        let dialled = now();
        if retry_time(connection.dialled) > dialled {
            return Err(connection
                .failure
                .unwrap_or(ConnectionFailure::Closed)
                .into());
        }
        let port = connection.port;
        self.slots[at] = Some(SlotConnection {
            dialled,
            ..connection
        });
        let flow = &self.flows[at % self.flows.len()];
        let link = Link::dial(flow.address, port, codec_for(flow)?)?;
        let link = self.links.add(link, Interest::ReadWrite)?;
        self.slots[at] = Some(SlotConnection {
            link,
            dialled,
            ..connection
        });
        Ok(link)
    }
}

/// Remembers why the connection at this place broke, if a flow uses it.
fn remember(
    slots: &mut [Option<SlotConnection>],
    links: &Watched<Link>,
    index: usize,
    failure: ConnectionFailure,
) {
    let Some(port) = links.get(index).map(Link::port) else {
        return;
    };
    let mut places = slots.iter_mut().flatten();
    if let Some(connection) =
        places.find(|slot_connection| (slot_connection.link, slot_connection.port) == (index, port))
    {
        connection.failure = Some(failure);
    }
}

/// Removes a connection. Messages that waited on it never left.
fn drop_link(links: &mut Watched<Link>, index: usize, events: &mut Vec<Event>) {
    if let Some(link) = links.take(index) {
        events.extend(link.unsent().map(Event::Failed));
    }
}

/// Handles activity on a connection. `ConnectionFailure` if it cannot be used any more.
fn handle_ready_event(
    link: &mut Link,
    ready_event: ReadyEvent,
    clock: &StampClock,
    buffer: &mut [u8],
    events: &mut Vec<Event>,
) -> Result<(), ConnectionFailure> {
    if link.is_dialling() {
        return link.try_greet();
    }
    let stamped = ready_event.has_notice && link.read_notices(clock, events);
    if ready_event.is_readable || (ready_event.has_notice && !stamped) {
        return link.read(clock, buffer, events);
    }
    Ok(())
}

/// The endpoint must be a neph reflector: no other server answers its messages.
fn flow_to(address: SocketAddr, spec: &FleetSpec) -> Result<FlowSpec, ProbeError> {
    let fleet_error = |reason: String| ProbeError::Fleet(reason);
    let target = Target::tcp(&address.ip().to_string(), address.port())
        .map_err(|error| fleet_error(error.to_string()))?;
    let options = DiscoveryOptions {
        tls_version: None,
        trust: Trust::Public,
        patience: IDENTIFICATION_TIMEOUT.min(spec.timeout),
        site: None,
    };
    let discovery = discover(&target, address, &options)?;
    if !discovery.reflector {
        let silence_reason = discovery.silence.unwrap_or_default();
        let silence_reason = if silence_reason.is_empty() {
            silence_reason
        } else {
            format!(" ({silence_reason})")
        };
        let which = if address.port() == REFLECT_PORT {
            String::new()
        } else {
            format!(" (its default port is {REFLECT_PORT})")
        };
        // By default a reflector listens on IPv4 only.
        let how = if address.is_ipv6() {
            format!(" --listen [::]:{}", address.port())
        } else {
            String::new()
        };
        return Err(fleet_error(format!(
            "established connections need a neph reflector, and none answers at {target}{silence_reason}; \
             start one with 'neph reflect{how}'{which}, or use syn://"
        )));
    }
    let mut flow = FlowSpec::plain(target, address);
    flow.reflector = true;
    (flow.request_size, flow.response_size) = (spec.request_size, spec.response_size);
    Ok(flow)
}

fn codec_for(flow: &FlowSpec) -> io::Result<Box<dyn Codec>> {
    kinds::stream_codec(flow, new_token(), 0).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

impl Transport for Established {
    fn open(&mut self, slot: Slot, now: Instant<Local>) -> Result<u16, ProbeError> {
        self.close_left(now);
        let flow = &self.flows[slot.0 as usize % self.flows.len()];
        let address = flow.address;
        let refusal = |source| ProbeError::Socket {
            operation: "open a TCP connection to",
            address,
            source,
        };
        let taken = self
            .ports
            .take(|port| Link::dial(address, port, codec_for(flow)?));
        let taken = taken.map_err(refusal)?;
        let (port, link) = taken.ok_or(ProbeError::NoPort { address })?;
        let added = self.links.add(link, Interest::ReadWrite);
        let link = added
            .inspect_err(|_| self.ports.give_back(port))
            .map_err(refusal)?;
        let connection = SlotConnection {
            port,
            link,
            dialled: now,
            failure: None,
        };
        if let Some(earlier) = self.slots[slot.0 as usize].replace(connection) {
            self.leaving
                .push_back((now + self.linger, earlier.link, earlier.port));
        }
        Ok(port)
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        let index = self.link_of(request.slot)?;
        let Some(link) = self.links.get_mut(index) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let Err(fault) = link.ask(request.seq, now()) else {
            return Ok(());
        };
        if let Fault::ConnectionFailure(failure) = fault {
            remember(&mut self.slots, &self.links, index, failure);
            drop_link(&mut self.links, index, &mut self.at_once);
        }
        Err(ConnectionFailure::from(fault).into())
    }

    fn read(&mut self, clock: &StampClock, events: &mut Vec<Event>) {
        events.append(&mut self.at_once);
        let (buffer, slots) = (&mut self.buffer, &mut self.slots);
        self.links.walk(|links, index, ready_event| {
            let Some(link) = links.get_mut(index) else {
                return;
            };
            let was_dialling = link.is_dialling();
            if let Err(failure) = handle_ready_event(link, ready_event, clock, buffer, events) {
                remember(slots, links, index, failure);
                drop_link(links, index, events);
            } else if was_dialling && !link.is_dialling() {
                links.only_read(index);
            }
        });
    }

    fn wait(&self, patience: Duration) -> bool {
        wait_for(&mut [Awaited::readable(self.links.as_fd())], patience)
    }

    /// TCP drops nothing that it has acknowledged.
    fn dropped(&self) -> u64 {
        0
    }

    fn opening_gap(&self) -> Span {
        self.dialling
    }

    fn sharing(&self) -> Sharing {
        Sharing::SocketPerFlow
    }
}
