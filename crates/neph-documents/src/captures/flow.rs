//! A TCP flow as a document. Times are nanoseconds.

use std::net::SocketAddr;

use neph_capture::{
    Answer, Event, Flow, Half, Method, PeriodCounts, Quantiles, RoundTripSketches, SentCounts, Side,
};
use neph_model::{Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use super::row::{client_encapsulation, server_encapsulation};

/// A TCP flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowDocument {
    /// Client and server.
    #[serde(flatten)]
    pub ends: EndsDocument,
    /// Timestamp of its first packet.
    pub began_unix_ns: Wall,
    /// Timestamp of its last packet.
    pub last_unix_ns: Wall,
    /// Sent packets and round trips.
    #[serde(flatten)]
    pub shown: ShownDocument,
}

/// The client and the server of a flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EndsDocument {
    /// Address and port of the client.
    pub client: SocketAddr,
    /// Address and port of the server.
    pub server: SocketAddr,
    /// Whether the handshake or a port shows which side is the client.
    pub client_known: bool,
    /// VLAN or tunnel of the client's packets; empty without one.
    pub via: String,
    /// VLAN or tunnel of the server's packets; absent if the same as the client's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via_server: Option<String>,
}

/// Sent packets and round trips of a flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShownDocument {
    /// Packets sent by each side.
    pub sent: SidesDocument,
    /// Round trips between the capture point and each side.
    pub round_trips: HalvesDocument,
}

/// The packets sent by each side.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SidesDocument {
    /// Sent by the client.
    pub client: SentDocument,
    /// Sent by the server.
    pub server: SentDocument,
}

/// Round trips between the capture point and each side.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HalvesDocument {
    /// From the capture point to the server and back.
    pub server: TripsDocument,
    /// From the capture point to the client and back.
    pub client: TripsDocument,
}

/// The packets sent by one side.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct SentDocument {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of IP packets.
    pub bytes: u64,
    /// Bytes of TCP payload.
    pub payload_bytes: u64,
    /// Maximum number of bytes in flight.
    pub max_in_flight_bytes: u32,
    /// Retransmissions after a timeout.
    pub retransmission: u32,
    /// Retransmissions after three duplicate acknowledgements (RFC 5681).
    pub fast_retransmission: u32,
    /// Retransmissions of data that the peer had received already.
    pub spurious_retransmission: u32,
    /// Segments that were out of order.
    pub out_of_order: u32,
    /// Segments after data that is missing in the capture.
    pub segments_after_gap: u32,
    /// Duplicate acknowledgements.
    pub duplicate_ack: u32,
    /// Acknowledgements of data that is missing in the capture.
    pub ack_of_unseen: u32,
    /// Segments with a zero window.
    pub zero_window: u32,
    /// Probes of a zero window.
    pub window_probe: u32,
    /// Keep-alives.
    pub keep_alive: u32,
    /// Resets (RST).
    pub reset: u32,
    /// Segments that were not matched with an acknowledgement, because more were in flight than
    /// neph can track.
    pub segments_not_tracked: u64,
}

/// Round trips to one side, by method.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TripsDocument {
    /// From a segment to the acknowledgement of its last byte.
    pub acknowledgement: ByAnswerDocument,
    /// From a segment to the packet that echoes its TCP timestamp (RFC 7323).
    pub echo: ByAnswerDocument,
    /// From a request to the first data of its answer: network path and server processing. null
    /// without one.
    pub response: Option<QuantilesDocument>,
}

/// Round trips by the kind of answer; null without one.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ByAnswerDocument {
    /// Network path alone: `handshake` and `without_data` together.
    pub path: Option<QuantilesDocument>,
    /// Handshake: SYN or SYN-ACK to its answer.
    pub handshake: Option<QuantilesDocument>,
    /// Acknowledgements without data.
    pub without_data: Option<QuantilesDocument>,
    /// Acknowledgements with data, which include server processing.
    pub with_data: Option<QuantilesDocument>,
    /// Acknowledgements that were probably delayed by a timer.
    pub delayed: Option<QuantilesDocument>,
}

/// The distribution of round trips.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct QuantilesDocument {
    /// Number of round trips.
    pub n: u64,
    /// Number of round trips that these represent, if not all segments were tracked; absent
    /// otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_n: Option<u64>,
    /// Minimum.
    pub min_ns: Span,
    /// Mean.
    pub mean_ns: Span,
    /// Median.
    pub p50_ns: Span,
    /// 95th percentile; null with fewer than 59 round trips.
    pub p95_ns: Option<Span>,
    /// 99th percentile; null with fewer than 299 round trips.
    pub p99_ns: Option<Span>,
    /// Maximum.
    pub max_ns: Span,
    /// Standard deviation; null on overflow.
    pub deviation_ns: Option<Span>,
}

impl From<&Flow> for FlowDocument {
    fn from(flow: &Flow) -> Self {
        Self {
            ends: flow.into(),
            began_unix_ns: flow.first_packet_at(),
            last_unix_ns: flow.last_packet_at(),
            shown: ShownDocument {
                sent: SidesDocument {
                    client: flow.sent(Side::Client).into(),
                    server: flow.sent(Side::Server).into(),
                },
                round_trips: HalvesDocument {
                    server: flow.round_trips(Half::Server).as_ref().into(),
                    client: flow.round_trips(Half::Client).as_ref().into(),
                },
            },
        }
    }
}

impl From<&Flow> for EndsDocument {
    fn from(flow: &Flow) -> Self {
        let name = flow.name();
        Self {
            client: name.client(),
            server: name.server(),
            client_known: name.is_client_known(),
            via: client_encapsulation(flow).trim_start().to_owned(),
            via_server: server_encapsulation(flow),
        }
    }
}

impl From<&PeriodCounts> for ShownDocument {
    fn from(recent: &PeriodCounts) -> Self {
        Self {
            sent: SidesDocument {
                client: recent.sent(Side::Client).into(),
                server: recent.sent(Side::Server).into(),
            },
            round_trips: HalvesDocument {
                server: recent.round_trips(Half::Server).into(),
                client: recent.round_trips(Half::Client).into(),
            },
        }
    }
}

impl From<&SentCounts> for SentDocument {
    fn from(sent: &SentCounts) -> Self {
        Self {
            packets: sent.packets,
            bytes: sent.bytes,
            payload_bytes: sent.payload,
            max_in_flight_bytes: sent.max_in_flight,
            retransmission: sent.count(Event::Retransmission),
            fast_retransmission: sent.count(Event::FastRetransmission),
            spurious_retransmission: sent.count(Event::SpuriousRetransmission),
            out_of_order: sent.count(Event::OutOfOrder),
            segments_after_gap: sent.count(Event::Gap),
            duplicate_ack: sent.count(Event::RepeatedAcknowledgement),
            ack_of_unseen: sent.count(Event::AcknowledgedUnseen),
            zero_window: sent.count(Event::ZeroWindow),
            window_probe: sent.count(Event::WindowProbe),
            keep_alive: sent.count(Event::KeepAlive),
            reset: sent.count(Event::Reset),
            segments_not_tracked: sent.segments_not_tracked(),
        }
    }
}

impl From<&RoundTripSketches> for TripsDocument {
    fn from(round_trips: &RoundTripSketches) -> Self {
        let round_trips = round_trips.by_method();
        let by_answer = |method| {
            let quantiles = |answer| {
                round_trips
                    .answer_quantiles(method, answer)
                    .map(QuantilesDocument::from)
            };
            ByAnswerDocument {
                path: round_trips
                    .path_quantiles(method)
                    .map(QuantilesDocument::from),
                handshake: quantiles(Answer::Handshake),
                without_data: quantiles(Answer::Bare),
                with_data: quantiles(Answer::WithData),
                delayed: quantiles(Answer::Delayed),
            }
        };
        let response = round_trips.answer_quantiles(Method::Response, Answer::WithData);
        Self {
            acknowledgement: by_answer(Method::Acknowledgement),
            echo: by_answer(Method::Echo),
            response: response.map(QuantilesDocument::from),
        }
    }
}

impl From<Quantiles> for QuantilesDocument {
    fn from(quantiles: Quantiles) -> Self {
        let estimated = quantiles.estimated;
        Self {
            n: quantiles.n,
            estimated_n: (estimated > quantiles.n).then_some(estimated),
            min_ns: quantiles.min,
            mean_ns: quantiles.mean,
            p50_ns: quantiles.p50,
            p95_ns: quantiles.p95,
            p99_ns: quantiles.p99,
            max_ns: quantiles.max,
            deviation_ns: quantiles.deviation,
        }
    }
}
