//! A server that takes its time: between reading the request and writing the reply.

use std::collections::BTreeMap;

use neph_model::{Seq, Stage};

use crate::data::Exchange;
use crate::diagnosis::{Agreement, Doing, Found, Need, Ordered, Place, Rule, Run, Sight, Times};
use crate::numbers::{millis, percent};

pub(crate) const RULE: Rule = Rule {
    name: "slow-server",
    title: "slow server",
    limits: "It needs the peer's marks, that is a neph reflector at the other end; of another server its time and the network's are one. Requests of which a segment was sent again say nothing of it: the kernel holds back what came behind the hole. Why the server is slow it cannot tell, nor whether a backend behind it is.",
    covers: &[],
    needs: &[Need::Replies(MESSAGES), Need::PeerMarks],
    look,
};

/// The server is named from this share on of a message's time after its last byte left: below, the
/// rest matters more. What it waited for before is no answer to how fast the server is.
const SHARE: f64 = 0.3;
/// A program that answers at once takes tens of microseconds, a sleeping one on a busy machine
/// some hundred; this is work or waiting.
const LEAST_MS: f64 = 0.5;
/// Without the plan's load it is quicker where it takes less than this share.
const QUICKER: f64 = 0.8;
/// So many messages at least: fewer have no median.
const MESSAGES: usize = 6;

/// The peer's part of an experiment's messages, at the median in milliseconds.
struct Part {
    /// Its program worked.
    work: f64,
    /// Its program did not come to read.
    unread: f64,
    /// Both of one message together.
    time: f64,
    /// From the request's last byte leaving to the reply.
    after: f64,
    slowest: Vec<Seq>,
}

impl Part {
    fn of(run: &Run<'_>) -> Option<Self> {
        let replies = intact(run);
        if replies.len() < MESSAGES {
            return None;
        }
        let middle = |stage: Stage| {
            let times: Ordered = replies.iter().map(|(_, times)| times.at(stage)).collect();
            times.median()
        };
        let both = [Stage::PeerApp, Stage::PeerKernel];
        let time: Ordered = replies.iter().map(|(_, times)| times.sum(&both)).collect();
        let before = [
            Stage::Connect,
            Stage::Handshake,
            Stage::Compose,
            Stage::SendWindow,
        ];
        let after = replies
            .iter()
            .filter_map(|(one, times)| Some(one.service?.millis_f64() - times.sum(&before)));
        let mut by_work: Vec<(f64, Seq)> = replies
            .iter()
            .map(|(one, times)| (times.at(Stage::PeerApp), one.seq))
            .collect();
        by_work.sort_by(|a, b| b.0.total_cmp(&a.0));
        Some(Self {
            work: middle(Stage::PeerApp)?,
            unread: middle(Stage::PeerKernel)?,
            time: time.median()?,
            after: after.collect::<Ordered>().median()?,
            slowest: by_work.into_iter().map(|(_, seq)| seq).collect(),
        })
    }

    fn ratio(&self) -> f64 {
        self.time / LEAST_MS.max(SHARE * self.after)
    }
}

/// The replied messages; of several segments those of which none was sent again: the server's kernel
/// gives out what came behind a lost one only when that has come too.
fn intact<'r>(run: &'r Run<'_>) -> Vec<(&'r Exchange, Times)> {
    let is_whole = run.scenario.request_size.is_one_segment() || run.flow.flow.probe.is_datagram();
    let mut counted: Option<(u32, u32)> = None;
    let mut kept = Vec::new();
    for (one, times) in run.replies() {
        let before = counted.filter(|(connection, _)| *connection == one.connection);
        let before = before.map_or(0, |(_, count)| count);
        if is_whole || one.retransmissions == Some(before) {
            kept.push((one, times));
        }
        counted = Some((one.connection, one.retransmissions.unwrap_or(before)));
    }
    kept
}

/// A server's part of a scenario's messages: the medians of its experiments.
struct Taken<'r> {
    parts: Vec<(&'r Run<'r>, Part)>,
    work: f64,
    unread: f64,
    /// Both of one message together, at the median: a part of `after`.
    time: f64,
    after: f64,
    ratio: f64,
}

impl<'r> Taken<'r> {
    fn of(runs: &[&'r Run<'r>]) -> Option<Self> {
        let parts = runs.iter().filter_map(|run| Some((*run, Part::of(run)?)));
        let parts: Vec<(&Run<'_>, Part)> = parts.collect();
        let middle = |value: fn(&Part) -> f64| {
            let values = parts.iter().map(|(_, part)| value(part));
            values.collect::<Ordered>().median()
        };
        Some(Self {
            work: middle(|part| part.work)?,
            unread: middle(|part| part.unread)?,
            time: middle(|part| part.time)?,
            after: middle(|part| part.after)?,
            ratio: middle(Part::ratio)?,
            parts,
        })
    }
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    // The same server is told of once, where it costs most: by itself, and under the plan's load.
    let mut worst: BTreeMap<(Place, bool), Found> = BTreeMap::new();
    for runs in sight.grouped(|run| run.scenario.index).into_values() {
        let Some(taken) = Taken::of(&runs).filter(|taken| taken.ratio >= 1.0) else {
            continue;
        };
        let whose = whose(sight, runs[0], &taken);
        let found = told(&runs, &taken, whose);
        let place = (runs[0].place(), whose.is_load());
        let known = worst.get(&place);
        if known.is_none_or(|known| known.cost < found.cost) {
            worst.insert(place, found);
        }
    }
    worst.into_values().collect()
}

/// The load's, too, where the rule is silent without it and the server is quicker then by more than
/// chance: a server that is nothing to speak of need not be profiled.
fn whose<'a>(sight: &Sight<'a>, run: &Run<'a>, taken: &Taken<'_>) -> Doing<'a> {
    let mut quicker = None;
    let whose = sight.whose(run, taken.time, |calm| {
        let calm = Taken::of(calm)?;
        let is_quicker = calm.ratio < 1.0 && calm.time < QUICKER * taken.time;
        quicker = is_quicker.then_some(calm.time);
        Some(calm.time)
    });
    match (whose, run.scenario.stress(), quicker) {
        (Doing::Own, Some(load), Some(calm)) => Doing::Load(load, calm),
        _ => whose,
    }
}

fn told(runs: &[&Run<'_>], taken: &Taken<'_>, whose: Doing<'_>) -> Found {
    let parts = &taken.parts;
    let confidence = Agreement {
        noun: "experiment",
        shown: parts.iter().filter(|(_, part)| part.ratio() >= 1.0).count(),
        of: runs.len(),
        ratio: taken.ratio,
    };
    let cause = format!(
        "{}: the server takes {} of the {} from a request's last byte to its reply ({}; {}){}.",
        runs[0].place().endpoint,
        millis(taken.time),
        millis(taken.after),
        percent(taken.time / taken.after),
        runs[0].scenario.label(),
        reason(taken, whose),
    );
    let mut found = Found::new(cause, remedy(taken, whose), confidence.confidence())
        .costing(taken.time)
        .with("peer application", taken.work, "ms")
        .with("peer kernel", taken.unread, "ms")
        .with("from the last byte to the reply", taken.after, "ms");
    if let Doing::Load(_, calm) = whose {
        found = found.with("without the plan's load", calm, "ms");
    }
    for (run, part) in parts {
        found = found.seen_at(run, &part.slowest);
    }
    found
}

/// Why the server takes its time, as the sentence's end.
fn reason(taken: &Taken<'_>, whose: Doing<'_>) -> String {
    let doing = if taken.work >= taken.unread {
        "its program works or waits for others between reading a request and answering it"
    } else {
        "its program does not come to read what has arrived"
    };
    match whose {
        Doing::Own => format!(": {doing}"),
        Doing::Load(load, calm) => {
            let calm = millis(calm);
            format!(" under the plan's load {load}, and {calm} without it: the load does it")
        }
        Doing::Unknown(load) => format!(" under the plan's load {load}: {doing}"),
    }
}

fn remedy(taken: &Taken<'_>, whose: Doing<'_>) -> String {
    let own = if taken.work >= taken.unread {
        "profile the server: its own work, locks, and the backends that it waits for"
    } else {
        "give the server CPU: more cores or fewer neighbours, more accepting threads"
    };
    let of_load = "this is what sharing with the load costs, not the server's own work: fewer neighbours, or a CPU of its own, give the time back";
    whose.remedy(own, of_load)
}
