//! The specification of a fleet and its reports. Plain data, decided before anything runs.

use neph_model::{
    Anchor, Authenticated, ByteSize, Fleet, FleetMessage, Local, Permit, Span, sent_size,
};
use neph_sys::place::Placement;

use crate::ProbeError;
use crate::secret::Secret;
use crate::spec::Priority;

/// Ports from 1024 on.
const MAX_SLOTS: u32 = 64_512;

/// The complete specification of a fleet.
#[derive(Clone, Debug)]
pub struct FleetSpec {
    /// Number of flows, endpoints, kind and interval.
    pub fleet: Fleet,
    /// How many messages each slot sends; `None` until stopped.
    pub count: Option<u64>,
    /// Payload of a request, in bytes; raised to what the kind needs ([`Self::sent_size`]).
    pub request_size: usize,
    /// Requested payload of a reply, in bytes. For datagrams it equals the request's.
    pub response_size: usize,
    /// A message without a reply for this long is lost.
    pub timeout: Span,
    /// The first source port; slots take free ports from here on. `None`: outside of the kernel's ephemeral
    /// range if possible.
    pub first_port: Option<u16>,
    /// Most messages per second, for all slots together.
    pub rate_cap: u32,
    /// What all users of the permit may send together. Messages beyond it are not sent and counted as such.
    pub permit: Permit,
    /// Key of authenticated STAMP.
    pub key: Option<Secret>,
    /// How to be scheduled.
    pub priority: Priority,
    /// The place (a lab's site) to send from; `None` is the current one.
    pub site: Option<Placement>,
    /// How UDP flows share files; `None`: by the files available for this fleet alone.
    pub sharing: Option<Sharing>,
}

impl FleetSpec {
    /// Requested messages per second, for all slots together.
    pub fn rate(&self) -> f64 {
        f64::from(self.fleet.slots) / self.fleet.interval.secs_f64()
    }

    /// The actual payload of each request.
    pub fn sent_size(&self) -> ByteSize {
        let requested = ByteSize(self.request_size as u64);
        let authenticated = Authenticated::by(self.key.as_ref());
        sent_size(self.fleet.probe, requested, authenticated)
    }

    /// The requested payload of each reply; for a datagram it equals the request's.
    pub fn asked_size(&self) -> ByteSize {
        if self.fleet.probe.has_reply_size() {
            ByteSize(self.response_size as u64)
        } else {
            self.sent_size()
        }
    }

    /// The least time between two requests, even if more are due.
    pub(crate) fn least_gap(&self) -> Span {
        Span::from_nanos(1_000_000_000 / i64::from(self.rate_cap.max(1)))
    }

    /// Whether such a fleet is possible.
    pub(crate) fn check(&self) -> Result<(), ProbeError> {
        let fleet = &self.fleet;
        let wrong = |message: &str| Err(ProbeError::Fleet(message.to_owned()));
        if fleet.slots == 0 || fleet.slots > MAX_SLOTS {
            return Err(ProbeError::Fleet(format!(
                "{} flows; there can be 1 to {MAX_SLOTS}, as many as there are source ports",
                fleet.slots
            )));
        }
        let Some(first) = fleet.endpoints.first() else {
            return wrong("it has no endpoint");
        };
        let versions = fleet
            .endpoints
            .iter()
            .map(|endpoint| endpoint.address.is_ipv4());
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
                fleet.slots,
                fleet.interval,
                self.rate(),
                self.rate_cap
            )));
        }
        Ok(())
    }
}

/// A report of a fleet.
#[derive(Clone, Debug)]
pub enum FleetReport {
    /// The fleet's first flows are open.
    Opened {
        /// The source port of each slot's first flow.
        sources: Vec<u16>,
        /// How they share the files of this process.
        sharing: Sharing,
    },
    /// Finished messages; those of one flow in order.
    Messages(Vec<FleetMessage>),
    /// Both clocks, once per second.
    Anchor(Anchor<Local>),
    /// The kernel's clock was set, by this much.
    ClockStepped(Span),
    /// The first message that could not be sent, with the reason; later ones are only counted.
    NotSent(String),
    /// The fleet is over. No report follows.
    Ended(FleetTally),
}

/// How the flows of a fleet share the files that a process may open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// A socket for each flow. Needs no privilege.
    SocketPerFlow,
    /// One raw socket sends for all ports, and one socket receives for all.
    SharedSockets,
}

/// The outcome of a fleet, with effects of the client host separate from those of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetTally {
    /// Requests passed to the kernel.
    pub sent: u64,
    /// Replied to in time.
    pub replies: u64,
    /// Of these, refusals: a SYN was answered by RST, so the port is closed.
    pub refused: u64,
    /// Not replied to in time.
    pub lost: u64,
    /// Not sent: the kernel refused them.
    pub failed: u64,
    /// Duplicate replies.
    pub copies: u64,
    /// Replies that came after their message was counted lost.
    pub late: u64,
    /// Datagrams that the local kernel dropped because they were read too slowly.
    pub dropped_here: u64,
    /// Messages without both kernel timestamps.
    pub unstamped: u64,
    /// Replies that do not repeat what was sent, which are ignored. And replies with impossible times at the
    /// peer (before the request, or longer than the round trip), whose times are excluded.
    pub implausible_replies: u64,
}

impl FleetTally {
    /// Whether all were replied to in time.
    pub const fn is_whole(&self) -> bool {
        self.lost == 0 && self.failed == 0
    }
}
