//! A starved client: our own host was late to send or to read. This is us, not the network.

use neph_model::{Seq, Stage, Warning};

use crate::axis::millis;
use crate::diagnosis::{Confidence, Found, Level, Ordered, Rule, Run, Sight};
use crate::findings::{plural, real};

pub(super) const RULE: Rule = Rule {
    name: "starved-client",
    title: "starved client",
    limits: "It sees our host's own stages. Whoever took its CPU it cannot tell, beyond the hypervisor's steal and the share that was busy; and where kernel stamps are missing, the wait to be read is told with the network. Of a reply of several segments the kernel holds back what came behind a lost one, so there the wait to be read counts only beside late sending or a busy CPU.",
    covers: &[],
    look,
};

/// One message in twenty pays this much to our own host: at the 95th percentile.
const TAIL: f64 = 0.95;
/// A woken thread takes tens of microseconds on an idle machine; from a millisecond on somebody else
/// had the CPU.
const LEAST_MS: f64 = 1.0;
/// And from this share of the median response time on it spoils the measurement.
const LEAST_SHARE: f64 = 0.05;
/// What a segment carries, in bytes: of more, the kernel gives out what came behind a lost segment
/// only when that has come too.
const SEGMENT: u64 = 1448;
/// So many messages at least: fewer have no 95th percentile to speak of.
const MESSAGES: usize = 20;
/// A single experiment that was disturbed is flagged; from this share of them on it is a cause.
const EXPERIMENTS: f64 = 0.1;

/// What our own host did in an experiment.
struct Own {
    tail: f64,
    late: f64,
    unread: f64,
    ratio: f64,
    worst: Vec<Seq>,
    steal: f64,
    busy: f64,
    is_flagged: bool,
}

impl Own {
    fn of(run: &Run<'_>) -> Option<Self> {
        let mut own: Vec<(f64, Seq)> = Vec::new();
        let (mut late, mut unread, mut responses) = (Vec::new(), Vec::new(), Vec::new());
        for (one, times) in run.replies() {
            let waits = [times.at(Stage::Lateness), times.at(Stage::OwnKernel)];
            own.push((waits[0] + waits[1], one.seq));
            late.push(waits[0]);
            unread.push(waits[1]);
            responses.extend(one.response.map(neph_model::Span::millis_f64));
        }
        if own.len() < MESSAGES {
            return None;
        }
        let at = |values: Vec<f64>, p: f64| values.into_iter().collect::<Ordered>().at(p);
        let late = at(late, TAIL)?;
        own.sort_by(|a, b| b.0.total_cmp(&a.0));
        let load = run.experiment.provenance.as_ref().map(|one| one.load);
        let flagged = |warning: &Warning| {
            matches!(
                warning,
                Warning::SenderLate { .. }
                    | Warning::CpuStolen { .. }
                    | Warning::CpuSaturated { .. }
            )
        };
        let is_flagged = run.experiment.experiment.warnings.iter().any(flagged);
        let is_one_segment = run.scenario.response_size.bytes() <= SEGMENT;
        // A host that is slow to read is slow to send as well.
        let tail = if is_one_segment || is_flagged || late >= LEAST_MS {
            at(own.iter().map(|(wait, _)| *wait).collect(), TAIL)?
        } else {
            late
        };
        Some(Self {
            tail,
            late,
            unread: at(unread, TAIL)?,
            ratio: tail / LEAST_MS.max(LEAST_SHARE * at(responses, 0.5)?),
            worst: own.into_iter().map(|(_, seq)| seq).collect(),
            steal: load.map_or(0.0, |load| load.steal_percent),
            busy: load.map_or(0.0, |load| load.busy_percent),
            is_flagged,
        })
    }
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let groups = sight.grouped(|run| run.site().to_owned()).into_iter();
    groups
        .filter_map(|(site, runs)| told(&site, &runs))
        .collect()
}

fn told(site: &str, runs: &[&Run<'_>]) -> Option<Found> {
    let all: Vec<(&Run<'_>, Own)> = runs
        .iter()
        .filter_map(|run| Some((*run, Own::of(run)?)))
        .collect();
    let starved: Vec<&(&Run<'_>, Own)> = all.iter().filter(|(_, own)| own.ratio >= 1.0).collect();
    if starved.is_empty() || real(starved.len()) < EXPERIMENTS * real(all.len()) {
        return None;
    }
    let middle = |value: fn(&Own) -> f64| {
        let values = starved.iter().map(|(_, own)| value(own));
        values.collect::<Ordered>().median()
    };
    let (tail, late) = (middle(|own| own.tail)?, middle(|own| own.late)?);
    let (unread, ratio) = (middle(|own| own.unread)?, middle(|own| own.ratio)?);
    let (steal, busy) = (middle(|own| own.steal)?, middle(|own| own.busy)?);
    let flagged = starved.iter().filter(|(_, own)| own.is_flagged).count();
    let level = match (2 * flagged >= starved.len(), ratio >= 2.0) {
        (true, true) => Level::Sure,
        (true, false) | (false, true) => Level::Likely,
        (false, false) => Level::Possible,
    };
    let why = format!(
        "seen in {} of {}, of which {flagged} are flagged for it",
        starved.len(),
        plural(all.len(), "experiment"),
    );
    let who = if site.is_empty() { "our host" } else { site };
    let whose = if steal > 1.0 {
        format!("the hypervisor took {steal:.1} % of the CPU")
    } else if busy.is_finite() && busy > 0.0 {
        format!("its CPU was {busy:.0} % busy")
    } else {
        "its load was not recorded".to_owned()
    };
    let cause = format!(
        "{who} was slow itself, not the network: one message in twenty paid {} or more to it ({} late in sending, {} until it was read) in {} of {}; {whose}.",
        millis(tail),
        millis(late),
        millis(unread),
        starved.len(),
        plural(all.len(), "experiment"),
    );
    let remedy = "measure again from a host with a core to spare (or with CAP_SYS_NICE, which gives real-time priority), at a longer interval or with fewer flows; believe medians and the network stage rather than tails until then";
    let mut found = Found::new(cause, remedy.to_owned(), Confidence::new(level, why))
        .costing(tail)
        .with("95th percentile of our own stages", tail, "ms")
        .with("lateness", late, "ms")
        .with("until read", unread, "ms")
        .with("CPU stolen", steal, "%")
        .with("CPU busy", busy, "%");
    for (run, own) in starved {
        found = found.seen_at(run, &own.worst);
    }
    Some(found)
}
