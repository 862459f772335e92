//! The same for programs. Times are integers of nanoseconds.

use neph_flows::{
    Advice, Class, Counsel, Curve, Evidence, FlowTally, Guide, Latency, Moved, PairView,
    PathChange, Share,
};
use neph_model::{Fleet, FleetEndpoint, Instant, Own, Span, WallCourse};
use neph_probe::Refusals;
use serde_json::{Map, Value, json};

use super::tell::Status;
use super::transfers;
use super::watch::Watched;
use crate::{awake, version};
use neph_flows::follow::Uncompared;

/// A path change.
pub(super) fn change(fleet: &Fleet, change: &PathChange, clock: &WallCourse<Own>) -> Value {
    let unix = |at: Instant<Own>| clock.unix_nanos(at);
    json!({
        "type": "change",
        "endpoint": fleet.endpoints[fleet.endpoint_of(change.lane)].name,
        "lane": change.lane.0,
        "source_port": change.source_port,
        "at_unix_ns": unix(change.at),
        "told_unix_ns": unix(change.told),
        "before_ns": change.before.nanos(),
        "after_ns": change.after.nanos(),
        "evidence": evidence(change.evidence),
    })
}

fn evidence(evidence: Evidence) -> Value {
    json!({
        "reordered": evidence.reordered,
        "ttl": evidence.ttl,
        "other_routers": evidence.trace,
        "direction": evidence.direction,
    })
}

/// How it goes.
pub(super) fn status(status: &Status) -> Value {
    json!({
        "type": "status",
        "running_ns": status.running.nanos(),
        "tally": tally(&status.tally),
        "changes": status.changes,
    })
}

/// Everything but the single flows and changes.
pub(super) fn summary(watched: &Watched) -> Value {
    let view = &watched.view;
    let unix = |at: Instant<Own>| watched.clock.unix_nanos(at);
    let pairs: Vec<Value> = (0..view.pairs.len())
        .map(|index| pair(watched, index))
        .collect();
    let refused: Vec<Value> = watched.refused.iter().map(refusals).collect();
    json!({
        "type": "summary",
        "neph": version::VERSION,
        "probe": view.fleet.probe,
        "flows_at_a_time": view.fleet.lanes,
        "interval_ns": view.fleet.interval.nanos(),
        "renewal_ns": view.fleet.renewal.map(Span::nanos),
        "from_unix_ns": unix(view.from),
        "until_unix_ns": unix(view.until),
        "detection": {
            "quorum": view.settings.detection.quorum,
            "window": view.settings.detection.window,
            "tolerance_ns": view.settings.detection.tolerance.nanos(),
        },
        "tally": tally(&view.tally),
        "sender": {
            "sent": watched.own.sent,
            "replies": watched.own.replies,
            "lost": watched.own.lost,
            "failed": watched.own.failed,
            "not_sent_first": watched.not_sent,
            "refused": watched.own.refused,
            "late_replies": watched.own.late,
            "late_p99_ns": watched.late_p99.map(Span::nanos),
            "dropped_here": watched.own.dropped_here,
            "unstamped": watched.own.unstamped,
            "disbelieved": watched.own.disbelieved,
            "cores_awake": awake::is_kept(),
        },
        "stay_p99_ns": watched.stay_p99.map(Span::nanos),
        "refused": refused,
        "warnings": watched.warnings,
        "silence": watched.silence,
        "interrupted": watched.interrupted,
        "pairs": pairs,
    })
}

/// What a reflector's caps refused and its kernel dropped.
fn refusals((endpoint, refused): &(FleetEndpoint, Refusals)) -> Value {
    json!({
        "endpoint": endpoint.name,
        "messages": refused.messages,
        "messages_per_second": refused.messages_per_second,
        "connections": refused.connections,
        "connections_per_peer": refused.connections_per_peer,
        "dropped": refused.dropped,
    })
}

/// Each flow.
pub(super) fn flows(watched: &Watched) -> impl Iterator<Item = Value> + '_ {
    let view = &watched.view;
    let unix = |at: Instant<Own>| watched.clock.unix_nanos(at);
    view.flows.iter().map(move |flow| {
        let segments: Vec<Value> = flow
            .segments
            .iter()
            .map(|segment| {
                json!({
                    "from_unix_ns": unix(segment.from),
                    "until_unix_ns": unix(segment.until),
                    "base_ns": segment.base.nanos(),
                    "class": segment.class,
                })
            })
            .collect();
        json!({
            "endpoint": view.fleet.endpoints[view.fleet.endpoint_of(flow.lane)].name,
            "lane": flow.lane.0,
            "source_port": flow.source_port,
            "tally": tally(&flow.tally),
            "segments": segments,
        })
    })
}

/// Each change.
pub(super) fn changes(watched: &Watched) -> impl Iterator<Item = Value> + '_ {
    let view = &watched.view;
    let told = |one| change(&view.fleet, one, &watched.clock);
    view.changes.iter().map(told)
}

fn tally(tally: &FlowTally) -> Value {
    json!({
        "messages": tally.messages(),
        "replies": tally.replies,
        "lost": tally.lost,
        "failed": tally.failed,
        "lost_forward": tally.lost_forward,
        "lost_reverse": tally.lost_reverse,
        "copies": tally.copies,
        "reordered": tally.reordered,
        "reordered_forward": tally.reordered_forward,
        "reordered_reverse": tally.reordered_reverse,
    })
}

fn drift(pair: &PairView) -> Value {
    json!({
        "lowest_ns": pair.drift.lowest.nanos(),
        "highest_ns": pair.drift.highest.nanos(),
    })
}

fn pair(watched: &Watched, index: usize) -> Value {
    let view = &watched.view;
    let pair: &PairView = &view.pairs[index];
    let classes = view.classes[index].iter().zip(&pair.moved);
    let class = |(class, moved)| class_value(class, moved, pair);
    let unix = |at: Instant<Own>| watched.clock.unix_nanos(at);
    let bins = view.fairness[index].iter().map(|bin| {
        json!({
            "from_unix_ns": unix(bin.from),
            "flows": bin.flows,
            "lost_flows": bin.lost,
            "changes": bin.changes,
            "latency": quantiles(bin.latency.map(latency)),
            "base": bin.base.map(|base| quantiles(base.map(|span| span.nanos().into()))),
        })
    });
    let congested = pair
        .congested
        .iter()
        .map(|(from, until)| json!({ "from_unix_ns": unix(*from), "until_unix_ns": unix(*until) }));
    json!({
        "endpoint": pair.endpoint,
        "address": view.fleet.endpoints[index].address.to_string(),
        "flows": pair.flows,
        "late_replies": pair.late,
        "classes": classes.map(class).collect::<Vec<_>>(),
        "changes": pair.changes,
        "changes_not_compared": watched.uncompared.get(index).map(uncompared),
        "too_short_for_changes": pair.too_short,
        "mostly_lost": pair.mostly_lost,
        "silent_since_unix_ns": pair.silence.and_then(|(since, _)| unix(since)),
        "changes_per_flow_hour": pair.changes_per_flow_hour(),
        "watched_ns": pair.watched.nanos(),
        "hidden_ns": pair.hidden.time.nanos(),
        "learning_ns": pair.hidden.learning.nanos(),
        "taken_for_queues_ns": pair.elsewhere.nanos(),
        "hidden_changes": pair.hidden.changes,
        "drift": drift(pair),
        "forgotten_until_unix_ns": pair.forgotten.and_then(unix),
        "inflation": pair.inflation.map(|inflation| json!({
            "ratio": inflation.ratio,
            "lowest_ns": inflation.lowest.nanos(),
            "highest_ns": inflation.highest.nanos(),
            "flows": inflation.flows,
        })),
        "dip": pair.bimodality,
        "leave_soon": pair.leave_soon.as_ref().map(share),
        "soon_ns": view.settings.soon.nanos(),
        "between_changes": pair.between.as_ref().map(curve),
        "persistence": pair.persistence.as_ref().map(curve),
        "persistence_forward": pair.persistence_forward.as_ref().map(curve),
        "persistence_reverse": pair.persistence_reverse.as_ref().map(curve),
        "congested": congested.collect::<Vec<_>>(),
        "queues_joined": pair.queues_joined,
        "bin_ns": view.bin().nanos(),
        "bins": bins.collect::<Vec<_>>(),
        "transfers": watched.transfers.get(index).map(transfers::value),
        "transfers_moved": watched.transfers.get(index).map(transfers::moved),
        "advice": view.advice.get(index).map(advice),
    })
}

fn class_value(class: &Class, moved: &Moved, pair: &PairView) -> Value {
    let rate = (!pair.too_short).then_some(moved.per_flow_hour);
    json!({
        "base_ns": class.base.nanos(),
        "lowest_ns": class.range.0.nanos(),
        "highest_ns": class.range.1.nanos(),
        "share_of_time": class.share,
        "flows": class.flows,
        "loss": class.loss().as_ref().map(share),
        "left": class.left,
        "joined": class.joined,
        "left_per_flow_hour": rate,
        "share_of_moves": moved.moved.as_ref().map(share),
    })
}

/// Nanoseconds; a word for what has no number, so that nobody reckons with it.
fn latency(latency: Latency) -> Value {
    latency
        .took()
        .map_or_else(|| "lost".into(), |span| span.nanos().into())
}

fn quantiles([min, p50, p95, p99, max]: [Value; 5]) -> Value {
    json!({ "min_ns": min, "p50_ns": p50, "p95_ns": p95, "p99_ns": p99, "max_ns": max })
}

fn share(share: &Share) -> Value {
    json!({ "share": share.share, "low": share.low, "high": share.high, "hits": share.hits, "n": share.n })
}

/// Of looks that see the same time again and again, worth `n` that are apart: the hits are no
/// whole number of these.
fn looks(share: &Share) -> Value {
    json!({ "share": share.share, "low": share.low, "high": share.high, "n": share.n })
}

fn curve(curve: &Curve) -> Value {
    let point = |point: &neph_flows::CurvePoint| {
        json!({
            "after_ns": point.at.nanos(),
            "surviving": point.surviving,
            "low": point.low,
            "high": point.high,
            "at_risk": point.at_risk,
        })
    };
    json!({
        "n": curve.n,
        "ended": curve.ended,
        "median_ns": curve.median().map(Span::nanos),
        "points": curve.points.iter().map(point).collect::<Vec<_>>(),
    })
}

fn advice(advice: &Advice) -> Value {
    let mut value = match &advice.counsel {
        Counsel::Refused { why } => json!({ "given": false, "why": why, "ports": [] }),
        Counsel::Given(guide) => given(guide),
    };
    value["caution"] = advice.caution.into();
    value
}

fn given(guide: &Guide) -> Value {
    let horizons = guide.horizons.iter().map(|horizon| {
        json!({
            "after_ns": horizon.after.nanos(),
            "on_low": looks(&horizon.on_low),
            "random_on_low": horizon.random_on_low,
            "p50_advised_ns": horizon.p50.map(|p50| p50.advised.nanos()),
            "p50_random_ns": horizon.p50.map(|p50| p50.random.nanos()),
            "p50_gain_ns": horizon.p50.map(|p50| p50.gain().nanos()),
            "p99_advised_ns": horizon.p99.map(|p99| p99.advised.nanos()),
            "p99_random_ns": horizon.p99.map(|p99| p99.random.nanos()),
            "p99_gain_ns": horizon.p99.map(|p99| p99.gain().nanos()),
        })
    });
    let ports = guide.ports.iter().map(|port| {
        json!({
            "source_port": port.port,
            "base_ns": port.base.nanos(),
            "held_ns": port.held.nanos(),
            "loss": port.loss.as_ref().map(share),
        })
    });
    let best = guide.best_of.iter().map(|best| {
        json!({
            "connections": best.connections,
            "chance": best.chance,
            "p50_ns": best.p50.nanos(),
            "p99_ns": best.p99.nanos(),
        })
    });
    json!({
        "given": true,
        "why": guide.no_ports,
        "low_ns": guide.low.nanos(),
        "random_ns": guide.random.nanos(),
        "low_share": share(&guide.low_share),
        "low_loss": guide.loss.map(|loss| share(&loss.low)),
        "others_loss": guide.loss.map(|loss| share(&loss.others)),
        "low_loses_more": guide.loss.map(|loss| loss.is_more),
        "ports": ports.collect::<Vec<_>>(),
        "holds_ns": guide.holds.map(Span::nanos),
        "best_of": best.collect::<Vec<_>>(),
        "tested": horizons.collect::<Vec<_>>(),
    })
}

/// Each reason for which a change was not compared, with its count.
fn uncompared(all: &Uncompared) -> Value {
    let reasons = all.every_reason();
    let object: Map<String, Value> = reasons
        .map(|(why, count)| (why.key().to_owned(), count.into()))
        .collect();
    object.into()
}
