//! What takes much longer than an ICMP echo beside it, and whom that may be blamed on: the network
//! only where its stage stands apart from everybody else's.

use neph_model::{Span, Stage, StageSet};

use super::compare::median;
use super::{Finding, FindingKind, plural, real};
use crate::axis::millis;
use crate::data::FlowData;
use crate::{CampaignData, PlotSettings};

/// A round trip that takes this many times an echo's carries more than distance.
const FAR_BEYOND: f64 = 2.0;
/// Milliseconds below which that is not worth a sentence.
const WORTH_TELLING: f64 = 1.0;

/// A scenario whose messages are under way much longer than its echoes.
struct Beyond {
    scenario: usize,
    /// The stages that the time is told of.
    set: StageSet,
    /// Their median in milliseconds.
    time: f64,
    /// The echo's median in milliseconds.
    echo: f64,
}

impl Beyond {
    fn is_network(&self) -> bool {
        is_network(self.set)
    }
}

/// Whether nobody's program is among the stages: the network alone, or with the peer's send path,
/// whose end only the next reply tells.
fn is_network(set: StageSet) -> bool {
    let alone = StageSet::only(Stage::Network);
    set == alone || set == alone.with(Stage::PeerSend)
}

/// One sentence about the network where it is told alone, one where it is told with others.
pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let mut all: Vec<Beyond> = data
        .measured(settings)
        .into_iter()
        .filter_map(|scenario| beyond(data, settings, scenario))
        .collect();
    all.sort_by(|a, b| (b.time / b.echo).total_cmp(&(a.time / a.echo)));
    let (network, merged): (Vec<Beyond>, Vec<Beyond>) =
        all.into_iter().partition(Beyond::is_network);
    let transmission = first(data, &network, "transmission", transmission);
    transmission
        .into_iter()
        .chain(first(data, &merged, "beyond_ping", undecided))
        .collect()
}

/// The first one's sentence, with the number of the others.
fn first(
    data: &CampaignData,
    members: &[Beyond],
    topic: &'static str,
    sentence: fn(&CampaignData, &Beyond) -> String,
) -> Option<Finding> {
    let worst = members.first()?;
    let mut text = sentence(data, worst);
    if members.len() > 1 {
        let more = plural(members.len() - 1, "more scenario");
        text.push_str(&format!(" The same holds, less so, for {more}."));
    }
    let finding = Finding::new(FindingKind::StandsOut, topic, text)
        .with("network_ms", worst.time)
        .with("icmp_ms", worst.echo)
        .with("scenarios", real(members.len()));
    Some(finding)
}

fn transmission(data: &CampaignData, one: &Beyond) -> String {
    let scenario = &data.scenarios[one.scenario];
    format!(
        "In {} the median network round trip is {}, while an ICMP echo takes {}: {} go into transmitting and queueing {}, not into distance.",
        scenario.label(),
        millis(one.time),
        millis(one.echo),
        millis(one.time - one.echo),
        scenario.request_size,
    )
}

fn undecided(data: &CampaignData, one: &Beyond) -> String {
    format!(
        "In {} the median of {} is {}, while an ICMP echo takes {}: at least {} of it is not the path as ping sees it. Whether {} took that cannot be told here, because the marks between them are missing.",
        data.scenarios[one.scenario].label(),
        one.set,
        millis(one.time),
        millis(one.echo),
        millis(one.time - one.echo),
        suspects(one.set),
    )
}

/// Who may have taken the time of an entry: `the network or the server`.
fn suspects(set: StageSet) -> String {
    let server = [Stage::PeerKernel, Stage::PeerApp, Stage::PeerSend];
    let is_of = |others: &[Stage]| others.iter().any(|stage| set.contains(*stage));
    let own: Vec<Stage> = Stage::ALL
        .into_iter()
        .filter(|stage| *stage != Stage::Network && !server.contains(stage))
        .collect();
    let mut names = vec!["the network"];
    if is_of(&server) {
        names.push("the server");
    }
    if is_of(&own) {
        names.push("our own host");
    }
    names.join(" or ")
}

fn beyond(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Option<Beyond> {
    let (set, time) = under_way(data.main_flows(scenario, settings))?;
    let companions = data
        .experiments_of(scenario, settings)
        .filter_map(|experiment| experiment.companion());
    let mut echoes: Vec<f64> = companions
        .flat_map(|flow| flow.exchanges.iter().filter_map(|one| flow.round_trip(one)))
        .map(Span::millis_f64)
        .collect();
    let echo = median(&mut echoes)?;
    let is_far = time > echo * FAR_BEYOND && time - echo > WORTH_TELLING;
    is_far.then_some(Beyond {
        scenario,
        set,
        time,
        echo,
    })
}

/// The median of the entries that hold the network, and the stages that they are told of: the
/// network's own entries where most messages have one, else everything that some message's entry
/// mixes with it.
fn under_way<'a>(flows: impl Iterator<Item = &'a FlowData>) -> Option<(StageSet, f64)> {
    let entries: Vec<(StageSet, f64)> = flows
        .flat_map(|flow| flow.exchanges.iter().map(move |one| (flow, one)))
        .filter_map(|(flow, one)| {
            flow.ledger(one)
                .find(|(set, _)| set.contains(Stage::Network))
        })
        .map(|(set, time)| (set, time.millis_f64()))
        .collect();
    let alone = entries.iter().filter(|(set, _)| is_network(*set)).count();
    let mostly_alone = 2 * alone > entries.len();
    let kept = entries
        .iter()
        .filter(|(set, _)| is_network(*set) == mostly_alone);
    let set = kept
        .clone()
        .flat_map(|(set, _)| set.iter())
        .fold(StageSet::EMPTY, StageSet::with);
    let mut times: Vec<f64> = kept.map(|(_, time)| *time).collect();
    Some((set, median(&mut times)?))
}
