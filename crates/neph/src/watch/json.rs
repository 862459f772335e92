//! A period for programs: a line for each flow that carried a packet, for each pair that asked or
//! answered, and one for all together.

use neph_capture::{Counted, Flow, Half, Pair, Question, Recent, Side};
use neph_model::Wall;
use neph_sys::links::Change;
use serde_json::{Map, Value, json};

use super::watching::{Lately, Stretch};
use crate::read::exchanges;
use crate::read::json::{sent, trips};
use crate::read::row::{via_client, via_server};

/// What a flow showed in a period.
pub(super) fn flow(stretch: Stretch, flow: &Flow, recent: &Recent) -> Value {
    let name = flow.name();
    json!({
        "kind": "flow_period",
        "from_unix_ns": stretch.from.unix_nanos(),
        "until_unix_ns": stretch.until.unix_nanos(),
        "client": name.client().to_string(),
        "server": name.server().to_string(),
        "client_known": name.is_client_known(),
        "via": via_client(flow).trim_start(),
        "via_server": via_server(flow),
        "sent": {
            "client": sent(recent.sent(Side::Client)),
            "server": sent(recent.sent(Side::Server)),
        },
        "round_trips": {
            "server": trips(recent.trips(Half::Server)),
            "client": trips(recent.trips(Half::Client)),
        },
    })
}

/// What those who ask and answer outside of TCP showed in a period.
pub(super) fn exchange(stretch: Stretch, pair: &Pair, recent: &Counted) -> Value {
    let mut object = exchanges::shown(pair, recent);
    object["kind"] = "exchange_period".into();
    object["from_unix_ns"] = stretch.from.unix_nanos().into();
    object["until_unix_ns"] = stretch.until.unix_nanos().into();
    object
}

/// Something became of an interface that is watched.
pub(super) fn changed(at: Wall, change: &Change) -> Value {
    let (kind, interface) = match change {
        Change::Fallen(name) => ("interface_down", name),
        Change::Risen(name) => ("interface_up", name),
    };
    json!({
        "kind": kind,
        "at_unix_ns": at.unix_nanos(),
        "interface": interface,
    })
}

/// What came in a period.
pub(super) fn period(lately: &Lately) -> Value {
    let Lately { seen, others, .. } = lately;
    let of_all = |question: Question| exchanges::told(&lately.exchanges[question as usize]);
    let exchanges: Map<String, Value> = Question::ALL
        .into_iter()
        .map(|question| (exchanges::key(question), of_all(question)))
        .collect();
    json!({
        "kind": "period",
        "from_unix_ns": lately.stretch.from.unix_nanos(),
        "until_unix_ns": lately.stretch.until.unix_nanos(),
        "listened_by": lately.way.name(),
        "packets": seen.packets,
        "packets_seen_twice": lately.counts.copies,
        "bytes": lately.counts.bytes,
        "packets_lost": seen.lost,
        "sent_again": lately.repairs.retransmissions,
        "spurious_retransmissions": lately.repairs.spurious,
        "segments_not_followed": lately.repairs.not_followed,
        "times_ring_full": seen.frozen,
        "packets_not_ip": seen.not_ip,
        "other_packets": {
            "udp": others.udp,
            "icmp": others.icmp,
            "fragments": others.fragments,
            "unread": others.unread,
            "cut_off": others.cut,
        },
        "round_trips": {
            "server": trips(&lately.trips[Half::Server as usize]),
            "client": trips(&lately.trips[Half::Client as usize]),
        },
        "exchanges": exchanges,
    })
}
