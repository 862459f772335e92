//! What a fleet is asked to do, and what it tells. Plain data, decided before anything runs.

use neph_model::{
    Anchor, Authenticated, ByteSize, Fleet, FleetMessage, Own, Permit, Span, sent_size,
};
use neph_sys::place::Place;

use crate::ProbeError;
use crate::secret::Secret;
use crate::spec::Priority;

/// Ports from 1024 on.
const MOST_LANES: u32 = 64_512;

/// A fleet's whole task.
#[derive(Clone, Debug)]
pub struct FleetSpec {
    /// How many flows ask whom, how, how often.
    pub fleet: Fleet,
    /// How many messages each lane sends; `None` until stopped.
    pub count: Option<u64>,
    /// Payload of a request, bytes; raised to what the kind needs ([`Self::sent_size`]).
    pub request_size: usize,
    /// Payload of a reply that is asked for, bytes; datagrams come back as long as they went.
    pub response_size: usize,
    /// A message without a reply for this long is lost.
    pub timeout: Span,
    /// The first source port; lanes take ports from here on that are free. `None`: the kernel's
    /// range of ports that it gives out itself is kept clear of, where that can be.
    pub first_port: Option<u16>,
    /// Messages a second that are never exceeded, all lanes together.
    pub rate_cap: u32,
    /// What may be sent by all that shares it; beyond it messages are not sent, and count so.
    pub permit: Permit,
    /// Key of authenticated STAMP.
    pub key: Option<Secret>,
    /// How to be scheduled.
    pub priority: Priority,
    /// The place (a lab's site) to send from; `None` is where we are.
    pub site: Option<Place>,
    /// How UDP flows are to share files; `None`: as there are files for this fleet alone.
    pub sharing: Option<Sharing>,
}

impl FleetSpec {
    /// How many messages a second it asks for, all lanes together.
    pub fn rate(&self) -> f64 {
        f64::from(self.fleet.lanes) / self.fleet.interval.secs_f64()
    }

    /// The payload that each request really has.
    pub fn sent_size(&self) -> ByteSize {
        let asked = ByteSize(self.request_size as u64);
        let authenticated = Authenticated::by(self.key.as_ref());
        sent_size(self.fleet.probe, asked, authenticated)
    }

    /// The payload that each reply is asked to have: a datagram comes back as long as it went.
    pub fn asked_size(&self) -> ByteSize {
        if self.fleet.probe.has_reply_size() {
            ByteSize(self.response_size as u64)
        } else {
            self.sent_size()
        }
    }

    /// The least time between two requests, whatever is due.
    pub(crate) fn least_gap(&self) -> Span {
        Span::from_nanos(1_000_000_000 / i64::from(self.rate_cap.max(1)))
    }

    /// Whether such a fleet can be.
    pub(crate) fn check(&self) -> Result<(), ProbeError> {
        let fleet = &self.fleet;
        let wrong = |what: &str| Err(ProbeError::Fleet(what.to_owned()));
        if fleet.lanes == 0 || fleet.lanes > MOST_LANES {
            return Err(ProbeError::Fleet(format!(
                "{} flows; there can be 1 to {MOST_LANES}, as many as there are source ports",
                fleet.lanes
            )));
        }
        let Some(first) = fleet.endpoints.first() else {
            return wrong("it has nobody to ask");
        };
        let versions = fleet.endpoints.iter().map(|one| one.address.is_ipv4());
        if !versions.clone().all(|v4| v4 == first.address.is_ipv4()) {
            return wrong(
                "some of its endpoints have IPv4 addresses and some IPv6; measure them apart",
            );
        }
        if fleet.interval <= Span::ZERO || self.timeout <= Span::ZERO {
            return wrong("its interval and its timeout must be more than nothing");
        }
        if self.rate() > f64::from(self.rate_cap) {
            return Err(ProbeError::Fleet(format!(
                "{} flows with a message each {} are {:.0} messages a second, and the cap is {}; \
                 ask for fewer flows or a longer interval, or raise the cap",
                fleet.lanes,
                fleet.interval,
                self.rate(),
                self.rate_cap
            )));
        }
        Ok(())
    }
}

/// Something a fleet tells.
#[derive(Clone, Debug)]
pub enum FleetReport {
    /// The fleet's first flows are open.
    Opened {
        /// The source port of each lane's first flow.
        sources: Vec<u16>,
        /// How they share the files of this process.
        how: Sharing,
    },
    /// Messages that are finished; those of one flow in order.
    Messages(Vec<FleetMessage>),
    /// Both clocks, once a second.
    Anchor(Anchor<Own>),
    /// The kernel's clock was set: by how much.
    ClockStepped(Span),
    /// The first message that could not be sent, and why in words; later ones are only counted.
    NotSent(String),
    /// The fleet is over; nothing follows.
    Ended(FleetTally),
}

/// How the flows of a fleet share the files that a process may open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// A socket for each flow. Needs no privilege.
    SocketPerFlow,
    /// One raw socket sends for all ports, and one socket receives what comes to them.
    OneForAll,
}

/// How a fleet fared: what its own host did to it stands beside what the network did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetTally {
    /// Requests handed to the kernel.
    pub sent: u64,
    /// Replied to in time.
    pub replies: u64,
    /// Of these, refusals: a SYN was answered by RST, so nobody listens there.
    pub refused: u64,
    /// Not replied to in time.
    pub lost: u64,
    /// Not sent: the kernel refused them.
    pub failed: u64,
    /// Replies that came again.
    pub copies: u64,
    /// Replies that came after their message was counted lost.
    pub late: u64,
    /// Datagrams that our kernel dropped because we read too slowly.
    pub dropped_here: u64,
    /// Messages without both of the kernel's stamps.
    pub unstamped: u64,
    /// Replies that do not repeat what was sent, and are ignored, and replies whose times at the peer cannot be
    /// true (before it was asked, or longer than the round trip), and are left out.
    pub disbelieved: u64,
}

impl FleetTally {
    /// Whether all were replied to in time.
    pub const fn is_whole(&self) -> bool {
        self.lost == 0 && self.failed == 0
    }
}
