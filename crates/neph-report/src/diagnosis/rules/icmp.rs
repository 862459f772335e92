//! ICMP treated differently: echoes beside the messages meet another path, another priority or
//! another host than the messages do, so that ping does not tell what they take.

use crate::axis::{millis, percent};
use crate::diagnosis::{Agreement, Found, Need, Ordered, Rule, Run, Sight};
use crate::findings::{plural, real};

pub(super) const RULE: Rule = Rule {
    name: "icmp-differs",
    title: "ICMP treated differently",
    limits: "It compares the quickest echo with TCP's own quickest round trip (with the quickest small datagram for UDP), so it sees a difference that is always there. Whether a router prefers one of them, sends them another way or answers in the host's stead, it cannot tell.",
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

/// What an experiment shows.
#[derive(Clone, Copy)]
struct Both {
    echo: f64,
    message: f64,
}

impl Both {
    fn of(run: &Run<'_>) -> Option<Self> {
        let echoes = run.echoes();
        let is_small = run.scenario.request_size.bytes() <= SMALL;
        let datagram = run.networks().least().filter(|_| is_small);
        let message = run.tcp_least().or(datagram)?;
        (echoes.len() >= ECHOES).then_some(Self {
            echo: echoes.least()?,
            message,
        })
    }

    fn added(self) -> f64 {
        self.echo - self.message
    }

    fn ratio(self) -> f64 {
        let quicker = self.echo.min(self.message);
        self.added().abs() / LEAST_MS.max(LEAST_SHARE * quicker)
    }
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (place, runs) in sight.places() {
        let name = sight.name(&place);
        found.extend(slower_or_faster(&name, &runs));
    }
    // Another path and a limit on echoes may be there both; what a load crowds out is no limit.
    for (place, runs) in sight.places_at_rest() {
        found.extend(dropped(&sight.name(&place), &runs));
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
    let (echo, message) = (
        middle(|one| one.echo).median()?,
        middle(|one| one.message).median()?,
    );
    let how = if shift > 0.0 { "slower" } else { "faster" };
    let cause = format!(
        "{name}: ping does not measure what messages take: the quickest ICMP echoes take {}, TCP's and the messages' quickest round trips {}: echoes are {} {how}, in every experiment.",
        millis(echo),
        millis(message),
        millis(shift.abs()),
    );
    let remedy = "do not use ping to judge this path; measure with messages of the application's own protocol";
    let found = Found::new(cause, remedy.to_owned(), confidence.confidence())
        .with("quickest echo", echo, "ms")
        .with("quickest message", message, "ms")
        .with("difference", shift, "ms")
        .seen_in(seen.iter().map(|(run, _)| *run));
    Some(found)
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
