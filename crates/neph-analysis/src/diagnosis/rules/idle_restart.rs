//! Slow start after idle: a connection that rested forgets its congestion window (RFC 2861, RFC 5681
//! section 4.1), and a message larger than the initial window pays round trips for it again.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{INITIAL_WINDOW, Seq, Stage};

use crate::data::Exchange;
use crate::diagnosis::{Agreement, Found, Need, Ordered, Rule, Run, Sight};
use crate::numbers::millis;
use crate::words::{plural, real};

pub(crate) const RULE: Rule = Rule {
    name: "slow-start-after-idle",
    title: "slow start after idle",
    limits: "It needs TCP's statistics with each send stamp, so it sees the sender's side of requests only: a reply that grows slowly again is the peer's window. A window that grows for the first time is not meant, nor one that a loss closed; one that a congestion mark (ECN) halved it would take for forgotten.",
    covers: &["interval"],
    needs: &[Need::TcpStatistics],
    look,
};

/// Linux's least retransmission timeout in milliseconds, to which the round trip is added: idling
/// longer makes the window restart.
const LEAST_TIMEOUT_MS: f64 = 200.0;
/// The algorithms that forget their window while idle; BBR, which paces, does not.
const FORGETFUL: [&str; 2] = ["cubic", "reno"];
/// After short pauses a message waits for less than this share of what it waits after idleness: else
/// the receiver, pacing or the path holds it back, pause or not.
const BRIEFLY: f64 = 0.5;
/// Even where a window grows by one segment a round trip it grows by more than this share of at most
/// so many segments.
const GROWN: f64 = 1.02;
const SMALL: f64 = 45.0;
/// From most of a round trip on, the wait is one of slow start's rounds.
const LEAST_ROUNDS: f64 = 0.7;
/// Of the messages after idleness so many must show it.
const SHARE: f64 = 0.5;
/// So many messages after idleness at least.
const MESSAGES: usize = 3;

/// A message before which the window fell.
struct Restart {
    seq: Seq,
    /// The window with which the message before had left, in segments.
    before: f64,
    /// The most that this one can have begun with.
    at: f64,
    /// How long it waited for the window, in milliseconds.
    waited: f64,
}

/// What an experiment shows.
struct Restarts {
    found: Vec<Restart>,
    /// Messages that followed upon idleness.
    rested: usize,
    round_trip: f64,
}

impl Restarts {
    /// Beside what messages of the same size wait for the window after short pauses.
    fn of(run: &Run<'_>, brief: Option<f64>) -> Option<Self> {
        // A restarted window lets that much go at once.
        if run.scenario.request_size <= INITIAL_WINDOW || keeps_its_window(run) {
            return None;
        }
        let round_trip = run.path()?;
        let mut all = Self {
            found: Vec::new(),
            rested: 0,
            round_trip,
        };
        for pair in Sent::all(run).windows(2) {
            let [before, one] = pair else { continue };
            let idle = one.idle_after(before);
            let has_rested = idle.is_some_and(|idle| idle > LEAST_TIMEOUT_MS + round_trip);
            if has_rested && !one.lost(before) {
                all.rested += 1;
                all.found.extend(one.fallen(before, brief));
            }
        }
        (all.rested >= MESSAGES).then_some(all)
    }

    fn middle(&self, value: fn(&Restart) -> f64) -> f64 {
        let values: Ordered = self.found.iter().map(value).collect();
        values.median().unwrap_or(0.0)
    }

    fn rounds(&self) -> f64 {
        self.middle(|one| one.waited) / self.round_trip.max(f64::MIN_POSITIVE)
    }

    fn shows(&self) -> bool {
        real(self.found.len()) >= SHARE * real(self.rested) && self.rounds() >= LEAST_ROUNDS
    }
}

/// Whether the host that sent keeps the window while idle. One that tells nothing does not, as Linux
/// does not unless told otherwise.
fn keeps_its_window(run: &Run<'_>) -> bool {
    let Some(provenance) = &run.experiment.provenance else {
        return false;
    };
    let host = &provenance.host;
    let setting = host.sysctls.get("net.ipv4.tcp_slow_start_after_idle");
    let algorithm = host.congestion_control.as_deref();
    setting.is_some_and(|value| value.trim() == "0")
        || algorithm.is_some_and(|name| !FORGETFUL.contains(&name))
}

/// A message that was replied to.
struct Sent<'a> {
    exchange: &'a Exchange,
    segments: f64,
    /// With which its last byte left.
    window: f64,
    /// The window when its last byte was acknowledged: what the connection went idle with.
    kept: f64,
    /// How long it waited for its window, in milliseconds and in round trips as it met them.
    waited: f64,
    rounds: f64,
}

impl<'a> Sent<'a> {
    fn all(run: &'a Run<'_>) -> Vec<Self> {
        run.replies()
            .filter_map(|(one, times)| Self::of(run, one, times.at(Stage::SendWindow)))
            .collect()
    }

    fn of(run: &Run<'_>, exchange: &'a Exchange, waited: f64) -> Option<Self> {
        // Behind a slow link a round trip is as long as the message's own queue makes it.
        let network = run.flow.network(exchange)?.millis_f64();
        let segments = run.scenario.request_size.segments();
        #[expect(clippy::cast_precision_loss, reason = "segments of a message")]
        let segments = segments as f64;
        Some(Self {
            exchange,
            segments,
            window: exchange.cwnd?.into(),
            kept: exchange.cwnd.max(exchange.cwnd_after)?.into(),
            waited,
            rounds: (waited / network.max(f64::MIN_POSITIVE)).round(),
        })
    }

    /// For how many milliseconds the connection had been idle since the one before; less than 0 where
    /// that was still under way.
    fn idle_after(&self, before: &Self) -> Option<f64> {
        let (one, earlier) = (self.exchange, before.exchange);
        let replied = earlier.intended + earlier.response?;
        (one.connection == earlier.connection).then_some((one.begun? - replied).millis_f64())
    }

    /// Whether a segment was sent again since the one before.
    fn lost(&self, before: &Self) -> bool {
        self.exchange.retransmissions != before.exchange.retransmissions
    }

    /// The window's fall before it, if it shows one: without a loss nothing else takes segments away,
    /// neither a receiver without room nor pacing.
    fn fallen(&self, before: &Self, brief: Option<f64>) -> Option<Restart> {
        if self.rounds < 1.0 || brief.is_some_and(|brief| brief >= BRIEFLY * self.waited) {
            return None;
        }
        let is_stuck = brief.is_some()
            && self.window <= GROWN * before.window
            && self.window <= SMALL
            && before.rounds >= self.rounds
            && self.exchange.retransmissions == Some(0);
        (self.window < before.kept || is_stuck).then_some(Restart {
            seq: self.exchange.seq,
            before: before.kept,
            at: ((self.segments - 1.0) / self.rounds).min(self.window),
            waited: self.waited,
        })
    }
}

fn bytes(run: &Run<'_>) -> u64 {
    run.scenario.request_size.bytes()
}

/// What messages of a size waited for the window after pauses that make nobody forget it, at the
/// median in milliseconds; none where there were hardly any.
fn brief(runs: &[&Run<'_>], size: u64) -> Option<f64> {
    let mut waits = Vec::new();
    for run in runs {
        if bytes(run) != size {
            continue;
        }
        for pair in Sent::all(run).windows(2) {
            let [before, one] = pair else { continue };
            let idle = one.idle_after(before);
            let is_brief = idle.is_some_and(|idle| (0.0..LEAST_TIMEOUT_MS).contains(&idle));
            if is_brief && !one.lost(before) {
                waits.push(one.waited);
            }
        }
    }
    let is_enough = waits.len() >= MESSAGES;
    let waits: Ordered = waits.into_iter().collect();
    waits.median().filter(|_| is_enough)
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (place, runs) in sight.places() {
        let sizes: BTreeSet<u64> = runs.iter().map(|run| bytes(run)).collect();
        let sizes = sizes.into_iter().map(|size| (size, brief(&runs, size)));
        let sizes: BTreeMap<u64, Option<f64>> = sizes.collect();
        let seen: Vec<(&Run<'_>, Restarts)> = runs
            .into_iter()
            .filter_map(|run| Some((run, Restarts::of(run, sizes[&bytes(run)])?)))
            .collect();
        found.extend(told(&sight.name(&place), &seen));
    }
    found
}

fn told(name: &str, seen: &[(&Run<'_>, Restarts)]) -> Option<Found> {
    let shown: Vec<&(&Run<'_>, Restarts)> = seen.iter().filter(|(_, one)| one.shows()).collect();
    if 2 * shown.len() < seen.len() {
        return None;
    }
    let cost = |one: &Restarts| one.middle(|restart| restart.waited);
    let (run, worst) = shown
        .iter()
        .max_by(|(_, a), (_, b)| cost(a).total_cmp(&cost(b)))?;
    let confidence = Agreement {
        noun: "experiment",
        shown: shown.len(),
        of: seen.len(),
        ratio: worst.rounds() / LEAST_ROUNDS,
    };
    let scenario = run.scenario;
    let (before, at) = (worst.middle(|one| one.before), worst.middle(|one| one.at));
    let cause = format!(
        "{name}: TCP forgets its window while the connection idles between messages. Of {} every {}, {} of {} after idling found the window fallen, from {before:.0} segments to {at:.0} or fewer, and waited {} for it to grow again: {:.1} round trips of {}.",
        scenario.request_size.exact(),
        scenario.interval.exact(),
        worst.found.len(),
        plural(worst.rested, "message"),
        millis(cost(worst)),
        worst.rounds(),
        millis(worst.round_trip),
    );
    let remedy = "on the sender, sysctl net.ipv4.tcp_slow_start_after_idle=0; or send more often than every 200 ms plus a round trip, keep messages within ten segments (14 kB), or use BBR";
    let mut found = Found::new(cause, remedy.to_owned(), confidence.confidence())
        .costing(cost(worst))
        .with("window before idling", before, "segments")
        .with("window after idling, at most", at, "segments")
        .with("wait for the window", cost(worst), "ms")
        .with("wait for the window", worst.rounds(), "round trips")
        .with("round trip", worst.round_trip, "ms")
        .with(
            "longest idle that keeps the window",
            LEAST_TIMEOUT_MS + worst.round_trip,
            "ms",
        );
    for (run, restarts) in shown {
        let seqs: Vec<Seq> = restarts.found.iter().map(|one| one.seq).collect();
        found = found.seen_at(run, &seqs);
    }
    Some(found)
}
