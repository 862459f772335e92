//! A round trip of TCP and an event for programs. Times are integers of nanoseconds.

use std::net::SocketAddr;

use neph_capture::{Answer, Event, Half, Method, Name, Sample, Side};
use neph_model::{Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

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
    /// The sender.
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
        Event::Gap => "segments_after_gap",
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
