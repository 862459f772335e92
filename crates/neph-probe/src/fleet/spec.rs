//! What a fleet is asked to do, and what it tells. Plain data, decided before anything runs.

use neph_model::{Anchor, Fleet, FleetMessage, Own, Span};
use neph_sys::place::Place;

use crate::spec::Priority;

/// A fleet's whole task.
#[derive(Clone, Debug)]
pub struct FleetSpec {
    /// How many flows ask whom, how, how often.
    pub fleet: Fleet,
    /// How many messages each lane sends; `None` until stopped.
    pub count: Option<u64>,
    /// Payload of a request, bytes; raised to what the kind needs.
    pub request_size: usize,
    /// A message without a reply for this long is lost.
    pub timeout: Span,
    /// The first source port; lanes take ports from here on that are free. `None`: the kernel's
    /// range of ports that it gives out itself is kept clear of, where that can be.
    pub first_port: Option<u16>,
    /// Messages a second that are never exceeded, all lanes together.
    pub rate_cap: u32,
    /// Key of authenticated STAMP.
    pub key: Option<Vec<u8>>,
    /// How to be scheduled.
    pub priority: Priority,
    /// The place (a lab's site) to send from; `None` is where we are.
    pub site: Option<Place>,
}

/// Something a fleet tells.
#[derive(Clone, Debug)]
pub enum FleetReport {
    /// Messages that are finished; those of one flow in order.
    Messages(Vec<FleetMessage>),
    /// Both clocks, once a second.
    Anchor(Anchor<Own>),
    /// The kernel's clock was set: by how much.
    ClockStepped(Span),
    /// The fleet is over; nothing follows.
    Ended(FleetTally),
}

/// How a fleet fared: what its own host did to it stands beside what the network did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetTally {
    /// Requests handed to the kernel.
    pub sent: u64,
    /// Replied to in time.
    pub replies: u64,
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
}
