//! A TCP round trip and a TCP event as documents. Times are integer nanoseconds.

use std::net::SocketAddr;

use neph_capture::{Answer, Event, FlowName, Half, Method, Sample, Side};
use neph_model::{Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

/// A single round trip of TCP.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SampleDocument {
    /// When the round trip ended.
    pub at_unix_ns: Wall,
    /// Address and port of the client.
    pub client: SocketAddr,
    /// Address and port of the server.
    pub server: SocketAddr,
    /// Side of the capture point: `server` (to the server and back) or `client`.
    pub side: &'static str,
    /// Method: `acknowledgement`, `echo` or `response`.
    pub method: &'static str,
    /// Kind of answer: `handshake`, `without_data`, `with_data` or `delayed`.
    pub answer: &'static str,
    /// The round trip.
    pub round_trip_ns: Span,
    /// Bytes in flight when it began.
    pub in_flight_bytes: u32,
    /// Number of segments that it represents, itself included.
    pub weight: u32,
}

/// A TCP event: a segment that is not the next expected one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EventDocument {
    /// Time of the event.
    pub at_unix_ns: Wall,
    /// Address and port of the client.
    pub client: SocketAddr,
    /// Address and port of the server.
    pub server: SocketAddr,
    /// Sender of the segment: `client` or `server`.
    pub sent_by: &'static str,
    /// Kind of event: a key of `sent` in a flow, or `reclassified_spurious` (an earlier
    /// retransmission was spurious).
    pub event: &'static str,
    /// Kind under which the retransmission was reported before, for `reclassified_spurious`;
    /// absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_before_as: Option<&'static str>,
}

impl SampleDocument {
    /// The document of a round trip of this flow.
    pub fn of(name: &FlowName, sample: &Sample) -> Self {
        Self {
            at_unix_ns: sample.at,
            client: name.client(),
            server: name.server(),
            side: side_name(sample.half),
            method: method_name(sample.method),
            answer: answer_name(sample.answer),
            round_trip_ns: sample.round_trip,
            in_flight_bytes: sample.in_flight,
            weight: sample.weight,
        }
    }
}

/// The flow, time and sender of an event.
#[derive(Clone, Copy, Debug)]
pub struct Sending<'n> {
    /// The flow.
    pub name: &'n FlowName,
    /// The time.
    pub at: Wall,
    /// The sender.
    pub side: Side,
}

impl EventDocument {
    /// The document of an event.
    pub fn of(sending: Sending<'_>, event: Event) -> Self {
        Self::build(sending, event_name(event), None)
    }

    /// The document of a retransmission that was reported as `previous_kind` and turned out to be spurious.
    pub fn reclassified_spurious(sending: Sending<'_>, previous_kind: Event) -> Self {
        Self::build(
            sending,
            "reclassified_spurious",
            Some(event_name(previous_kind)),
        )
    }

    fn build(
        sending: Sending<'_>,
        event: &'static str,
        previous_kind: Option<&'static str>,
    ) -> Self {
        Self {
            at_unix_ns: sending.at,
            client: sending.name.client(),
            server: sending.name.server(),
            sent_by: match sending.side {
                Side::Client => "client",
                Side::Server => "server",
            },
            event,
            reported_before_as: previous_kind,
        }
    }
}

const fn event_name(event: Event) -> &'static str {
    match event {
        Event::Retransmission => "retransmission",
        Event::FastRetransmission => "fast_retransmission",
        Event::SpuriousRetransmission => "spurious_retransmission",
        Event::OutOfOrder => "out_of_order",
        Event::Gap => "segments_after_gap",
        Event::RepeatedAcknowledgement => "duplicate_ack",
        Event::AcknowledgedUnseen => "ack_of_unseen",
        Event::ZeroWindow => "zero_window",
        Event::WindowProbe => "window_probe",
        Event::KeepAlive => "keep_alive",
        Event::Reset => "reset",
    }
}

const fn answer_name(answer: Answer) -> &'static str {
    match answer {
        Answer::Handshake => "handshake",
        Answer::Bare => "without_data",
        Answer::WithData => "with_data",
        Answer::Delayed => "delayed",
    }
}

pub(super) const fn side_name(half: Half) -> &'static str {
    match half {
        Half::Client => "client",
        Half::Server => "server",
    }
}

const fn method_name(method: Method) -> &'static str {
    match method {
        Method::Echo => "echo",
        Method::Acknowledgement => "acknowledgement",
        Method::Response => "response",
    }
}
