//! A starved client: our own host was late to send or to read, and the figures show it. This is us,
//! not the network.

mod held;
mod moved;

use std::collections::BTreeMap;

use neph_model::{Seq, Span, Stage, Warning};
use neph_stats::{Sorted, quantile};

use crate::diagnosis::{Confidence, Found, Level, Need, Ordered, Rule, Run, Sight};
use crate::numbers::{millis, percent};
use crate::table::QUANTILES;
use crate::words::{plural, real};
use moved::Moved;

pub(crate) const RULE: Rule = Rule {
    name: "starved-client",
    title: "starved client",
    limits: "It sees our host's own stages. Whoever took its CPU it cannot tell, beyond the hypervisor's steal and the share that was busy; and where kernel stamps are missing, the wait to be read is told with the network. Replies that TCP held back behind a lost one do not count, where what else the program did then tells; and of a reply of several segments the wait to be read counts only beside late sending or a busy CPU.",
    covers: &[],
    needs: &[Need::Replies(MESSAGES)],
    look,
};

/// A woken thread takes tens of microseconds on an idle machine; from a millisecond on somebody else
/// had the CPU.
const LEAST_MS: f64 = 1.0;
/// What one message in twenty pays, to tell a cause's cost.
const TAIL: f64 = 0.95;
/// Where our host delays fewer of the messages than this and no experiment is flagged for it, there
/// is nothing to note.
const NOTED: f64 = 0.01;
/// A single message says nothing of a machine.
const FEW: usize = 2;
/// So many messages at least: fewer have no quantile.
const MESSAGES: usize = 6;

/// What our own host did in an experiment, in milliseconds.
struct Own<'r> {
    run: &'r Run<'r>,
    /// Each reply's response time, and what of it was our host's.
    replies: Vec<(f64, f64)>,
    late: Vec<f64>,
    /// Without what TCP held back.
    unread: Vec<f64>,
    worst: Vec<Seq>,
    is_flagged: bool,
}

impl<'r> Own<'r> {
    fn of(run: &'r Run<'r>) -> Self {
        let warnings = run.experiment.experiment.warnings.iter();
        let is_flagged = warnings.clone().any(Warning::is_of_a_busy_host);
        let told: Vec<_> = run.all_replies().collect();
        let late: Vec<f64> = told
            .iter()
            .map(|(_, one)| one.at(Stage::Lateness))
            .collect();
        let is_late = at(&late, TAIL).is_some_and(|late| late >= LEAST_MS);
        // Of a reply of more segments the kernel gives out what came behind a lost one only when that
        // has come too. A host that is slow to read is slow to send as well.
        let is_one_segment = run.scenario.response_size.is_one_segment();
        let reads_slowly = is_one_segment || is_flagged || is_late;
        let held = held::held(run.flow);
        // What waited for the end of a stall is another rule's.
        let stalled = &run.stalls.waited_for_client;
        let mut own: Vec<(f64, Seq)> = Vec::new();
        let mut replies = Vec::new();
        let mut all_unread = Vec::new();
        for (one, times) in &told {
            let unread = if reads_slowly && !held.contains(&one.seq) {
                times.at(Stage::OwnKernel)
            } else {
                0.0
            };
            all_unread.push(unread);
            let paid = if stalled.contains(&one.seq) {
                0.0
            } else {
                times.at(Stage::Lateness) + unread
            };
            replies.extend(one.response.map(|whole| (Span::millis_f64(whole), paid)));
            own.push((paid, one.seq));
        }
        own.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self {
            run,
            replies,
            late,
            unread: all_unread,
            worst: own.into_iter().map(|(_, seq)| seq).collect(),
            is_flagged,
        }
    }

    fn load(&self, value: fn(&neph_model::Load) -> f64) -> f64 {
        let provenance = self.run.experiment.provenance.as_ref();
        provenance.map_or(0.0, |provenance| value(&provenance.load))
    }
}

fn at(values: &[f64], p: f64) -> Option<f64> {
    values.iter().copied().collect::<Ordered>().at(p)
}

/// A scenario's experiments from one site.
struct Scenario<'r> {
    runs: Vec<Own<'r>>,
    moved: Vec<Moved>,
    messages: usize,
    delayed: usize,
}

impl<'r> Scenario<'r> {
    fn of(runs: &[&'r Run<'r>]) -> Self {
        let runs: Vec<Own<'r>> = runs.iter().map(|run| Own::of(run)).collect();
        let replies = || runs.iter().flat_map(|run| &run.replies);
        let messages = replies().count();
        let delayed = replies().filter(|(_, paid)| *paid >= LEAST_MS).count();
        let lost = runs.iter().map(|one| one.run.flow.lost()).sum();
        let with: Vec<f64> = sorted(replies().map(|(whole, _)| *whole));
        let without: Vec<f64> = sorted(replies().map(|(whole, paid)| whole - paid));
        let moved = QUANTILES.into_iter().filter_map(|p| {
            let with = quantile(Sorted::check(&with).ok()?, lost, p).ok()?;
            let without = quantile(Sorted::check(&without).ok()?, lost, p).ok()?;
            Some(Moved {
                p,
                with: with.value().number()?,
                without: without.value().number()?,
                low: with.low().number()?,
                delayed: real(delayed) / real(messages.max(1)),
            })
        });
        Self {
            moved: moved.collect(),
            messages,
            delayed,
            runs,
        }
    }

    fn ratio(&self) -> f64 {
        let ratios = self.moved.iter().map(|one| one.ratio());
        ratios.fold(0.0, f64::max)
    }

    fn label(&self) -> String {
        let first = self.runs.first();
        first.map_or_else(String::new, |one| one.run.scenario.label())
    }

    /// The load that the plan makes in it.
    fn load(&self) -> Option<&str> {
        self.runs.first()?.run.scenario.stress()
    }

    /// How far our host moved the quantile that it moved most, in milliseconds.
    fn farthest(&self) -> f64 {
        let moved = self.moved.iter().map(|one| one.by());
        moved.fold(0.0, f64::max)
    }

    /// Whether our host does far less to the same scenario without the plan's load.
    fn is_by_load(&self, sight: &Sight<'_>) -> bool {
        let without = |calm: &[&Run<'_>]| {
            let calm = Scenario::of(calm);
            (!calm.moved.is_empty()).then(|| calm.farthest())
        };
        self.runs
            .first()
            .is_some_and(|one| sight.whose(one.run, self.farthest(), without).is_load())
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let mut sites: BTreeMap<String, Vec<Scenario<'_>>> = BTreeMap::new();
    let alike = sight.grouped(|run| (run.site().to_owned(), run.scenario.index));
    for ((site, _), runs) in alike {
        sites.entry(site).or_default().push(Scenario::of(&runs));
    }
    let sites = sites.into_iter();
    sites
        .flat_map(|(site, all)| {
            let who = if site.is_empty() { "our host" } else { &site };
            let starved = all.iter().filter(|one| one.ratio() >= 1.0);
            let (by_load, own): (Vec<_>, Vec<_>) = starved.partition(|one| one.is_by_load(sight));
            let causes: Vec<Found> = [(own, false), (by_load, true)]
                .into_iter()
                .filter_map(|(starved, is_by_load)| told(who, &starved, all.len(), is_by_load))
                .collect();
            if causes.is_empty() {
                return noted(who, &all).into_iter().collect();
            }
            causes
        })
        .collect()
}

/// What the messages of several scenarios paid to our host: one in twenty so many milliseconds or more.
struct Paid {
    tail: f64,
    late: f64,
    unread: f64,
    /// Of the CPU, in percent, at the experiments' median.
    steal: f64,
    busy: f64,
}

impl Paid {
    fn of(scenarios: &[&Scenario<'_>]) -> Option<Self> {
        let runs = || scenarios.iter().flat_map(|one| &one.runs);
        let tail = |values: fn(&Own<'_>) -> Vec<f64>| {
            runs().flat_map(values).collect::<Ordered>().at(TAIL)
        };
        let load = |value: fn(&neph_model::Load) -> f64| {
            runs()
                .map(|run| run.load(value))
                .collect::<Ordered>()
                .median()
        };
        Some(Self {
            tail: tail(|run| run.replies.iter().map(|(_, paid)| *paid).collect())?,
            late: tail(|run| run.late.clone())?,
            unread: tail(|run| run.unread.clone())?,
            steal: load(|load| load.steal_percent).unwrap_or(0.0),
            busy: load(|load| load.busy_percent).unwrap_or(0.0),
        })
    }

    fn whose(&self) -> String {
        if self.steal > 1.0 {
            format!("the hypervisor took {:.1} % of the CPU", self.steal)
        } else if self.busy > 0.0 {
            format!("its CPU was {:.0} % busy", self.busy)
        } else {
            "its load was not recorded".to_owned()
        }
    }
}

/// The scenarios of which our host moved a figure, of so many: by itself, or by the plan's load.
fn told(who: &str, starved: &[&Scenario<'_>], all: usize, is_by_load: bool) -> Option<Found> {
    let worst = starved
        .iter()
        .max_by(|a, b| a.ratio().total_cmp(&b.ratio()))?;
    let paid = Paid::of(starved)?;
    let moved: Vec<&Moved> = worst
        .moved
        .iter()
        .filter(|one| one.ratio() >= 1.0)
        .collect();
    let farthest = moved.last()?;
    let load = worst.load().filter(|_| is_by_load);
    let in_words: Vec<String> = moved.iter().map(|one| one.in_words()).collect();
    let cause = format!(
        "{who} was slow itself, not the network: its own delays moved {} ({}); one message in twenty paid {} or more to it ({} late in sending, {} until it was read), in {} of {}; {}{}.",
        in_words.join(", "),
        worst.label(),
        millis(paid.tail),
        millis(paid.late),
        millis(paid.unread),
        starved.len(),
        plural(all, "scenario"),
        paid.whose(),
        load.map_or_else(String::new, |load| format!(
            " under the plan's load {load}, which does it: without it our host delays far less"
        )),
    );
    let remedy = if is_by_load {
        "give the prober a CPU that the load does not take (or CAP_SYS_NICE, which gives real-time priority), or a smaller load; believe medians and the network stage rather than tails until then"
    } else {
        "measure again from a host with a core to spare (or with CAP_SYS_NICE, which gives real-time priority), at a longer interval or with fewer flows; believe medians and the network stage rather than tails until then"
    };
    let mut found = Found::new(cause, remedy.to_owned(), confidence(starved, worst.ratio()))
        .costing(paid.tail)
        .with("95th percentile of our own stages", paid.tail, "ms")
        .with("lateness", paid.late, "ms")
        .with("until read", paid.unread, "ms")
        .with("quantile moved", farthest.p * 100.0, "")
        .with("without our host", farthest.without, "ms")
        .with("as measured", farthest.with, "ms")
        .with("CPU stolen", paid.steal, "%")
        .with("CPU busy", paid.busy, "%");
    for run in starved.iter().flat_map(|one| &one.runs) {
        found = found.seen_at(run.run, &run.worst);
    }
    Some(found)
}

fn confidence(starved: &[&Scenario<'_>], ratio: f64) -> Confidence {
    let runs = || starved.iter().flat_map(|one| &one.runs);
    let (flagged, all) = (runs().filter(|run| run.is_flagged).count(), runs().count());
    let level = match (2 * flagged >= all, ratio >= 2.0) {
        (true, true) => Level::Sure,
        (true, false) | (false, true) => Level::Likely,
        (false, false) => Level::Possible,
    };
    let why = format!(
        "the quantile moved by {ratio:.1} times the least that counts; {flagged} of {} are flagged for it",
        plural(all, "experiment"),
    );
    Confidence::new(level, why)
}

/// Delays of our host that moved no quantile so far, or so surely, that they are a cause.
fn noted(who: &str, all: &[Scenario<'_>]) -> Option<Found> {
    let messages: usize = all.iter().map(|one| one.messages).sum();
    let delayed: usize = all.iter().map(|one| one.delayed).sum();
    let mut runs = all.iter().flat_map(|one| &one.runs);
    let is_flagged = runs.any(|run| run.is_flagged);
    let is_noted = delayed >= FEW && real(delayed) >= NOTED * real(messages);
    if delayed == 0 || !(is_flagged || is_noted) {
        return None;
    }
    let moved = all
        .iter()
        .flat_map(|one| one.moved.iter().map(move |moved| (one, moved)));
    let (scenario, most) = moved.max_by(|(_, a), (_, b)| a.size().total_cmp(&b.size()))?;
    let share = real(delayed) / real(messages.max(1));
    let text = format!(
        "{who} itself delayed {delayed} of {} ({}) by a millisecond or more; at the most this moved {} ({}). {}",
        plural(messages, "message"),
        percent(share),
        most.in_words(),
        scenario.label(),
        most.why_no_cause(),
    );
    let confidence = Confidence::new(Level::Sure, "");
    let mut found = Found::new(text, String::new(), confidence)
        .into_note()
        .with("messages delayed", real(delayed), "messages")
        .with("without our host", most.without, "ms")
        .with("as measured", most.with, "ms");
    for run in &scenario.runs {
        found = found.seen_at(run.run, &run.worst);
    }
    Some(found)
}
