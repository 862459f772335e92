//! A flow, a round trip and an event for programs: everything, times in nanoseconds.

use std::net::SocketAddr;

use neph_capture::{
    Answer, Event, Flow, Half, Method, Name, Quantiles, Recent, Sample, Sent, Side, Trips,
};
use neph_model::{Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use super::row::{via_client, via_server};
use super::summary::SummaryDocument;
use super::{ExchangeDocument, ExchangeSample};

/// One document; it is written while captures are read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CapturesDocument {
    /// The flows of TCP.
    pub flows: Vec<CaptureLine>,
    /// Pairs that ask and answer outside of TCP.
    pub exchanges: Vec<CaptureLine>,
    /// All together.
    pub summary: CaptureLine,
}

/// A line of NDJSON.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CaptureLine {
    /// A flow of TCP.
    Flow(Box<FlowDocument>),
    /// A pair that asks and answers outside of TCP.
    Exchange {
        /// The pair.
        #[serde(flatten)]
        exchange: Box<ExchangeDocument>,
        /// When its first packet passed, Unix time in nanoseconds.
        began_unix_ns: Wall,
        /// When its last packet passed, Unix time in nanoseconds.
        last_unix_ns: Wall,
    },
    /// A single round trip.
    Sample(SampleOf),
    /// Something else than the next segment.
    Event(EventDocument),
    /// The last line.
    Summary(Box<SummaryDocument>),
}

/// A single round trip: of TCP, or outside of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SampleOf {
    /// Of TCP.
    Tcp(SampleDocument),
    /// Outside of TCP.
    Exchange(ExchangeSample),
}

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
    pub most_in_flight_bytes: u32,
    /// Retransmissions after a time-out.
    pub retransmission: u32,
    /// Fast retransmissions.
    pub fast_retransmission: u32,
    /// Retransmissions of what the peer had received already.
    pub spurious_retransmission: u32,
    /// Segments out of order.
    pub out_of_order: u32,
    /// Segments before which the capture misses some.
    pub missing_before: u32,
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
    pub segments_not_followed: u64,
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

/// A single round trip of TCP.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SampleDocument {
    /// When it ended, Unix time in nanoseconds.
    pub at_unix_ns: Wall,
    /// The client.
    pub client: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// To which side and back: `client` or `server`.
    pub half: &'static str,
    /// `acknowledgement`, `echo` or `response`.
    pub method: &'static str,
    /// What answered: `handshake`, `bare`, `with_data` or `delayed`.
    pub answer: &'static str,
    /// How long it took, in nanoseconds.
    pub round_trip_ns: Span,
    /// Bytes in flight when it began.
    pub in_flight_bytes: u32,
    /// Segments that it stands for, itself included.
    pub weight: u32,
}

/// Something else than the next segment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EventDocument {
    /// When, Unix time in nanoseconds.
    pub at_unix_ns: Wall,
    /// The client.
    pub client: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// Who sent it: `client` or `server`.
    pub sent_by: &'static str,
    /// What.
    pub event: &'static str,
    /// As what it was reported before, where it turned out to be spurious.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<&'static str>,
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
            most_in_flight_bytes: sent.most_in_flight,
            retransmission: sent.count(Event::Retransmission),
            fast_retransmission: sent.count(Event::FastRetransmission),
            spurious_retransmission: sent.count(Event::SpuriousRetransmission),
            out_of_order: sent.count(Event::OutOfOrder),
            missing_before: sent.count(Event::Gap),
            duplicate_ack: sent.count(Event::RepeatedAcknowledgement),
            ack_of_unseen: sent.count(Event::AcknowledgedUnseen),
            zero_window: sent.count(Event::ZeroWindow),
            window_probe: sent.count(Event::WindowProbe),
            keep_alive: sent.count(Event::KeepAlive),
            reset: sent.count(Event::Reset),
            segments_not_followed: sent.thinned(),
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

impl SampleDocument {
    /// Of a round trip of this flow.
    pub fn of(name: &Name, sample: &Sample) -> Self {
        Self {
            at_unix_ns: sample.at,
            client: name.client(),
            server: name.server(),
            half: half(sample.half),
            method: method(sample.method),
            answer: answer(sample.answer),
            round_trip_ns: sample.round_trip,
            in_flight_bytes: sample.in_flight,
            weight: sample.weight,
        }
    }
}

/// When something happened to a flow, and which side sent it.
#[derive(Clone, Copy, Debug)]
pub struct Sending<'n> {
    /// The flow.
    pub name: &'n Name,
    /// When.
    pub at: Wall,
    /// Who sent it.
    pub side: Side,
}

impl EventDocument {
    /// Something else than the next segment.
    pub fn of(sending: Sending<'_>, event: Event) -> Self {
        Self::called(sending, event_name(event), None)
    }

    /// A retransmission that was reported as `was` turns out to have been spurious.
    pub fn found_spurious(sending: Sending<'_>, was: Event) -> Self {
        Self::called(sending, "found_spurious", Some(event_name(was)))
    }

    fn called(sending: Sending<'_>, event: &'static str, was: Option<&'static str>) -> Self {
        Self {
            at_unix_ns: sending.at,
            client: sending.name.client(),
            server: sending.name.server(),
            sent_by: match sending.side {
                Side::Client => "client",
                Side::Server => "server",
            },
            event,
            was,
        }
    }
}

const fn event_name(event: Event) -> &'static str {
    match event {
        Event::Retransmission => "retransmission",
        Event::FastRetransmission => "fast_retransmission",
        Event::SpuriousRetransmission => "spurious_retransmission",
        Event::OutOfOrder => "out_of_order",
        Event::Gap => "missing_before",
        Event::RepeatedAcknowledgement => "duplicate_ack",
        Event::AcknowledgedUnseen => "ack_of_unseen",
        Event::ZeroWindow => "zero_window",
        Event::WindowProbe => "window_probe",
        Event::KeepAlive => "keep_alive",
        Event::Reset => "reset",
    }
}

const fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Handshake => "handshake",
        Answer::Bare => "bare",
        Answer::WithData => "with_data",
        Answer::Delayed => "delayed",
    }
}

pub(super) const fn half(half: Half) -> &'static str {
    match half {
        Half::Client => "client",
        Half::Server => "server",
    }
}

const fn method(method: Method) -> &'static str {
    match method {
        Method::Echo => "echo",
        Method::Acknowledgement => "acknowledgement",
        Method::Response => "response",
    }
}
