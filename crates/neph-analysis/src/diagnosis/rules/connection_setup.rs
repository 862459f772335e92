//! A connection for each message: handshakes counted in round trips.

use neph_model::{Known, Stage, TlsVersion};

use crate::diagnosis::{Agreement, Found, Need, Ordered, Rule, Run, Sight};
use crate::numbers::{millis, percent};
use crate::words::real;

pub(crate) const RULE: Rule = Rule {
    name: "connection-setup",
    title: "connection set-up",
    limits: "It counts what those messages pay that open a connection, where most do. Whether the application could keep its connection it cannot tell, nor does it see handshakes of a connection that lasts.",
    covers: &[],
    needs: &[Need::Replies(MESSAGES)],
    look,
};

/// From a fifth of a message's time on, the server's own left aside, opening its connection is worth
/// a sentence.
const SHARE: f64 = 0.2;
/// And from this many milliseconds on: below, it is system calls and wake-ups, not round trips.
const LEAST_MS: f64 = 0.2;
/// Messages that open a connection are most, or it is a pool that fills or a server that closes a
/// connection now and then.
const MOST: f64 = 0.5;
/// Handshakes are counted in round trips from so many milliseconds a round trip on: below, TLS's
/// arithmetic takes longer than the way.
const COUNTABLE_MS: f64 = 3.0;
/// So many messages at least: fewer have no median.
const MESSAGES: usize = 6;

/// What a message pays for its connection, at the median in milliseconds.
struct Cost {
    /// One round trip.
    connect: f64,
    handshake: f64,
    /// Both of one message together: a part of `service`.
    paid: f64,
    service: f64,
    /// Of that, the server's program.
    server: f64,
    /// The share of the replied messages that paid it.
    share: f64,
}

impl Cost {
    fn of(run: &Run<'_>) -> Option<Self> {
        let paid: Vec<_> = run
            .replies()
            .filter(|(_, times)| times.at(Stage::Connect) > 0.0)
            // An attempt that is the message has nothing beside it to be dear beside.
            .filter(|(_, times)| times.at(Stage::OwnKernel) > 0.0 || times.at(Stage::Compose) > 0.0)
            .collect();
        let share = real(paid.len()) / real(run.replies().count().max(1));
        if paid.len() < MESSAGES || share <= MOST {
            return None;
        }
        let middle = |stage: Stage| {
            let times: Ordered = paid.iter().map(|(_, times)| times.at(stage)).collect();
            times.median()
        };
        let opening = [Stage::Connect, Stage::Handshake];
        let both: Ordered = paid.iter().map(|(_, times)| times.sum(&opening)).collect();
        let service: Ordered = paid
            .iter()
            .filter_map(|(one, _)| one.service)
            .map(neph_model::Span::millis_f64)
            .collect();
        Some(Self {
            connect: middle(Stage::Connect)?,
            handshake: middle(Stage::Handshake)?,
            paid: both.median()?,
            service: service.median()?,
            server: middle(Stage::PeerApp)?,
            share,
        })
    }

    /// Nothing but a retry or the first message tells them apart from all.
    fn is_everybodys(&self) -> bool {
        self.share > 0.99
    }

    fn whose(&self) -> String {
        if self.is_everybodys() {
            "every message opens a connection of its own".to_owned()
        } else {
            format!("{} of the messages open a connection", percent(self.share))
        }
    }

    /// The handshakes above TCP in round trips, where those are what they take.
    fn rounds(&self) -> Option<f64> {
        (self.connect >= COUNTABLE_MS).then(|| self.handshake / self.connect)
    }

    fn above(&self) -> String {
        let takes = millis(self.handshake);
        match self.rounds() {
            Some(rounds) if rounds >= 0.5 => {
                format!(" and {rounds:.1} more for the handshakes above it ({takes})")
            }
            None if self.handshake >= LEAST_MS => {
                format!(" and {takes} for the handshakes above it, their arithmetic included")
            }
            _ => String::new(),
        }
    }

    /// Beside the rule's threshold.
    fn ratio(&self) -> f64 {
        self.paid / LEAST_MS.max(SHARE * (self.service - self.server))
    }
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let groups = sight.grouped(|run| run.experiment.scenario);
    groups
        .into_values()
        .filter_map(|runs| told(&runs))
        .collect()
}

fn told(runs: &[&Run<'_>]) -> Option<Found> {
    let costs: Vec<Cost> = runs.iter().filter_map(|run| Cost::of(run)).collect();
    let middle = |value: fn(&Cost) -> f64| costs.iter().map(value).collect::<Ordered>().median();
    let cost = Cost {
        connect: middle(|one| one.connect)?,
        handshake: middle(|one| one.handshake)?,
        paid: middle(|one| one.paid)?,
        service: middle(|one| one.service)?,
        server: middle(|one| one.server)?,
        share: middle(|one| one.share)?,
    };
    if cost.ratio() < 1.0 {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        shown: costs.iter().filter(|one| one.ratio() >= 1.0).count(),
        of: runs.len(),
        ratio: cost.ratio(),
    };
    let cause = format!(
        "{}: {}: 1 round trip for TCP ({}){}, together {} of the {} that {} ({}).",
        runs[0].scenario.label(),
        cost.whose(),
        millis(cost.connect),
        cost.above(),
        millis(cost.paid),
        millis(cost.service),
        if cost.is_everybodys() {
            "it takes"
        } else {
            "such a one takes"
        },
        percent(cost.paid / cost.service),
    );
    let mut found = Found::new(cause, remedy(runs[0], &cost), confidence.confidence())
        .costing(cost.paid * cost.share)
        .with("connect", cost.connect, "ms")
        .with("handshakes above TCP", cost.handshake, "ms")
        .with("service time", cost.service, "ms")
        .with("messages that open a connection", cost.share, "")
        .seen_in(runs.iter().copied());
    if let Some(rounds) = cost.rounds() {
        found = found.with("handshakes above TCP", rounds, "round trips");
    }
    Some(found)
}

/// Of TLS only where there is any, and of its version only where the round trips may be 1.2's.
fn remedy(run: &Run<'_>, cost: &Cost) -> String {
    let scenario = run.scenario;
    let keep = "keep connections open (keep-alive, a pool, a WebSocket)";
    let version = scenario.parameters.tls();
    if !scenario.target.is_secure() && version.is_none() {
        return keep.to_owned();
    }
    // The protocol's own opening is a round trip, as a WebSocket's upgrade.
    let upgrade = f64::from(u8::from(scenario.probe().facts().has_opening));
    let may_be_old = cost.rounds().is_none_or(|rounds| rounds - upgrade >= 1.5);
    let newer = if version != Some(&Known::Known(TlsVersion::V13)) && may_be_old {
        "TLS 1.3 saves one round trip of 1.2's two, "
    } else {
        ""
    };
    format!("{keep}; {newer}session resumption or a near TLS terminator saves most of the rest")
}
