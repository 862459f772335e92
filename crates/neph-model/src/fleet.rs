//! A fleet: many flows of one source that one thread carries, and their messages.
//!
//! A message of a fleet is small (thousands of flows over weeks), so it is not a
//! [`Message`](crate::Message) with its ledger. It holds the network's round trip, and what
//! distinguishes path changes, loss, duplication and reordering by direction.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Instant, Own, Peer, ProbeKind, Span, SynAnswer};

/// SYNs a second to each target, unless more are allowed: a target's operator, and every firewall in
/// between, takes many for an attack.
pub const SYNS_A_SECOND_EACH: u32 = 200;
/// The most messages a second of a fleet: half of what one core sends.
pub const MOST_FLEET_MESSAGES_A_SECOND: u32 = 100_000;

/// A place in a fleet, counted from 0. It holds one flow at a time: where flows are replaced, a slot
/// holds one after the other, each with a source port of its own.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Slot(pub u32);

/// Somebody whom a fleet asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetEndpoint {
    /// Its name on screen.
    pub name: String,
    /// Where it is.
    pub address: SocketAddr,
}

/// What a fleet consists of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fleet {
    /// The kind of exchange, the same for all flows.
    pub probe: ProbeKind,
    /// How many flows there are at a time.
    #[serde(alias = "lanes")]
    pub slots: u32,
    /// Whom they ask: slot `n` belongs to endpoint `n mod endpoints`. At least one.
    pub endpoints: Vec<FleetEndpoint>,
    /// Time between two messages of a flow.
    pub interval: Span,
    /// How long a flow lives before its slot takes a new source port; `None`: as long as the fleet.
    #[serde(alias = "renewal")]
    pub lifetime: Option<Span>,
    /// By what path changes are told in its messages; `None`: by the usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criteria: Option<Criteria>,
}

/// By what path changes are told in a fleet's messages: kept with them, so that whoever reads them
/// later finds the same changes as whoever watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Criteria {
    /// How many of the window's round trips have to agree, 1 to `window`.
    pub quorum: u8,
    /// How many round trips the window holds, 2 to 16.
    pub window: u8,
    /// How near to each other they are when they agree, and how far the base latency moves at least.
    pub tolerance: Span,
    /// How long messages wait for those of other flows, to be looked at in the order of sending.
    pub settle: Span,
}

impl Default for Criteria {
    /// Stable when 3 of 4 round trips lie within 0.5 ms; changed when by more than 0.5 ms.
    fn default() -> Self {
        Self {
            quorum: 3,
            window: 4,
            tolerance: Span::from_micros(500),
            settle: Span::from_secs(2),
        }
    }
}

impl Criteria {
    /// The usual, for messages that count as lost after `timeout`: one that is lost keeps back what
    /// its flow sent after it for so long.
    pub fn after(timeout: Span) -> Self {
        Self {
            settle: timeout + Span::from_millis(200),
            ..Self::default()
        }
    }
}

impl Fleet {
    /// The index of the endpoint that a slot asks.
    pub fn endpoint_of(&self, slot: Slot) -> usize {
        let endpoints = u32::try_from(self.endpoints.len()).unwrap_or(u32::MAX);
        (slot.0 % endpoints.max(1)) as usize
    }
}

/// Whose clock readings a round trip was calculated from.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReadBy {
    /// The kernel's stamps of both, the request's departure and the reply's arrival; of a plain
    /// connect, the kernel's own measure of its handshake.
    Kernel,
    /// The program's own readings for at least one of them: our own waiting is part of it.
    Program,
}

/// What the peer told of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtPeer {
    /// When its kernel received the request.
    pub rx: Instant<Peer>,
    /// From there until it sent the reply.
    pub residence: Span,
    /// How many requests of this flow it had answered before: the order of arrival there. A peer
    /// without a memory of its flows does not tell it.
    pub count: Option<u32>,
    /// The TTL or hop limit with which the request arrived.
    pub ttl: Option<u8>,
}

/// A reply to a message of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetReply {
    /// From the request's departure to the reply's arrival.
    pub round_trip: Span,
    /// Who read the clock for it.
    pub read_by: ReadBy,
    /// What the peer told; TCP handshakes tell nothing.
    pub at_peer: Option<AtPeer>,
    /// The TTL or hop limit with which the reply arrived.
    pub ttl: Option<u8>,
    /// How many more replies to the same request came (until the message was told).
    pub copies: u8,
    /// What was said to a TCP SYN; other requests have no such answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<SynAnswer>,
}

impl FleetReply {
    /// The round trip without the time that the request spent at the peer, if the peer reports it.
    pub fn network(&self) -> Span {
        self.at_peer
            .map_or(self.round_trip, |peer| self.round_trip - peer.residence)
    }
}

/// How a message of a fleet ended. Loss is an outcome, never a zero or a missing row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FleetOutcome {
    /// The reply came within the timeout.
    Reply(FleetReply),
    /// The request left, and no reply came within the timeout.
    Lost,
    /// The request could not be sent.
    Failed,
}

/// One message of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetMessage {
    /// The place in the fleet.
    pub slot: Slot,
    /// Local source port: with the slot's endpoint it identifies the flow.
    pub source_port: u16,
    /// Its number within the flow (not the slot), from 0.
    pub seq: u32,
    /// When it left: the kernel's reading if the reply says so, else the program's.
    pub sent: Instant<Own>,
    /// How much later than the schedule said the program handed it to the kernel.
    pub late: Span,
    /// How it ended.
    pub outcome: FleetOutcome,
}

impl FleetMessage {
    /// Its reply, if one came in time.
    pub const fn reply(&self) -> Option<&FleetReply> {
        match &self.outcome {
            FleetOutcome::Reply(reply) => Some(reply),
            FleetOutcome::Lost | FleetOutcome::Failed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_take_turns_at_the_endpoints() {
        let endpoint = |name: &str| FleetEndpoint {
            name: name.to_owned(),
            address: ([192, 0, 2, 1], 862).into(),
        };
        let fleet = Fleet {
            probe: ProbeKind::Udp,
            slots: 5,
            endpoints: vec![endpoint("a"), endpoint("b")],
            interval: Span::from_millis(200),
            lifetime: None,
            criteria: None,
        };
        let of = |slot| fleet.endpoint_of(Slot(slot));
        assert_eq!([of(0), of(1), of(2), of(4)], [0, 1, 0, 0]);
    }

    #[test]
    fn the_time_at_the_peer_is_not_the_networks() {
        let reply = FleetReply {
            round_trip: Span::from_micros(900),
            read_by: ReadBy::Kernel,
            at_peer: Some(AtPeer {
                rx: Instant::from_nanos(5),
                residence: Span::from_micros(100),
                count: Some(0),
                ttl: Some(64),
            }),
            ttl: Some(63),
            copies: 0,
            answer: None,
        };
        assert_eq!(reply.network(), Span::from_micros(800));
    }
}
