//! Which routers stand between here and a destination: UDP with rising TTLs, answered by ICMP
//! errors, without privilege.
//!
//! Each probe has a destination port of its own (33434 and up), by which its answer is known: on a
//! path that is spread over several by ports, hops of different paths show up side by side.
//!
//! Hosts limit how often they answer (Linux: one a second, after six): a destination that was just
//! asked by somebody else is silent at its own hop and answers a farther one, a second later. So
//! where the hops before the end are silent they are asked again, one at a time.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use neph_model::{Hop, Instant, Own, Span, Stop, Traceroute, Wall};
use neph_sys::clock::WallNanos;
use neph_sys::icmp_error::{self, IcmpError, Queued};
use neph_sys::place::Place;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::stamp::{self, Carrier, Family, Notice, Point};
use socket2::SockRef;

use crate::ProbeError;
use crate::stamp_clock::{StampClock, now};

/// The port that traceroutes have always begun with: hardly anybody listens there.
const FIRST_PORT: u16 = 33_434;
/// Between two questions to silent hops: a little more than a host waits between two answers.
const REST: Span = Span::from_millis(1100);
/// Questions to silent hops in all; with [`REST`] they take 9 s at most.
const AGAIN: usize = 8;
/// Questions to one silent hop.
const AGAIN_EACH: usize = 2;
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
    /// and 1 s a traceroute ends within 4 s, and 9 s later where the hops before the end are
    /// silent.
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
                self.ask(ttl, self.spec.probes)?;
                self.take_in(now());
            }
            let latest = now() + self.spec.patience;
            while !self.is_answered() && now() < latest && !stop.is_set() {
                self.take_in(latest.min(now() + Stop::PATIENCE));
            }
            first = last.saturating_add(1);
        }
        self.ask_again(stop)
    }

    /// Asks the silent hops before the end, until one that answers makes the end sure.
    fn ask_again(&mut self, stop: &Stop) -> io::Result<()> {
        let batches = self.probes.len();
        for _ in 0..AGAIN {
            self.rest(stop);
            let again = self.probes.get(batches..).unwrap_or_default();
            let (Some(ttl), false) = (in_doubt(&self.probes, again), stop.is_set()) else {
                return Ok(());
            };
            self.ask(ttl, 1)?;
        }
        self.rest(stop);
        Ok(())
    }

    /// Takes in what comes until the next question may be asked, or none is left.
    fn rest(&mut self, stop: &Stop) {
        let Some(last) = self.probes.last().map(|probe| probe.sent) else {
            return;
        };
        let until = last + REST;
        while in_doubt(&self.probes, &[]).is_some() && now() < until && !stop.is_set() {
            self.take_in(until.min(now() + Stop::PATIENCE));
        }
    }

    fn ask(&mut self, ttl: u8, probes: u8) -> io::Result<()> {
        let socket = SockRef::from(&self.socket);
        match self.destination {
            IpAddr::V4(_) => socket.set_ttl_v4(u32::from(ttl))?,
            IpAddr::V6(_) => socket.set_unicast_hops_v6(u32::from(ttl))?,
        }
        for _ in 0..probes {
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

    fn end(&self) -> Option<u8> {
        end(&self.probes)
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

/// The nearest hop behind which nothing lies.
fn end(probes: &[Probe]) -> Option<u8> {
    let ends = |probe: &&Probe| probe.answer.is_some_and(|answer| answer.ends);
    probes.iter().filter(ends).map(|probe| probe.ttl).min()
}

/// The silent hop to ask next: between the last router that answered and the end, or the first
/// behind it where there is no end; of those that were asked `again` the least the nearest. None if
/// the end is sure, or nobody knows better.
fn in_doubt(probes: &[Probe], again: &[Probe]) -> Option<u8> {
    let end = end(probes);
    let near = probes
        .iter()
        .filter(|probe| end.is_none_or(|end| probe.ttl < end));
    let answered = near.filter(|probe| probe.answer.is_some());
    let router = answered.map(|probe| probe.ttl).max().unwrap_or(0);
    let farthest = probes.iter().map(|probe| probe.ttl).max()?;
    let end = end.unwrap_or_else(|| farthest.min(router + 1) + 1);
    let asked = |ttl: &u8| again.iter().filter(|probe| probe.ttl == *ttl).count();
    (router + 1..end)
        .min_by_key(|ttl| (asked(ttl), *ttl))
        .filter(|ttl| asked(ttl) < AGAIN_EACH)
}

fn is_time_exceeded(destination: IpAddr, kind: u8) -> bool {
    match destination {
        IpAddr::V4(_) => kind == 11,
        IpAddr::V6(_) => kind == 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One probe a hop: `r` a router answers, `D` the destination, `.` nobody.
    fn probes(answers: &str) -> Vec<Probe> {
        let hops = answers.bytes().zip(1..);
        hops.map(|(answer, ttl)| Probe {
            ttl,
            sent: Instant::from_nanos(0),
            left: None,
            answer: (answer != b'.').then_some(Answer {
                from: IpAddr::from([10, 0, 0, answer]),
                round_trip: Span::ZERO,
                ends: answer == b'D',
            }),
        })
        .collect()
    }

    #[test]
    fn only_silent_hops_right_before_the_end_are_asked_again() {
        for sure in ["", "D", "rD", "r.rD", "rr", "r.r"] {
            assert!(in_doubt(&probes(sure), &[]).is_none(), "{sure}");
        }
        assert_eq!(in_doubt(&probes("r.r..."), &[]), Some(4), "no end");
        assert_eq!(in_doubt(&probes("r.......D"), &[]), Some(2));
        assert_eq!(in_doubt(&probes(".DD"), &[]), Some(1));
    }

    #[test]
    fn silent_hops_are_asked_in_turn_and_no_hop_for_ever() {
        let (all, mut again) = (probes("r..D"), Vec::new());
        let mut asked = Vec::new();
        while let Some(ttl) = in_doubt(&all, &again) {
            asked.push(ttl);
            again.push(Probe { ttl, ..all[1] });
        }
        assert_eq!(asked, [2, 3, 2, 3]);
    }
}
