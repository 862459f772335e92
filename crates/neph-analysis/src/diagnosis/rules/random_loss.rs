//! Loss that no queue explains: corruption, a faulty cable or radio, or reordering that TCP takes
//! for loss. It hits at any time, with the queue empty.

use neph_model::{Outcome, Seq, Span, Transport};

use crate::data::{Exchange, Resent};
use crate::diagnosis::{
    Agreement, Crossing, Doing, Found, Need, Ordered, Rule, Run, Sight, is_by_load,
};
use crate::numbers::{millis, percent};
use crate::words::{plural, real};

pub(crate) const RULE: Rule = Rule {
    name: "random-loss",
    title: "loss without a queue",
    limits: "It looks at the delay of the messages just before a loss. Corruption and a full queue of a few packets look alike to it, and so do, over TCP, loss and reordering beyond three segments. On a link that a message itself fills for long it does not speak.",
    covers: &[],
    needs: &[Need::Network, Need::TcpStatistics],
    look,
};

/// So many losses at least: fewer have no pattern.
const LOSSES: usize = 5;
/// Of the segments at least this share: below, it is the usual noise of long paths.
const LEAST_SHARE: f64 = 0.0005;
/// Before a loss for lack of room the queue is full: the messages just before it took longer than the
/// path by this many milliseconds ...
const QUEUE_MS: f64 = 1.0;
/// ... and by this share of it.
const QUEUE_SHARE: f64 = 0.25;
/// Of the losses at most this share came upon a queue, or it is congestion ...
const CONGESTED: f64 = 0.3;
/// ... unless there is a queue for so long that chance explains it: losses that do not care for the
/// queue meet it as often as messages do, within so many standard deviations ...
const BY_CHANCE: f64 = 2.0;
/// ... and never more than this share: then the queue may well be to blame.
const MAJORITY: f64 = 0.5;
/// Active queue management (CoDel) drops from a queue that is short: where most losses came upon a
/// delay of [`QUEUE_MS`] at least, and more of them than messages do by so many standard deviations,
/// they do care for the queue.
const BY_INTENT: f64 = 2.5;
/// How many messages just before a loss tell of the queue: the quickest of them, because each may
/// have been hit itself.
const BEFORE: usize = 3;
/// Seconds after which a message tells nothing any more of the queue.
const FRESH: f64 = 2.0;
/// The level of an empty queue: what the quickest tenth of the messages met.
const EMPTY: f64 = 0.1;
/// An experiment in which even the quicker of the messages met a queue is left out. Half of them and
/// more may have been hit.
const MOSTLY: f64 = 0.25;
/// What our side sends to open a connection ...
const SYN: u64 = 1;
/// ... and TLS on it, of version 1.2 as of 1.3: its hello, and that it is done.
const TLS: u64 = 2;
/// Replies that overtake others: from this share of the datagrams on.
const REORDERED: f64 = 0.005;

/// A place's losses.
#[derive(Default)]
struct Losses {
    /// Segments sent again, or datagrams lost.
    lost: usize,
    segments: usize,
    /// Losses of which the messages before are known; those in a row, an outage's, are one.
    judged: usize,
    queued: usize,
    /// Messages before which there was a queue, and of which that is known.
    behind: usize,
    known: usize,
    /// The same of a queue however short.
    upon_any: usize,
    behind_any: usize,
    hurt: Vec<f64>,
    unhurt: Vec<f64>,
}

impl Losses {
    /// Adds an experiment's; the messages that were hit.
    fn add(&mut self, run: &Run<'_>) -> Option<Vec<Seq>> {
        let base = run.networks().at(EMPTY)?;
        let path = run.path()?;
        let queue = QUEUE_MS.max(QUEUE_SHARE * path);
        if run.networks().at(MOSTLY)? - path > queue {
            return None;
        }
        let mut hit = Vec::new();
        let is_datagram = run.flow.flow.probe.facts().transport == Transport::Udp;
        let mut was_hit = false;
        let all = run.flow.resent();
        // What a stalled peer has no room for is no loss of the path.
        let stalled = &run.stalls.waited;
        // Whether the last one was retransmitted for nothing, no later message shows.
        let latest = run.flow.exchanges.last().map(|one| one.seq);
        let is_judged = |(one, resent): &(&Exchange, Resent)| {
            !stalled.contains(&one.seq)
                && (resent.is_first || is_datagram || Some(one.seq) != latest)
        };
        for (one, resent) in all.filter(is_judged) {
            let before = just_before(&run.crossings, one);
            let is_behind = before.map(|before| usize::from(before - base > queue));
            let is_behind_any = before.is_some_and(|before| before - base > QUEUE_MS);
            self.known += usize::from(is_behind.is_some());
            self.behind_any += usize::from(is_behind_any);
            self.behind += is_behind.unwrap_or(0);
            self.segments += sent(run, one, resent);
            let lost = usize::from(is_datagram && one.outcome == Outcome::Lost);
            let lost = lost + usize::try_from(resent.segments).unwrap_or(usize::MAX);
            let response = one.response.map(Span::millis_f64);
            let is_first = !std::mem::replace(&mut was_hit, lost > 0);
            if lost == 0 {
                self.unhurt.extend(response);
                continue;
            }
            self.lost += lost;
            self.hurt.extend(response);
            hit.push(one.seq);
            if !is_first {
                continue;
            }
            self.judged += usize::from(is_behind.is_some());
            self.queued += is_behind.unwrap_or(0);
            self.upon_any += usize::from(is_behind_any);
        }
        Some(hit)
    }

    fn share(&self) -> f64 {
        real(self.lost) / real(self.segments.max(1))
    }

    /// Whether these are another matter: more than twice as many, and not by chance.
    fn are_more_than(&self, calm: &Self) -> bool {
        let share = |one: &Self| neph_stats::proportion(one.lost.min(one.segments), one.segments);
        let (Ok(with), Ok(without)) = (share(self), share(calm)) else {
            return false;
        };
        is_by_load(self.share(), calm.share()) && without.interval().high < with.interval().low
    }

    fn is_random(&self) -> bool {
        let by_chance = self.by_chance(self.behind, BY_CHANCE).min(MAJORITY);
        self.judged - self.queued >= LOSSES
            && self.share() >= LEAST_SHARE
            && real(self.queued) <= CONGESTED.max(by_chance) * real(self.judged)
            && !self.is_managed()
    }

    /// Whether somebody drops on purpose, from a queue that is kept short.
    fn is_managed(&self) -> bool {
        let by_chance = self.by_chance(self.behind_any, BY_INTENT);
        real(self.upon_any) > by_chance.max(MAJORITY) * real(self.judged)
    }

    /// The share of the losses that may meet what so many of the messages met, if they do not care.
    fn by_chance(&self, met: usize, deviations: f64) -> f64 {
        let share = real(met) / real(self.known.max(1));
        share + deviations * (share * (1.0 - share) / real(self.judged.max(1))).sqrt()
    }

    fn cost(&self) -> f64 {
        let middle = |values: &[f64]| values.iter().copied().collect::<Ordered>().median();
        let (hurt, unhurt) = (middle(&self.hurt), middle(&self.unhurt));
        hurt.zip(unhurt)
            .map_or(0.0, |(hurt, unhurt)| (hurt - unhurt).max(0.0))
    }
}

/// The segments of a message that are sent again if they get lost; with those that open its
/// connection, whose losses the connection's counter tells too. Of what could not be sent nobody
/// knows any.
fn sent(run: &Run<'_>, one: &Exchange, resent: Resent) -> usize {
    let scenario = run.scenario;
    let tls = if scenario.target.is_secure() { TLS } else { 0 };
    let kind = run.flow.flow.probe;
    let is_attempt = kind.facts().needs_reflector && !run.flow.flow.reflector;
    let opening = if !kind.on_connection() || is_attempt {
        0
    } else {
        SYN + tls + u64::from(kind.facts().has_opening)
    };
    let segments = match one.outcome {
        Outcome::Failed if one.retransmissions.is_none() => 0,
        _ if resent.is_first => scenario.request_size.segments() + opening,
        _ => scenario.request_size.segments(),
    };
    usize::try_from(segments).unwrap_or(usize::MAX)
}

/// What the quickest of the messages just before took in the network, in milliseconds.
fn just_before(crossings: &[Crossing], hit: &Exchange) -> Option<f64> {
    let at = Span::from_nanos(hit.intended.nanos()).secs_f64();
    let end = crossings.partition_point(|one| one.seq < hit.seq);
    let before = crossings.get(end.checked_sub(BEFORE)?..end)?;
    let fresh = before.iter().filter(|one| at - one.at <= FRESH);
    fresh.map(|one| one.network).min_by(f64::total_cmp)
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let places = sight.places().into_iter();
    places
        .flat_map(|(place, runs)| {
            let name = sight.name(&place);
            causes(&name, &runs)
                .into_iter()
                .chain(overtaking(&name, &runs))
        })
        .collect()
}

/// A place's cause; where the plan's load loses more than there is lost without it, one of each.
fn causes(name: &str, runs: &[&Run<'_>]) -> Vec<Found> {
    let is_loaded = |run: &&Run<'_>| run.scenario.stress().is_some();
    let (loaded, calm): (Vec<&Run<'_>>, Vec<&Run<'_>>) = runs.iter().copied().partition(is_loaded);
    let (with, without) = (Lossy::of(&loaded), Lossy::of(&calm));
    let found = match with.load() {
        Some(load) if calm.is_empty() => vec![told(name, &with, Doing::Unknown(load))],
        Some(load) if with.all.are_more_than(&without.all) => vec![
            told(name, &without, Doing::Own),
            told(name, &with, Doing::Load(load, without.all.share())),
        ],
        _ => vec![told(name, &Lossy::of(runs), Doing::Own)],
    };
    found.into_iter().flatten().collect()
}

/// Experiments with their losses, and the messages that were hit.
struct Lossy<'r> {
    all: Losses,
    seen: Vec<(&'r Run<'r>, Vec<Seq>)>,
}

impl<'r> Lossy<'r> {
    fn of(runs: &[&'r Run<'r>]) -> Self {
        let mut all = Losses::default();
        let seen = runs
            .iter()
            .filter_map(|run| Some((*run, all.add(run)?)))
            .collect();
        Self { all, seen }
    }

    /// The plan's load under which the most were hit.
    fn load(&self) -> Option<&'r str> {
        let worst = self.seen.iter().max_by_key(|(_, hit)| hit.len());
        worst.and_then(|(run, _)| run.scenario.stress())
    }
}

fn told(name: &str, Lossy { all, seen }: &Lossy<'_>, whose: Doing<'_>) -> Option<Found> {
    if !all.is_random() {
        return None;
    }
    let confidence = Agreement {
        noun: "loss",
        shown: all.judged - all.queued,
        of: all.judged,
        ratio: real(all.judged) / real(LOSSES),
    };
    let mut confidence = confidence.confidence();
    confidence.why = format!(
        "{} of {} losses came upon an empty queue",
        all.judged - all.queued,
        all.judged
    );
    let datagrams = seen
        .iter()
        .any(|(run, _)| run.flow.flow.probe.facts().transport == Transport::Udp);
    let (what, again) = if datagrams {
        ("datagram", "lost")
    } else {
        ("segment", "sent again")
    };
    let paid = if all.cost() > 0.0 {
        format!(
            "; a message that is hit takes {} longer",
            millis(all.cost())
        )
    } else {
        String::new()
    };
    let cause = format!(
        "{name}: {}: {} of {} {again} ({}), {} of {} times with the queue empty just before{paid}.",
        mechanism(whose),
        all.lost,
        plural(all.segments, what),
        percent(all.share()),
        all.judged - all.queued,
        all.judged,
    );
    let mut found = Found::new(cause, remedy(whose), confidence)
        .costing(all.cost())
        .with("lost or sent again", all.share(), "")
        .with("losses judged", real(all.judged), "losses")
        .with("losses upon a queue", real(all.queued), "losses")
        .with("cost of a loss", all.cost(), "ms");
    for (run, hit) in seen.iter().filter(|(_, hit)| !hit.is_empty()) {
        found = found.seen_at(run, hit);
    }
    Some(found)
}

fn mechanism(whose: Doing<'_>) -> String {
    match whose {
        Doing::Own => "the path loses or damages packets, and no queue is to blame".to_owned(),
        Doing::Load(load, calm) => format!(
            "packets get lost where the plan makes a load, most of them under {load}, with {} lost without any: the load does it, though no queue is seen",
            percent(calm)
        ),
        Doing::Unknown(load) => format!(
            "the path loses or damages packets, and no queue is seen, while the plan makes a load, as {load}"
        ),
    }
}

fn remedy(whose: Doing<'_>) -> String {
    let own = "look at the error counters of the interfaces on the way (cable, optics, radio, a device that reorders); a nearer endpoint makes each loss cheaper, as does forward error correction or sending twice";
    let of_load = "this is what the load costs, not a fault of the path: a queue of few packets, or the socket's buffer of a host that has no CPU left, drops them; less load, or more room there";
    whose.remedy(own, of_load)
}

/// Datagrams whose replies overtake each other.
fn overtaking(name: &str, runs: &[&Run<'_>]) -> Option<Found> {
    let datagrams = |run: &&&Run<'_>| run.flow.flow.probe.facts().transport == Transport::Udp;
    let counts: Vec<(usize, usize)> = runs
        .iter()
        .filter(datagrams)
        .map(|run| overtaken(run))
        .collect();
    let reordered: usize = counts.iter().map(|(late, _)| late).sum();
    let replies: usize = counts.iter().map(|(_, all)| all).sum();
    let share = real(reordered) / real(replies.max(1));
    if reordered < LOSSES || share < REORDERED {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        shown: counts
            .iter()
            .filter(|(late, all)| real(*late) >= REORDERED * real(*all))
            .count(),
        of: counts.len(),
        ratio: share / REORDERED,
    };
    let cause = format!(
        "{name}: the path reorders packets: {reordered} of {} came after a later one's ({}). TCP on this path takes what comes three segments late for lost and sends it again.",
        plural(replies, "reply").replace("replys", "replies"),
        percent(share),
    );
    let remedy = "let flows keep one path (hash over the 5-tuple, not per packet), and look for devices that work on a flow's packets in parallel";
    let found = Found::new(cause, remedy.to_owned(), confidence.confidence())
        .with("replies overtaken", share, "")
        .seen_in(runs.iter().copied());
    Some(found)
}

/// An experiment's replies that came after a later one's, and all of them.
fn overtaken(run: &Run<'_>) -> (usize, usize) {
    let all = run.flow.exchanges.iter();
    let late = all.clone().filter(|one| one.reordered).count();
    (late, all.filter(|one| one.response.is_some()).count())
}
