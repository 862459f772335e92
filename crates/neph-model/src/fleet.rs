//! A fleet: many flows from one source, carried by one thread, and their messages.
//!
//! A message of a fleet is small (thousands of flows over weeks), so it is not a
//! [`Message`](crate::Message) with its ledger. It has the network round trip, and the data that
//! distinguishes path changes, loss, duplication and reordering by direction.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Instant, Local, Peer, ProbeKind, Span, SynAnswer};

/// Default limit of SYNs per second to each target. Operators and firewalls take more for an
/// attack.
pub const SYNS_A_SECOND_EACH: u32 = 200;
/// Maximum number of messages per second of a fleet: half of what one core can send.
pub const MAX_FLEET_MESSAGES_A_SECOND: u32 = 100_000;

/// A slot: the place of one flow in a fleet, from 0. If flows are replaced, a slot has one flow
/// after the other, each with its own source port.
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

/// An endpoint of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetEndpoint {
    /// Name of the endpoint.
    pub name: String,
    /// Address and port of the endpoint.
    pub address: SocketAddr,
}

/// The parameters of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fleet {
    /// Kind of probe, the same for all flows.
    pub probe: ProbeKind,
    /// Number of concurrent flows.
    #[serde(alias = "lanes")]
    pub slots: u32,
    /// The endpoints, at least one. Slot `n` sends to endpoint `n mod endpoints`.
    pub endpoints: Vec<FleetEndpoint>,
    /// Time between two messages of a flow, nanoseconds.
    pub interval: Span,
    /// Lifetime of a flow, nanoseconds: afterwards its slot gets a new source port. null: flows are
    /// not replaced.
    #[serde(alias = "renewal")]
    pub lifetime: Option<Span>,
    /// Criteria for path changes in its messages; absent for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criteria: Option<Criteria>,
}

/// Criteria for path changes in a fleet's messages. They are stored with the messages, so that
/// every later evaluation detects the same changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Criteria {
    /// Number of round trips in the window that must agree, 1 to `window`.
    pub quorum: u8,
    /// Number of round trips in the window, 2 to 16.
    pub window: u8,
    /// Largest difference between round trips that agree, and least change of the base latency,
    /// nanoseconds.
    pub tolerance: Span,
    /// Delay of the evaluation, nanoseconds: messages of all flows are evaluated in the order of
    /// sending.
    pub settle: Span,
}

impl Default for Criteria {
    /// Stable if 3 of 4 round trips are within 0.5 ms; changed if the level moves by more than 0.5
    /// ms.
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
    /// The default for messages that are lost after `timeout`: a lost message delays the evaluation
    /// of later messages of its flow by that time.
    pub fn after(timeout: Span) -> Self {
        Self {
            settle: timeout + Span::from_millis(200),
            ..Self::default()
        }
    }
}

impl Fleet {
    /// The index of a slot's endpoint.
    pub fn endpoint_of(&self, slot: Slot) -> usize {
        let endpoints = u32::try_from(self.endpoints.len()).unwrap_or(u32::MAX);
        (slot.0 % endpoints.max(1)) as usize
    }
}

/// Who read the clock for a round trip.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReadBy {
    /// The kernel read both times: the departure of the request and the arrival of the reply. For a
    /// plain connection attempt, the kernel's own measurement of its handshake.
    Kernel,
    /// neph read at least one of them, so that local delay is included.
    Program,
}

/// What the peer reported about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeerReport {
    /// When the peer's kernel received the request, nanoseconds on the peer's clock.
    pub rx: Instant<Peer>,
    /// Time from there to the departure of the reply, nanoseconds.
    pub residence: Span,
    /// Number of earlier requests of this flow that the peer had answered: the order of arrival at
    /// the peer. null if the peer does not count requests per flow.
    pub count: Option<u32>,
    /// TTL or hop limit of the request on arrival; null if not reported.
    pub ttl: Option<u8>,
}

/// A reply to a message of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetReply {
    /// Time from the departure of the request to the arrival of the reply, nanoseconds.
    pub round_trip: Span,
    /// Who read the clock for the round trip.
    pub read_by: ReadBy,
    /// What the peer reported; null if it reports nothing, as in TCP handshakes.
    #[serde(alias = "at_peer")]
    pub peer_report: Option<PeerReport>,
    /// TTL or hop limit of the reply on arrival; null if unknown.
    pub ttl: Option<u8>,
    /// Number of duplicate replies that arrived before the message was reported.
    pub copies: u8,
    /// The answer to a TCP SYN; absent for other probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<SynAnswer>,
}

impl FleetReply {
    /// The round trip without the time that the request spent at the peer, if the peer reports it.
    pub fn network(&self) -> Span {
        self.peer_report
            .map_or(self.round_trip, |peer| self.round_trip - peer.residence)
    }
}

/// The outcome of a message of a fleet. Loss is an outcome, never a zero or a missing row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FleetOutcome {
    /// The reply arrived within the timeout.
    Reply(FleetReply),
    /// The request was sent, and no reply arrived within the timeout.
    Lost,
    /// The request could not be sent.
    Failed,
}

/// One message of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetMessage {
    /// Slot of its flow.
    pub slot: Slot,
    /// Local source port; with the slot's endpoint it identifies the flow.
    pub source_port: u16,
    /// Sequence number within the flow (not the slot), from 0.
    pub seq: u32,
    /// When the request departed, nanoseconds on the client's monotonic clock: the kernel's reading
    /// if the reply's `read_by` is `kernel`, else that of neph.
    pub sent: Instant<Local>,
    /// Time from the scheduled send time until neph handed the request to the kernel, nanoseconds.
    pub late: Span,
    /// Outcome of the message.
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
    fn slots_alternate_between_the_endpoints() {
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
    fn the_network_rtt_excludes_the_time_at_the_peer() {
        let reply = FleetReply {
            round_trip: Span::from_micros(900),
            read_by: ReadBy::Kernel,
            peer_report: Some(PeerReport {
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
