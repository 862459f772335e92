//! A flow for programs: everything, times in nanoseconds.

use std::net::SocketAddr;

use neph_capture::{Answer, Event, Flow, Half, Method, Quantiles, Recent, Sent, Side, Trips};
use neph_model::{Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use super::row::{via_client, via_server};

/// A flow of TCP.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowDocument {
    /// Who is connected, and what is known of both.
    #[serde(flatten)]
    pub ends: EndsDocument,
    /// When its first packet passed, Unix time in nanoseconds.
    pub began_unix_ns: Wall,
    /// When its last packet passed, Unix time in nanoseconds.
    pub last_unix_ns: Wall,
    /// What both sides sent and what was measured.
    #[serde(flatten)]
    pub shown: ShownDocument,
}

/// Who is connected.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EndsDocument {
    /// The client.
    pub client: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// Whether the handshake, or a port, shows which of both is the client.
    pub client_known: bool,
    /// The VLAN or tunnel in which the client's packets travel.
    pub via: String,
    /// The same of the server's packets, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via_server: Option<String>,
}

/// What both sides sent and what was measured.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShownDocument {
    /// What each side sent.
    pub sent: SidesDocument,
    /// Round trips between the capture point and each side.
    pub round_trips: HalvesDocument,
}

/// What each side sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SidesDocument {
    /// The client.
    pub client: SentDocument,
    /// The server.
    pub server: SentDocument,
}

/// Round trips between the capture point and each side.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HalvesDocument {
    /// To the server and back.
    pub server: TripsDocument,
    /// To the client and back.
    pub client: TripsDocument,
}

/// What one side sent.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct SentDocument {
    /// Packets.
    pub packets: u64,
    /// Bytes of IP.
    pub bytes: u64,
    /// Bytes of payload.
    pub payload_bytes: u64,
    /// The most bytes in flight.
    pub max_in_flight_bytes: u32,
    /// Retransmissions after a time-out.
    pub retransmission: u32,
    /// Fast retransmissions.
    pub fast_retransmission: u32,
    /// Retransmissions of what the peer had received already.
    pub spurious_retransmission: u32,
    /// Segments out of order.
    pub out_of_order: u32,
    /// Segments before which the capture misses some.
    pub segments_after_gap: u32,
    /// Duplicate acknowledgements.
    pub duplicate_ack: u32,
    /// Acknowledgements of what the capture does not have.
    pub ack_of_unseen: u32,
    /// Segments with a window of zero.
    pub zero_window: u32,
    /// Window probes.
    pub window_probe: u32,
    /// Keep-alives.
    pub keep_alive: u32,
    /// Resets.
    pub reset: u32,
    /// Segments whose acknowledgement was not waited for: the window was larger than neph has room
    /// for.
    pub segments_not_tracked: u64,
}

/// Round trips of one half, by method.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TripsDocument {
    /// By the last byte that an acknowledgement covers.
    pub acknowledgement: ByAnswerDocument,
    /// By the time stamp that an answer echoes (RFC 7323).
    pub echo: ByAnswerDocument,
    /// From a request to the first data of its answer: network and server processing.
    pub response: Option<QuantilesDocument>,
}

/// Round trips by what answered. `path` is of the network alone.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ByAnswerDocument {
    /// Those of the network path alone.
    pub path: Option<QuantilesDocument>,
    /// Of the handshake.
    pub handshake: Option<QuantilesDocument>,
    /// Of acknowledgements without data.
    pub bare: Option<QuantilesDocument>,
    /// Of acknowledgements with data: server processing is part of them.
    pub with_data: Option<QuantilesDocument>,
    /// Of acknowledgements that a timer delayed.
    pub delayed: Option<QuantilesDocument>,
}

/// A distribution of round trips.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct QuantilesDocument {
    /// How many.
    pub n: u64,
    /// How many the `n` stand for, where not all segments were followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_n: Option<u64>,
    /// The shortest in nanoseconds.
    pub min_ns: Span,
    /// The mean in nanoseconds.
    pub mean_ns: Span,
    /// The median in nanoseconds.
    pub p50_ns: Span,
    /// The 95th percentile in nanoseconds; null where there are too few.
    pub p95_ns: Option<Span>,
    /// The 99th percentile in nanoseconds; null where there are too few.
    pub p99_ns: Option<Span>,
    /// The longest in nanoseconds.
    pub max_ns: Span,
    /// The standard deviation in nanoseconds.
    pub deviation_ns: Option<Span>,
}

impl From<&Flow> for FlowDocument {
    fn from(flow: &Flow) -> Self {
        Self {
            ends: flow.into(),
            began_unix_ns: flow.began(),
            last_unix_ns: flow.last(),
            shown: ShownDocument {
                sent: SidesDocument {
                    client: flow.sent(Side::Client).into(),
                    server: flow.sent(Side::Server).into(),
                },
                round_trips: HalvesDocument {
                    server: flow.trips(Half::Server).as_ref().into(),
                    client: flow.trips(Half::Client).as_ref().into(),
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
            via: via_client(flow).trim_start().to_owned(),
            via_server: via_server(flow),
        }
    }
}

impl From<&Recent> for ShownDocument {
    fn from(recent: &Recent) -> Self {
        Self {
            sent: SidesDocument {
                client: recent.sent(Side::Client).into(),
                server: recent.sent(Side::Server).into(),
            },
            round_trips: HalvesDocument {
                server: recent.trips(Half::Server).into(),
                client: recent.trips(Half::Client).into(),
            },
        }
    }
}

impl From<&Sent> for SentDocument {
    fn from(sent: &Sent) -> Self {
        Self {
            packets: sent.packets,
            bytes: sent.bytes,
            payload_bytes: sent.payload,
            max_in_flight_bytes: sent.most_in_flight,
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
            segments_not_tracked: sent.thinned(),
        }
    }
}

impl From<&Trips> for TripsDocument {
    fn from(trips: &Trips) -> Self {
        let trips = trips.laid_out();
        let by = |method| {
            let of = |answer| trips.of(method, answer).map(QuantilesDocument::from);
            ByAnswerDocument {
                path: trips.path(method).map(QuantilesDocument::from),
                handshake: of(Answer::Handshake),
                bare: of(Answer::Bare),
                with_data: of(Answer::WithData),
                delayed: of(Answer::Delayed),
            }
        };
        let response = trips.of(Method::Response, Answer::WithData);
        Self {
            acknowledgement: by(Method::Acknowledgement),
            echo: by(Method::Echo),
            response: response.map(QuantilesDocument::from),
        }
    }
}

impl From<Quantiles> for QuantilesDocument {
    fn from(of: Quantiles) -> Self {
        Self {
            n: of.n,
            estimated_n: (of.estimated > of.n).then_some(of.estimated),
            min_ns: of.least,
            mean_ns: of.mean,
            p50_ns: of.p50,
            p95_ns: of.p95,
            p99_ns: of.p99,
            max_ns: of.most,
            deviation_ns: of.deviation,
        }
    }
}
