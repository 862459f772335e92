//! A flow, and all of them together, for programs: everything, times in nanoseconds.

use neph_capture::{Answer, Event, Flow, Half, Method, Name, Quantiles, Sample, Sent, Side, Trips};
use neph_model::Wall;
use serde_json::{Map, Value, json};

use super::row::via;

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

const ANSWERS: [(Answer, &str); Answer::ALL.len()] = [
    (Answer::Handshake, "handshake"),
    (Answer::Bare, "bare"),
    (Answer::WithData, "with_data"),
    (Answer::Delayed, "delayed"),
];

pub(crate) fn flow(flow: &Flow) -> Value {
    let name = flow.name();
    json!({
        "kind": "flow",
        "client": name.client().to_string(),
        "server": name.server().to_string(),
        "client_known": name.is_client_known(),
        "via": via(name).trim_start(),
        "began_unix_ns": flow.began().unix_nanos(),
        "last_unix_ns": flow.last().unix_nanos(),
        "sent": {
            "client": sent(flow.sent(Side::Client)),
            "server": sent(flow.sent(Side::Server)),
        },
        "round_trips": {
            "server": trips(&flow.trips(Half::Server)),
            "client": trips(&flow.trips(Half::Client)),
        },
    })
}

pub(crate) fn sent(sent: &Sent) -> Value {
    let mut object = Map::new();
    object.insert("packets".to_owned(), sent.packets.into());
    object.insert("bytes".to_owned(), sent.bytes.into());
    object.insert("payload_bytes".to_owned(), sent.payload.into());
    object.insert(
        "most_in_flight_bytes".to_owned(),
        sent.most_in_flight.into(),
    );
    for (event, key) in EVENTS {
        object.insert(key.to_owned(), sent.count(event).into());
    }
    Value::Object(object)
}

/// Round trips of one half by each method; `path` is what speaks of the path alone, `response` holds
/// the program's time too.
pub(crate) fn trips(trips: &Trips) -> Value {
    let by = |method| {
        let mut object = Map::new();
        object.insert("path".to_owned(), quantiles(trips.path(method)));
        for (answer, key) in ANSWERS {
            object.insert(key.to_owned(), quantiles(trips.of(method, answer)));
        }
        Value::Object(object)
    };
    json!({
        "acknowledgement": by(Method::Acknowledgement),
        "echo": by(Method::Echo),
        "response": quantiles(trips.of(Method::Response, Answer::WithData)),
    })
}

pub(crate) fn quantiles(quantiles: Option<Quantiles>) -> Value {
    let Some(of) = quantiles else {
        return Value::Null;
    };
    json!({
        "n": of.n,
        "min_ns": of.least.nanos(),
        "p50_ns": of.p50.nanos(),
        "p95_ns": of.p95.map(neph_model::Span::nanos),
        "p99_ns": of.p99.map(neph_model::Span::nanos),
        "max_ns": of.most.nanos(),
    })
}

/// A single round trip.
pub(crate) fn sample(name: &Name, sample: &Sample) -> Value {
    json!({
        "kind": "sample",
        "at_unix_ns": sample.at.unix_nanos(),
        "client": name.client().to_string(),
        "server": name.server().to_string(),
        "half": half(sample.half),
        "method": method(sample.method),
        "answer": ANSWERS[sample.answer as usize].1,
        "round_trip_ns": sample.round_trip.nanos(),
        "in_flight_bytes": sample.in_flight,
    })
}

/// Something else than the next segment.
pub(crate) fn event(name: &Name, at: Wall, side: Side, event: Event) -> Value {
    json!({
        "kind": "event",
        "at_unix_ns": at.unix_nanos(),
        "client": name.client().to_string(),
        "server": name.server().to_string(),
        "sent_by": match side { Side::Client => "client", Side::Server => "server" },
        "event": EVENTS[event as usize].1,
    })
}

const fn half(half: Half) -> &'static str {
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
