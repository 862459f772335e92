//! A new connection for each message: the cost of handshakes, in round trips.

use neph_model::{Known, Stage, TlsVersion};

use crate::diagnosis::{Agreement, Need, Rule, RuleInput, RuleResult, Run, SortedValues};
use crate::numbers::{millis, percent};
use crate::text::to_f64;

pub(crate) const RULE: Rule = Rule {
    name: "connection-setup",
    title: "connection set-up",
    limits: "The rule counts connection set-up where most messages open a connection. It does not know whether the application could keep connections open.",
    covers: &[],
    needs: &[Need::Replies(MIN_MESSAGES)],
    evaluate,
};

/// Smallest share of connection setup in a message's time (without server processing) that is reported.
const MIN_SETUP_SHARE: f64 = 0.2;
/// Smallest setup time that is reported, in milliseconds: below it, system calls and wake-ups dominate.
const MIN_MS: f64 = 0.2;
/// Minimum share of messages that open a connection. With fewer, a pool fills or a server closes connections
/// now and then.
const MIN_OPENING_SHARE: f64 = 0.5;
/// Shortest round trip, in milliseconds, for which handshakes are counted in round trips. Below it, TLS
/// computation takes longer than the path.
const COUNTABLE_MS: f64 = 3.0;
/// Minimum number of messages for a median.
const MIN_MESSAGES: usize = 6;

/// The setup time of a message, median in milliseconds.
struct Cost {
    /// One round trip.
    connect: f64,
    handshake: f64,
    /// Both, of the same message: a part of `service`.
    setup: f64,
    service: f64,
    /// The part of the server application.
    server: f64,
    /// The share of replied messages that include setup.
    share: f64,
}

impl Cost {
    fn of(run: &Run<'_>) -> Option<Self> {
        let opening_messages: Vec<_> = run
            .replies()
            .filter(|(_, times)| times.at(Stage::Connect) > 0.0)
            // An attempt that is the whole message has nothing to compare its setup time with.
            .filter(|(_, times)| times.at(Stage::OwnKernel) > 0.0 || times.at(Stage::Compose) > 0.0)
            .collect();
        let share = to_f64(opening_messages.len()) / to_f64(run.replies().count().max(1));
        if opening_messages.len() < MIN_MESSAGES || share <= MIN_OPENING_SHARE {
            return None;
        }
        let median_of = |stage: Stage| {
            let times: SortedValues = opening_messages
                .iter()
                .map(|(_, times)| times.at(stage))
                .collect();
            times.median()
        };
        let opening = [Stage::Connect, Stage::Handshake];
        let setup_times: SortedValues = opening_messages
            .iter()
            .map(|(_, times)| times.sum(&opening))
            .collect();
        let service: SortedValues = opening_messages
            .iter()
            .filter_map(|(exchange, _)| exchange.service)
            .map(neph_model::Span::millis_f64)
            .collect();
        Some(Self {
            connect: median_of(Stage::Connect)?,
            handshake: median_of(Stage::Handshake)?,
            setup: setup_times.median()?,
            service: service.median()?,
            server: median_of(Stage::PeerApp)?,
            share,
        })
    }

    /// Whether all messages pay it, except for retries and the first message.
    fn is_in_every_message(&self) -> bool {
        self.share > 0.99
    }

    fn openings_text(&self) -> String {
        if self.is_in_every_message() {
            "every message opens a connection".to_owned()
        } else {
            format!("{} of the messages open a connection", percent(self.share))
        }
    }

    /// The handshakes above TCP in round trips, if they take whole round trips.
    fn handshake_round_trips(&self) -> Option<f64> {
        (self.connect >= COUNTABLE_MS).then(|| self.handshake / self.connect)
    }

    fn handshake_text(&self) -> String {
        let takes = millis(self.handshake);
        match self.handshake_round_trips() {
            Some(rounds) if rounds >= 0.5 => {
                format!(" and {rounds:.1} for TLS and other handshakes ({takes})")
            }
            None if self.handshake >= MIN_MS => {
                format!(" and {takes} for TLS and other handshakes, including computation")
            }
            _ => String::new(),
        }
    }

    /// The ratio to the rule's threshold.
    fn ratio(&self) -> f64 {
        self.setup / MIN_MS.max(MIN_SETUP_SHARE * (self.service - self.server))
    }
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let groups = input.grouped(|run| run.experiment.scenario);
    groups
        .into_values()
        .filter_map(|runs| diagnose_group(&runs))
        .collect()
}

fn diagnose_group(runs: &[&Run<'_>]) -> Option<RuleResult> {
    let costs: Vec<Cost> = runs.iter().filter_map(|run| Cost::of(run)).collect();
    let median_of = |value: fn(&Cost) -> f64| {
        let values = costs.iter().map(value);
        values.collect::<SortedValues>().median()
    };
    let cost = Cost {
        connect: median_of(|cost| cost.connect)?,
        handshake: median_of(|cost| cost.handshake)?,
        setup: median_of(|cost| cost.setup)?,
        service: median_of(|cost| cost.service)?,
        server: median_of(|cost| cost.server)?,
        share: median_of(|cost| cost.share)?,
    };
    if cost.ratio() < 1.0 {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        observed: costs.iter().filter(|cost| cost.ratio() >= 1.0).count(),
        total: runs.len(),
        ratio: cost.ratio(),
    };
    let cause = format!(
        "{}: {}. It takes 1 round trip for TCP ({}){}, together {} of the {} that {} ({}).",
        runs[0].scenario.label(),
        cost.openings_text(),
        millis(cost.connect),
        cost.handshake_text(),
        millis(cost.setup),
        millis(cost.service),
        if cost.is_in_every_message() {
            "it takes"
        } else {
            "each of them takes"
        },
        percent(cost.setup / cost.service),
    );
    let mut result = RuleResult::new(cause, remedy(runs[0], &cost), confidence.confidence())
        .with_added_latency(cost.setup * cost.share)
        .with("connect", cost.connect, "ms")
        .with("TLS and other handshakes", cost.handshake, "ms")
        .with("service time", cost.service, "ms")
        .with(
            "share of messages that open a connection",
            100.0 * cost.share,
            "%",
        )
        .observed_in(runs.iter().copied());
    if let Some(rounds) = cost.handshake_round_trips() {
        result = result.with("TLS and other handshakes", rounds, "round trips");
    }
    Some(result)
}

/// Mentions TLS only if it is used, and its version only if the round trips suggest TLS 1.2.
fn remedy(run: &Run<'_>, cost: &Cost) -> String {
    let scenario = run.scenario;
    let keep = "keep connections open (keep-alive, a pool, a WebSocket)";
    let version = scenario.parameters.tls();
    if !scenario.target.is_secure() && version.is_none() {
        return keep.to_owned();
    }
    // The protocol's own handshake is a round trip, for example the WebSocket upgrade.
    let upgrade = f64::from(u8::from(scenario.probe().properties().has_opening));
    let may_be_old = cost
        .handshake_round_trips()
        .is_none_or(|rounds| rounds - upgrade >= 1.5);
    let newer = if version != Some(&Known::Known(TlsVersion::V13)) && may_be_old {
        "TLS 1.3 needs one round trip, TLS 1.2 two; "
    } else {
        ""
    };
    format!("{keep}; {newer}use session resumption or a TLS terminator near the client")
}
