//! The totals of flows and exchanges, as a document.

use neph_capture::OtherPackets;
use schemars::JsonSchema;
use serde::Serialize;

use super::FileDocument;
use super::flow::HalvesDocument;
use crate::version::Version;

/// The totals of all flows and exchanges.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SummaryDocument {
    /// Version of this schema.
    pub schema: Version,
    /// The captures.
    pub files: Vec<FileDocument>,
    /// Number of packets in the captures.
    pub packets_captured: u64,
    /// Number of TCP flows.
    pub flows: u64,
    /// Flows evicted because too many were tracked at the same time.
    pub flows_evicted: u64,
    /// Pairs of hosts with exchanges outside TCP.
    pub exchanges: u64,
    /// Pairs evicted because too many were tracked at the same time.
    pub exchanges_evicted: u64,
    /// Packets of exchanges.
    pub exchange_packets: u64,
    /// Pairs of ping and DNS with one direction only in the capture.
    pub exchanges_one_direction_only: u64,
    /// Answers of ping and DNS without a request in the capture.
    pub responses_without_request: u64,
    /// Requests that were not matched with an answer, because too many were outstanding.
    pub requests_not_tracked: u64,
    /// QUIC connections whose spin bit shows no round trip.
    pub quic_without_spin: u64,
    /// Connections of `quic_without_spin` of which the capture contains only one direction.
    pub quic_of_one_direction: u64,
    /// Flows and pairs of hosts whose directions are in different VLANs or tunnels.
    pub flows_in_different_tunnels: u64,
    /// Directions that match several directions in other VLANs or tunnels, so that they were not
    /// joined.
    pub ambiguous_directions: u64,
    /// Duplicates in the capture that were removed.
    pub capture_duplicates_removed: u64,
    /// Duplicates among the examined packets that were not removed and count twice.
    pub capture_duplicates_counted: u64,
    /// Packets examined for duplicates that were not removed.
    pub packets_examined: u64,
    /// Answers with a timestamp before their request's.
    pub responses_stamped_before_request: u64,
    /// Round trips of 0 ns: below the resolution of the capture's timestamps.
    pub round_trips_below_resolution: u64,
    /// Flows without a round trip of the path to the server.
    pub flows_without_server_rtt: u64,
    /// Flows of `flows_without_server_rtt` of which the capture contains only one direction.
    pub flows_one_direction_only: u64,
    /// Packets of TCP flows.
    pub packets: u64,
    /// Bytes of IP packets of TCP flows.
    pub bytes: u64,
    /// Retransmitted segments, spurious ones included.
    pub retransmitted_segments: u64,
    /// Retransmitted segments without spurious ones.
    pub retransmissions: u64,
    /// Retransmissions of data that the peer had received already.
    pub spurious_retransmissions: u64,
    /// Segments that were not matched with an acknowledgement.
    pub segments_not_tracked: u64,
    /// Segments that were out of order.
    pub out_of_order: u64,
    /// Round trips of all flows.
    pub round_trips: HalvesDocument,
    /// Packets that belong to no flow.
    pub other_packets: OthersDocument,
}

/// The packets that belong to no flow.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct OthersDocument {
    /// UDP packets.
    pub udp: u64,
    /// ICMP packets.
    pub icmp: u64,
    /// IP fragments without a transport header.
    pub fragments: u64,
    /// Packets of other protocols, or with a contradictory header.
    pub other_protocols: u64,
    /// Packets truncated within the headers.
    pub cut_off: u64,
}

impl From<OtherPackets> for OthersDocument {
    fn from(others: OtherPackets) -> Self {
        Self {
            udp: others.udp,
            icmp: others.icmp,
            fragments: others.fragments,
            other_protocols: others.other_protocols,
            cut_off: others.truncated,
        }
    }
}
