//! A flow, and all of them together, for programs: everything, times in nanoseconds.

use std::net::SocketAddr;

use neph_capture::{Answer, Event, Flow, Half, Method, Name, Quantiles, Sample, Sent, Side, Trips};
use neph_model::{Span, Wall};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::row::{via_client, via_server};

const EVENTS: [(Event, &str); Event::ALL.len()] = [
    (Event::Retransmission, "retransmission"),
    (Event::FastRetransmission, "fast_retransmission"),
    (Event::SpuriousRetransmission, "spurious_retransmission"),
    (Event::OutOfOrder, "out_of_order"),
    (Event::Gap, "missing_before"),
    (Event::RepeatedAcknowledgement, "duplicate_ack"),
    (Event::AcknowledgedUnseen, "ack_of_unseen"),
    (Event::ZeroWindow, "zero_window"),
    (Event::WindowProbe, "window_probe"),
    (Event::KeepAlive, "keep_alive"),
    (Event::Reset, "reset"),
];

/// Written as it is told: a flow has a hundred numbers, and there are very many flows.
pub(crate) fn flow(flow: &Flow) -> impl Serialize {
    let name = flow.name();
    FlowOver {
        kind: "flow",
        client: name.client(),
        server: name.server(),
        client_known: name.is_client_known(),
        via: via_client(flow).trim_start().to_owned(),
        via_server: via_server(flow),
        began_unix_ns: flow.began().unix_nanos(),
        last_unix_ns: flow.last().unix_nanos(),
        sent: Sides {
            client: sent(flow.sent(Side::Client)),
            server: sent(flow.sent(Side::Server)),
        },
        round_trips: Halves {
            server: trips(&flow.trips(Half::Server)),
            client: trips(&flow.trips(Half::Client)),
        },
    }
}

#[derive(Serialize)]
struct FlowOver<'a> {
    kind: &'static str,
    client: SocketAddr,
    server: SocketAddr,
    client_known: bool,
    via: String,
    /// What the server's packets travel in, where that is something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    via_server: Option<String>,
    began_unix_ns: i64,
    last_unix_ns: i64,
    sent: Sides<SentBy<'a>>,
    round_trips: Halves,
}

#[derive(Serialize)]
struct Sides<T> {
    client: T,
    server: T,
}

#[derive(Serialize)]
struct Halves {
    server: ByMethod,
    client: ByMethod,
}

pub(crate) const fn sent(sent: &Sent) -> SentBy<'_> {
    SentBy(sent)
}

/// What one side sent.
pub(crate) struct SentBy<'a>(&'a Sent);

impl Serialize for SentBy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(sent) = self;
        let mut object = serializer.serialize_map(Some(5 + EVENTS.len()))?;
        object.serialize_entry("packets", &sent.packets)?;
        object.serialize_entry("bytes", &sent.bytes)?;
        object.serialize_entry("payload_bytes", &sent.payload)?;
        object.serialize_entry("most_in_flight_bytes", &sent.most_in_flight)?;
        for (event, key) in EVENTS {
            object.serialize_entry(key, &sent.count(event))?;
        }
        object.serialize_entry("segments_not_followed", &sent.thinned())?;
        object.end()
    }
}

/// Round trips of one half by each method; `path` is what speaks of the path alone, `response` holds
/// the program's time too.
#[derive(Serialize)]
pub(crate) struct ByMethod {
    acknowledgement: ByAnswer,
    echo: ByAnswer,
    response: Option<Told>,
}

#[derive(Serialize)]
struct ByAnswer {
    path: Option<Told>,
    handshake: Option<Told>,
    bare: Option<Told>,
    with_data: Option<Told>,
    delayed: Option<Told>,
}

/// A sample of round trips.
#[derive(Serialize)]
pub(crate) struct Told {
    n: u64,
    /// Round trips that the `n` stand for, where not all segments of a window were followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_n: Option<u64>,
    min_ns: i64,
    mean_ns: i64,
    p50_ns: i64,
    p95_ns: Option<i64>,
    p99_ns: Option<i64>,
    max_ns: i64,
    deviation_ns: Option<i64>,
}

pub(crate) fn trips(trips: &Trips) -> ByMethod {
    let trips = trips.laid_out();
    let by = |method| {
        let of = |answer| quantiles(trips.of(method, answer));
        ByAnswer {
            path: quantiles(trips.path(method)),
            handshake: of(Answer::Handshake),
            bare: of(Answer::Bare),
            with_data: of(Answer::WithData),
            delayed: of(Answer::Delayed),
        }
    };
    ByMethod {
        acknowledgement: by(Method::Acknowledgement),
        echo: by(Method::Echo),
        response: quantiles(trips.of(Method::Response, Answer::WithData)),
    }
}

pub(crate) fn quantiles(quantiles: Option<Quantiles>) -> Option<Told> {
    quantiles.map(|of| Told {
        n: of.n,
        estimated_n: (of.estimated > of.n).then_some(of.estimated),
        min_ns: of.least.nanos(),
        mean_ns: of.mean.nanos(),
        p50_ns: of.p50.nanos(),
        p95_ns: of.p95.map(Span::nanos),
        p99_ns: of.p99.map(Span::nanos),
        max_ns: of.most.nanos(),
        deviation_ns: of.deviation.map(Span::nanos),
    })
}

/// A single round trip.
pub(crate) fn sample(name: &Name, sample: &Sample) -> impl Serialize {
    SampleFound {
        kind: "sample",
        at_unix_ns: sample.at.unix_nanos(),
        client: name.client(),
        server: name.server(),
        half: half(sample.half),
        method: method(sample.method),
        answer: answer(sample.answer),
        round_trip_ns: sample.round_trip.nanos(),
        in_flight_bytes: sample.in_flight,
        weight: sample.weight,
    }
}

#[derive(Serialize)]
struct SampleFound {
    kind: &'static str,
    at_unix_ns: i64,
    client: SocketAddr,
    server: SocketAddr,
    half: &'static str,
    method: &'static str,
    answer: &'static str,
    round_trip_ns: i64,
    in_flight_bytes: u32,
    /// Segments that it stands for, itself included.
    weight: u32,
}

/// Something else than the next segment.
pub(crate) fn event(name: &Name, at: Wall, side: Side, event: Event) -> impl Serialize {
    event_called(name, (at, side), EVENTS[event as usize].1, None)
}

/// A retransmission that was written as `was` turns out to have been spurious.
pub(crate) fn found_spurious(name: &Name, at: Wall, side: Side, was: Event) -> impl Serialize {
    let was = EVENTS[was as usize].1;
    event_called(name, (at, side), "found_spurious", Some(was))
}

fn event_called(
    name: &Name,
    (at, side): (Wall, Side),
    event: &'static str,
    was: Option<&'static str>,
) -> EventFound {
    EventFound {
        kind: "event",
        at_unix_ns: at.unix_nanos(),
        client: name.client(),
        server: name.server(),
        sent_by: match side {
            Side::Client => "client",
            Side::Server => "server",
        },
        event,
        was,
    }
}

#[derive(Serialize)]
struct EventFound {
    kind: &'static str,
    at_unix_ns: i64,
    client: SocketAddr,
    server: SocketAddr,
    sent_by: &'static str,
    event: &'static str,
    /// What it was written as before.
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<&'static str>,
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
