//! Which routers stand between here and a destination: UDP with rising TTLs, answered by ICMP
//! errors, without privilege.
//!
//! Each probe has a destination port of its own (33434 and up), by which its answer is known: on a
//! path that is spread over several by ports, hops of different paths show up side by side.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use neph_model::{Hop, Instant, Own, Span, Traceroute, Wall};
use neph_sys::clock::WallNanos;
use neph_sys::icmp_error::{self, IcmpError, Queued};
use neph_sys::place::Place;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::stamp::{self, Carrier, Family, Notice, Point};
use socket2::SockRef;

use crate::ProbeError;
use crate::stamp_clock::{StampClock, now};
use crate::stop::Stop;

/// The port that traceroutes have always begun with: hardly anybody listens there.
const FIRST_PORT: u16 = 33_434;
/// As long as those of other traceroutes (60 bytes with their headers).
const PAYLOAD: [u8; 32] = *b"neph traceroute, no reply needed";

/// How far and how patiently to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracerouteSpec {
    /// The farthest hop, 1 to 64.
    pub max_hops: u8,
    /// Probes for each hop, 1 to 10.
    pub probes: u8,
    /// Hops asked at the same time, at least 1.
    pub at_once: u8,
    /// How long to wait for the answers of hops that were asked together. With 30 hops, 8 at once
    /// and 1 s a traceroute ends within 4 s.
    pub patience: Span,
}

impl Default for TracerouteSpec {
    fn default() -> Self {
        Self {
            max_hops: 30,
            probes: 3,
            at_once: 8,
            patience: Span::from_secs(1),
        }
    }
}

/// The routers that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// When it started.
    pub started: Wall,
    /// The hops, in order; one that nobody answered for has no addresses.
    pub hops: Vec<Hop>,
    /// Whether the destination itself answered.
    pub reached: bool,
}

impl Route {
    /// In the store's words.
    pub fn into_traceroute(self, block: u32, endpoint: &str, destination: IpAddr) -> Traceroute {
        Traceroute {
            block,
            endpoint: endpoint.to_owned(),
            site: None,
            destination,
            started: self.started,
            hops: self.hops,
            reached: self.reached,
            failure: None,
        }
    }
}

/// Asks all hops up to the destination.
///
/// # Errors
/// When no socket can be had, or nothing can be sent (no route).
pub fn traceroute(
    destination: IpAddr,
    spec: &TracerouteSpec,
    site: Option<&Place>,
    stop: &Stop,
) -> Result<Route, ProbeError> {
    let trace = || -> Result<Route, ProbeError> {
        let fault = |source| ProbeError::Socket {
            operation: "trace the route to",
            address: SocketAddr::new(destination, 0),
            source,
        };
        let mut tracer = Tracer::new(destination, spec).map_err(fault)?;
        tracer.run(stop).map_err(fault)?;
        Ok(tracer.into_route())
    };
    match site {
        None => trace(),
        Some(site) => site.run(trace)?,
    }
}

/// One datagram on its way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    ttl: u8,
    sent: Instant<Own>,
    left: Option<WallNanos>,
    answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    from: IpAddr,
    round_trip: Span,
    /// Nothing lies behind: the destination, or a router that knows no way on.
    ends: bool,
}

struct Tracer {
    destination: IpAddr,
    spec: TracerouteSpec,
    socket: UdpSocket,
    clock: StampClock,
    started: Wall,
    /// In the order in which the kernel numbers their stamps.
    probes: Vec<Probe>,
}

impl Tracer {
    fn new(destination: IpAddr, spec: &TracerouteSpec) -> io::Result<Self> {
        let (any, family) = match destination {
            IpAddr::V4(_) => (IpAddr::V4(Ipv4Addr::UNSPECIFIED), Family::V4),
            IpAddr::V6(_) => (IpAddr::V6(Ipv6Addr::UNSPECIFIED), Family::V6),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_nonblocking(true)?;
        icmp_error::enable(socket.as_fd(), family)?;
        stamp::enable(socket.as_fd(), Carrier::Datagrams)?;
        let clock = StampClock::new();
        Ok(Self {
            destination,
            spec: *spec,
            socket,
            started: clock.anchor().wall,
            clock,
            probes: Vec::with_capacity(usize::from(spec.max_hops) * usize::from(spec.probes)),
        })
    }

    fn run(&mut self, stop: &Stop) -> io::Result<()> {
        let mut first = 1;
        while first <= self.spec.max_hops && self.end().is_none() && !stop.is_set() {
            let last = first
                .saturating_add(self.spec.at_once.max(1) - 1)
                .min(self.spec.max_hops);
            for ttl in first..=last {
                self.ask(ttl)?;
                self.take_in(now());
            }
            let latest = now() + self.spec.patience;
            while !self.is_answered() && now() < latest && !stop.is_set() {
                self.take_in(latest.min(now() + Stop::PATIENCE));
            }
            first = last.saturating_add(1);
        }
        Ok(())
    }

    fn ask(&mut self, ttl: u8) -> io::Result<()> {
        let socket = SockRef::from(&self.socket);
        match self.destination {
            IpAddr::V4(_) => socket.set_ttl_v4(u32::from(ttl))?,
            IpAddr::V6(_) => socket.set_unicast_hops_v6(u32::from(ttl))?,
        }
        for _ in 0..self.spec.probes {
            let number = u16::try_from(self.probes.len()).unwrap_or(u16::MAX);
            let to = SocketAddr::new(self.destination, FIRST_PORT.saturating_add(number));
            let sent = now();
            // A call first reports the error that an earlier datagram met; then it can go.
            let mut outcome = self.socket.send_to(&PAYLOAD, to);
            for _ in 0..3 {
                if outcome.is_ok() {
                    break;
                }
                self.take_in(now());
                outcome = self.socket.send_to(&PAYLOAD, to);
            }
            outcome?;
            self.probes.push(Probe {
                ttl,
                sent,
                left: None,
                answer: None,
            });
        }
        Ok(())
    }

    /// Waits until `until` or until something comes, and takes in all that came.
    fn take_in(&mut self, until: Instant<Own>) {
        let mut awaited = [Awaited::readable(self.socket.as_fd())];
        let timeout = (until - now()).to_duration();
        if ppoll::wait(&mut awaited, Some(timeout)).is_err() {
            return;
        }
        self.clock.refresh();
        while let Ok(Some(queued)) = icmp_error::take(self.socket.as_fd()) {
            match queued {
                Queued::Icmp(error) => self.answered(&error),
                Queued::Notice(Notice::Stamp(stamp)) if stamp.point == Point::Sent => {
                    let at = usize::try_from(stamp.id).unwrap_or(usize::MAX);
                    if let Some(probe) = self.probes.get_mut(at) {
                        probe.left = Some(stamp.at);
                    }
                }
                Queued::Notice(_) => {}
            }
        }
        let mut buffer = [0; 64];
        // Somebody listens on the port, and answers: with the next probe's port hardly again.
        while self.socket.recv_from(&mut buffer).is_ok() {}
    }

    fn answered(&mut self, error: &IcmpError) {
        let Some((to, from)) = error.to.zip(error.from) else {
            return;
        };
        let number = usize::from(to.port().saturating_sub(FIRST_PORT));
        let Some(probe) = self.probes.get_mut(number) else {
            return;
        };
        if to.ip() != self.destination || probe.answer.is_some() {
            return;
        }
        let by_kernel = error
            .at
            .zip(probe.left)
            .map(|(came, left)| Span::from_nanos(came.0 - left.0));
        probe.answer = Some(Answer {
            from,
            round_trip: by_kernel.unwrap_or_else(|| now() - probe.sent),
            ends: !is_time_exceeded(self.destination, error.kind),
        });
    }

    /// The nearest hop behind which nothing lies.
    fn end(&self) -> Option<u8> {
        let ends = |probe: &&Probe| probe.answer.is_some_and(|answer| answer.ends);
        self.probes.iter().filter(ends).map(|probe| probe.ttl).min()
    }

    /// Whether every probe that matters was answered.
    fn is_answered(&self) -> bool {
        let end = self.end().unwrap_or(u8::MAX);
        let mut near = self.probes.iter().filter(|probe| probe.ttl <= end);
        near.all(|probe| probe.answer.is_some())
    }

    fn into_route(self) -> Route {
        let end = self.end().unwrap_or(u8::MAX);
        let mut hops: BTreeMap<u8, Hop> = BTreeMap::new();
        let mut reached = false;
        for probe in self.probes.iter().filter(|probe| probe.ttl <= end) {
            let hop = hops.entry(probe.ttl).or_insert_with(|| Hop {
                ttl: probe.ttl,
                addresses: Vec::new(),
                round_trips: Vec::new(),
            });
            let Some(answer) = probe.answer else { continue };
            reached |= answer.from == self.destination && answer.ends;
            if !hop.addresses.contains(&answer.from) {
                hop.addresses.push(answer.from);
            }
            hop.round_trips.push(answer.round_trip);
        }
        Route {
            started: self.started,
            hops: hops.into_values().collect(),
            reached,
        }
    }
}

fn is_time_exceeded(destination: IpAddr, kind: u8) -> bool {
    match destination {
        IpAddr::V4(_) => kind == 11,
        IpAddr::V6(_) => kind == 3,
    }
}
