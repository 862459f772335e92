//! A connection for each message: handshakes counted in round trips.

use neph_model::Stage;

use crate::axis::{millis, percent};
use crate::diagnosis::{Agreement, Found, Ordered, Rule, Run, Sight};

pub(super) const RULE: Rule = Rule {
    name: "connection-setup",
    title: "connection set-up",
    limits: "It counts what each message pays. Whether the application could keep its connection it cannot tell, nor does it see handshakes of a connection that lasts.",
    covers: &[],
    look,
};

/// From a fifth of a message's time on, the server's own left aside, opening its connection is worth
/// a sentence.
const SHARE: f64 = 0.2;
/// And from this many milliseconds on: below, it is system calls and wake-ups, not round trips.
const LEAST_MS: f64 = 0.2;
/// So many messages at least: fewer have no median.
const MESSAGES: usize = 6;

/// What a message pays for its connection, at the median in milliseconds.
struct Cost {
    /// One round trip.
    connect: f64,
    handshake: f64,
    service: f64,
    /// Of that, the server's program.
    server: f64,
}

impl Cost {
    fn of(run: &Run<'_>) -> Option<Self> {
        let paid: Vec<_> = run
            .replies()
            .filter(|(_, times)| times.at(Stage::Connect) > 0.0)
            // An attempt that is the message has nothing beside it to be dear beside.
            .filter(|(_, times)| times.at(Stage::OwnKernel) > 0.0 || times.at(Stage::Compose) > 0.0)
            .collect();
        if paid.len() < MESSAGES {
            return None;
        }
        let middle = |stage: Stage| {
            let times: Ordered = paid.iter().map(|(_, times)| times.at(stage)).collect();
            times.median()
        };
        let service: Ordered = paid
            .iter()
            .filter_map(|(one, _)| one.service)
            .map(neph_model::Span::millis_f64)
            .collect();
        Some(Self {
            connect: middle(Stage::Connect)?,
            handshake: middle(Stage::Handshake)?,
            service: service.median()?,
            server: middle(Stage::PeerApp)?,
        })
    }

    fn paid(&self) -> f64 {
        self.connect + self.handshake
    }

    /// Beside the rule's threshold.
    fn ratio(&self) -> f64 {
        self.paid() / LEAST_MS.max(SHARE * (self.service - self.server))
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
        service: middle(|one| one.service)?,
        server: middle(|one| one.server)?,
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
    let rounds = cost.handshake / cost.connect.max(f64::MIN_POSITIVE);
    let above = if rounds >= 0.5 {
        format!(
            " and {rounds:.1} more for the handshakes above it ({})",
            millis(cost.handshake)
        )
    } else {
        String::new()
    };
    let cause = format!(
        "{}: every message opens a connection of its own: 1 round trip for TCP ({}){above}, together {} of the {} that it takes ({}).",
        runs[0].scenario.label(),
        millis(cost.connect),
        millis(cost.paid()),
        millis(cost.service),
        percent(cost.paid() / cost.service),
    );
    let remedy = if rounds >= 1.5 {
        "keep connections open (keep-alive, a pool, a WebSocket); with TLS, 1.3 saves one round trip of 1.2's two, session resumption or a near TLS terminator the rest"
    } else {
        "keep connections open: keep-alive, a pool, a WebSocket"
    };
    let found = Found::new(cause, remedy.to_owned(), confidence.confidence())
        .costing(cost.paid())
        .with("connect", cost.connect, "ms")
        .with("handshakes above TCP", cost.handshake, "ms")
        .with("handshakes above TCP", rounds, "round trips")
        .with("service time", cost.service, "ms")
        .seen_in(runs.iter().copied());
    Some(found)
}
