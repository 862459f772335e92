//! All flows and exchanges together, for programs.

use neph_capture::Others;
use schemars::JsonSchema;
use serde::Serialize;

use super::FileDocument;
use super::flow::HalvesDocument;
use crate::version::Version;

/// All flows and exchanges together.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SummaryDocument {
    /// The version of these keys.
    pub schema: Version,
    /// The captures.
    pub files: Vec<FileDocument>,
    /// Packets in them.
    pub packets_captured: u64,
    /// Flows of TCP.
    pub flows: u64,
    /// Flows that were ended to make room for others.
    pub flows_evicted: u64,
    /// Pairs that ask and answer outside of TCP.
    pub exchanges: u64,
    /// Pairs that were ended to make room for others.
    pub exchanges_evicted: u64,
    /// Packets of these pairs.
    pub exchange_packets: u64,
    /// Pairs of ping and DNS of which one direction alone was captured.
    pub exchanges_one_direction_only: u64,
    /// Answers without a question.
    pub responses_without_request: u64,
    /// Questions whose answer was not waited for.
    pub requests_not_tracked: u64,
    /// QUIC connections whose spin bit shows no round trip.
    pub quic_without_spin: u64,
    /// QUIC connections of which one direction alone was captured.
    pub quic_of_one_direction: u64,
    /// Flows whose directions travel in different VLANs or tunnels.
    pub flows_in_different_tunnels: u64,
    /// Directions that several others could answer.
    pub ambiguous_directions: u64,
    /// Packets that the capture holds twice and that count once.
    pub capture_duplicates_removed: u64,
    /// Of the packets that were looked at, those that the capture holds twice and that count twice.
    pub capture_duplicates_counted: u64,
    /// Packets that were looked at for that.
    pub packets_examined: u64,
    /// Answers stamped before what they answer.
    pub responses_stamped_before_request: u64,
    /// Round trips shorter than the resolution of time stamps.
    pub round_trips_below_resolution: u64,
    /// Flows without a round trip to the server.
    pub flows_without_server_rtt: u64,
    /// Of these, flows of which one direction alone was captured.
    pub flows_one_direction_only: u64,
    /// Packets of flows.
    pub packets: u64,
    /// Bytes of flows.
    pub bytes: u64,
    /// Retransmissions, spurious ones included.
    pub retransmitted_segments: u64,
    /// Retransmissions that were needed.
    pub retransmissions: u64,
    /// Retransmissions of what the peer had received already.
    pub spurious_retransmissions: u64,
    /// Segments whose acknowledgement was not waited for.
    pub segments_not_tracked: u64,
    /// Segments out of order.
    pub out_of_order: u64,
    /// Round trips of all flows.
    pub round_trips: HalvesDocument,
    /// Packets of no flow.
    pub other_packets: OthersDocument,
}

/// Packets of no flow.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct OthersDocument {
    /// UDP.
    pub udp: u64,
    /// ICMP.
    pub icmp: u64,
    /// Fragments.
    pub fragments: u64,
    /// Others.
    pub unread: u64,
    /// Packets cut off within the headers.
    pub cut_off: u64,
}

impl From<Others> for OthersDocument {
    fn from(others: Others) -> Self {
        Self {
            udp: others.udp,
            icmp: others.icmp,
            fragments: others.fragments,
            unread: others.unread,
            cut_off: others.cut,
        }
    }
}
