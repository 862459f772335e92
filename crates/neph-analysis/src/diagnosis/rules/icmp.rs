//! ICMP treated differently: echoes beside the messages meet another path, another priority or
//! another host than the messages do, so that ping does not tell what they take.

use crate::diagnosis::{Agreement, Found, Need, Ordered, Rule, Run, Sight, measure_without};
use crate::numbers::{millis, percent};
use crate::words::{plural, real};

pub(crate) const RULE: Rule = Rule {
    name: "icmp-differs",
    title: "ICMP treated differently",
    limits: "It compares the quickest echo with TCP's own quickest round trip (with the quickest small datagram for UDP), each of as many as there are of the other, so it sees a difference that is always there. Whether a router prefers one of them, sends them another way or answers in the host's stead, it cannot tell.",
    covers: &[],
    needs: &[Need::Echoes],
    look,
};

/// Echo and TCP are answered by kernels: they differ by less than this many milliseconds ...
const LEAST_MS: f64 = 0.4;
/// ... and by less than this share of the quicker one.
const LEAST_SHARE: f64 = 0.08;
/// In every experiment alike: the differences of a place lie within this share of their middle.
const ALIKE: f64 = 0.5;
/// The least of fewer echoes is not yet the path's.
const ECHOES: usize = 5;
/// A datagram of more bytes takes longer than an echo for that reason alone.
const SMALL: u64 = 256;
/// Echoes that are dropped on purpose are lost at least so much more often than messages.
const LOSS: f64 = 0.05;

/// What chance does more often than once in so many experiments is no difference.
const RARELY: f64 = 0.01;

/// What an experiment shows.
#[derive(Clone, Copy)]
struct Both {
    /// The quickest of as many echoes as there are messages, where there are fewer of these.
    echo: f64,
    /// The quickest round trip of as many messages as there are echoes.
    message: f64,
    /// How much slower echoes are than chance explains; negative where they are faster.
    beyond: f64,
    is_tcp: bool,
}

impl Both {
    fn of(run: &Run<'_>) -> Option<Self> {
        let (echoes, messages) = (run.echoes_at_rest(), run.networks());
        let is_small = run.scenario.request_size.bytes() <= SMALL;
        let datagram = messages.least().filter(|_| is_small);
        let tcp = run.tcp_least();
        let (echo, message) = (echoes.least()?, tcp.or(datagram)?);
        let (few, many) = (echoes.len(), messages.len().max(run.flow.exchanges.len()));
        // A handshake comes before the load that the plan makes.
        let loaded = run.scenario.stress().and_then(|_| messages.least());
        let quickest = loaded.map_or(message, |least| message.max(least));
        let slower = quickest + later(&messages, few, RARELY);
        let faster = echo + later(&echoes, many, RARELY);
        let beyond = if echo > slower {
            echo - slower
        } else {
            (faster - message).min(0.0)
        };
        (few >= ECHOES).then(|| Self {
            echo: echo + later(&echoes, many, 0.5),
            message: message + later(&messages, few, 0.5),
            beyond,
            is_tcp: tcp.is_some(),
        })
    }

    fn added(self) -> f64 {
        self.echo - self.message
    }

    fn ratio(self) -> f64 {
        let quicker = self.echo.min(self.message);
        self.beyond.abs() / LEAST_MS.max(LEAST_SHARE * quicker)
    }
}

/// By how much the quickest of a `few` is later than the quickest of all, with these odds of being
/// later still: in a queue that varies, 20 meet no moment that is as empty as the emptiest that 400 meet.
fn later(all: &Ordered, few: usize, odds: f64) -> f64 {
    let share = 1.0 - odds.powf(1.0 / real(few.max(1)));
    let above = |least: f64| Some(all.at(share)? - least);
    all.least().and_then(above).unwrap_or(0.0)
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    // Another path and a limit on echoes may be there both; what a load delays or crowds out is neither.
    for (place, runs) in sight.places_at_rest() {
        let name = sight.name(&place);
        found.extend(slower_or_faster(&name, &runs));
        found.extend(dropped(&name, &runs));
    }
    found
}

fn slower_or_faster(name: &str, runs: &[&Run<'_>]) -> Option<Found> {
    let seen: Vec<(&Run<'_>, Both)> = runs
        .iter()
        .filter_map(|run| Some((*run, Both::of(run)?)))
        .collect();
    let middle = |value: fn(Both) -> f64| {
        let values = seen.iter().map(|(_, both)| value(*both));
        values.collect::<Ordered>()
    };
    let added = middle(Both::added);
    let (ratio, shift) = (middle(Both::ratio), added.median()?);
    let spread = added.greatest()? - added.least()?;
    if ratio.least()? < 1.0 || spread > ALIKE * shift.abs() {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        shown: seen.len(),
        of: seen.len(),
        ratio: ratio.median()?,
    };
    let mut confidence = confidence.confidence();
    let mut remedy = "do not use ping to judge this path; measure with messages of the application's own protocol".to_owned();
    if seen.iter().all(|(run, _)| run.scenario.stress().is_some()) {
        confidence.level = confidence.level.less();
        remedy = measure_without(&remedy);
    }
    let (echo, message) = (
        middle(|one| one.echo).median()?,
        middle(|one| one.message).median()?,
    );
    let how = if shift > 0.0 { "slower" } else { "faster" };
    let whose = if seen.iter().all(|(_, both)| both.is_tcp) {
        "TCP"
    } else if seen.iter().any(|(_, both)| both.is_tcp) {
        "TCP and the messages"
    } else {
        "the messages"
    };
    let cause = format!(
        "{name}: ping does not measure what messages take: the quickest ICMP echoes take {}, the quickest of as many round trips of {whose} {}: echoes are {} {how}, in {}.",
        millis(echo),
        millis(message),
        millis(shift.abs()),
        everywhere(seen.len()),
    );
    let found = Found::new(cause, remedy, confidence)
        .with("quickest echo", echo, "ms")
        .with("quickest message", message, "ms")
        .with("difference", shift, "ms")
        .seen_in(seen.iter().map(|(run, _)| *run));
    Some(found)
}

/// In all of so many experiments.
fn everywhere(experiments: usize) -> String {
    match experiments {
        1 => "the only experiment that tells".to_owned(),
        2 => "both experiments".to_owned(),
        all => format!("all {all} experiments"),
    }
}

/// Echoes that get lost where messages do not.
fn dropped(name: &str, runs: &[&Run<'_>]) -> Option<Found> {
    let (mut lost, mut sent, mut hurt, mut messages) = (0, 0, 0, 0);
    let mut apart: Vec<bool> = Vec::new();
    for run in runs {
        let Some(flow) = run.experiment.companion() else {
            continue;
        };
        let echoes = (flow.lost(), flow.exchanges.len() - flow.failed());
        let again = run.flow.retransmissions().len();
        let others = (
            run.flow.lost() + again,
            run.flow.exchanges.len() - run.flow.failed(),
        );
        let share = |(part, all): (usize, usize)| real(part) / real(all.max(1));
        apart.push(share(echoes) - share(others) >= LOSS);
        (lost, sent) = (lost + echoes.0, sent + echoes.1);
        (hurt, messages) = (hurt + others.0, messages + others.1);
    }
    let echoes = neph_stats::proportion(lost, sent).ok()?;
    let others = neph_stats::proportion(hurt, messages).ok()?;
    let beyond = echoes.interval().low - others.interval().high;
    if beyond < LOSS {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        shown: apart.iter().filter(|apart| **apart).count(),
        of: apart.len(),
        ratio: beyond / LOSS,
    };
    let cause = format!(
        "{name}: ICMP echoes get lost where messages do not: {} of {} ({}), while {} of {} were lost or sent again: a host or router limits echoes.",
        lost,
        plural(sent, "echo").replace("echos", "echoes"),
        percent(echoes.share()),
        hurt,
        plural(messages, "message"),
    );
    let remedy =
        "do not judge this path's loss by ping; ask for the limit to be lifted, or ping less often";
    let found = Found::new(cause, remedy.to_owned(), confidence.confidence())
        .with("echoes lost", echoes.share(), "")
        .with("messages hurt", others.share(), "")
        .with("echoes sent", real(sent), "echoes")
        .seen_in(runs.iter().copied());
    Some(found)
}
