//! Unequal equal-cost paths: flows of the same pair whose RTT depends on their ports. Routers select the path
//! by a hash over the 5-tuple (RFC 2992).

mod change;
mod imported;
mod text;

use crate::diagnosis::Peer;
use crate::diagnosis::is_imported;
use crate::diagnosis::peer;
use std::collections::{BTreeMap, BTreeSet};

use neph_model::{ByteSize, ProbeKind};
use neph_stats::{Random, Weighted};

use crate::diagnosis::{Confidence, Level, Need, Rule, RuleInput, RuleResult, Run, SortedValues};
use crate::numbers::millis;
use crate::text::{plural, to_f64};
use change::{AlignedPath, RouteChange, align_paths, find_route_changes};
use text::{flows_text, remedy};

pub(crate) const RULE: Rule = Rule {
    name: "ecmp-imbalance",
    title: "equal-cost paths of unequal length",
    limits: "The rule compares flows and needs at least four. It does not show where the paths diverge; neph trace with the flow's port may. A port is fast only until routes or the hash seed change.",
    covers: &[],
    needs: &[Need::Flows(MIN_FLOWS)],
    evaluate,
};

/// Smallest gap between two paths, in milliseconds. Flows of one path may differ by less: their minimum still
/// contains jitter.
const MIN_GAP_MS: f64 = 0.3;
/// Smallest gap as a share of the shorter path; a smaller one is not worth a remedy.
const MIN_GAP_SHARE: f64 = 0.08;
/// The gap between paths is at least this many times the spread of the flows of one path.
const MIN_GAP_TO_WIDTH: f64 = 3.0;
/// With fewer flows, two classes can arise at random or from one route change.
const MIN_FLOWS: usize = 4;
/// One switch between classes over time is a route change; two are a change and its reversal. Port hashing
/// mixes the classes.
const MIN_SWITCHES: usize = 3;
/// A class of fewer flows is a disturbed experiment.
const MIN_CLASS_FLOWS: usize = 2;
/// Without known ports, the classes must alternate at random: the probability of so few switches is at most
/// 5 %.
const MIN_SHUFFLE_SHARE: f64 = 0.05;
const SHUFFLES: u32 = 2000;
/// This many switches are no temporary route change.
const MANY_SWITCHES: usize = 6;
/// Maximum number of route changes that are tried to explain why flows form no classes.
const MAX_CHANGES: usize = 8;
/// With fewer messages the minimum is not yet that of the path.
const MIN_MESSAGES: usize = 5;
/// Share of a flow's messages that lie nearer to its own path than to the next longer one.
const OWN_PATH_SHARE: f64 = 0.5;
/// Share of the flows that may not. Messages behind a lost or delayed segment wait with it, for a second in
/// some flows.
const MAX_DISTURBED_SHARE: f64 = 0.1;

/// Maximum number of endpoints of one address that are named.
const MAX_NAMED_ENDPOINTS: usize = 3;

/// What flows share that differ in ports only. The plan's load is part of it, because it slows all flows.
type GroupKey = (String, Peer, ProbeKind, [u64; 2], Option<String>);

/// One flow: the connection of an experiment.
struct FlowPath<'a> {
    run: &'a Run<'a>,
    /// `None` if an imported file does not have it: each such flow has a port of its own.
    port: Option<u16>,
    /// The least round trip in milliseconds.
    min_rtt_ms: f64,
    /// The round trips of the messages.
    round_trips: SortedValues,
}

impl<'a> FlowPath<'a> {
    fn of(run: &'a Run<'a>) -> Option<Self> {
        let port = run.flow.flow.source.map(|source| source.port());
        let port = port.filter(|port| *port > 0);
        if port.is_none() && !is_imported(run) {
            return None;
        }
        let replied = run
            .flow
            .exchanges
            .iter()
            .filter(|exchange| exchange.response.is_some());
        let round_trips = if is_imported(run) {
            imported::round_trips(run)
        } else {
            run.sorted_network_times()
        };
        let minima_ms = [run.min_tcp_rtt(), round_trips.min()];
        let min_rtt_ms = minima_ms.into_iter().flatten().min_by(f64::total_cmp)?;
        (replied.count() >= MIN_MESSAGES).then_some(Self {
            run,
            port,
            min_rtt_ms,
            round_trips,
        })
    }

    /// Whether most messages are nearer to this path than to one that is longer by `gap_ms`.
    fn is_on_own_path(&self, gap_ms: f64) -> bool {
        let nearer_to_other = self.round_trips.count_above(self.min_rtt_ms + gap_ms / 2.0);
        to_f64(nearer_to_other) <= OWN_PATH_SHARE * to_f64(self.round_trips.len())
    }
}

fn group_key(run: &Run<'_>) -> GroupKey {
    let scenario = run.scenario;
    let sizes = [scenario.request_size, scenario.response_size];
    (
        run.site().to_owned(),
        peer(run),
        run.flow.flow.probe,
        sizes.map(ByteSize::bytes),
        scenario.stress().map(str::to_owned),
    )
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let mut best: BTreeMap<(String, Peer), (usize, RuleResult)> = BTreeMap::new();
    for ((site, target, ..), runs) in input.grouped(group_key) {
        let flow_paths = runs.iter().filter_map(|run| FlowPath::of(run));
        let mut paths: Vec<FlowPath<'_>> = flow_paths.collect();
        paths.sort_by_key(|path| path.run.experiment.experiment.started);
        let name = endpoint_names(input, &runs);
        // Without known ports, a route change explains the same.
        let are_all_ports_known = paths.iter().all(|path| path.port.is_some());
        let with_route_change = || {
            are_all_ports_known
                .then(|| diagnose_with_route_change(&name, &paths))
                .flatten()
        };
        let Some(result) = diagnose_group(&name, &paths, None).or_else(with_route_change) else {
            continue;
        };
        let reported = best.get(&(site.clone(), target.clone()));
        if reported.is_none_or(|(flows, _)| *flows < paths.len()) {
            best.insert((site, target), (paths.len(), result));
        }
    }
    best.into_values().map(|(_, result)| result).collect()
}

/// The endpoints by name: a plan may list one address several times, once per port.
fn endpoint_names(input: &RuleInput<'_>, runs: &[&Run<'_>]) -> String {
    let names: BTreeSet<String> = runs.iter().map(|run| input.name(&run.pair())).collect();
    let names: Vec<String> = names.into_iter().collect();
    match names.split_at_checked(MAX_NAMED_ENDPOINTS) {
        Some((few, remaining @ [_, ..])) => {
            format!("{} and {} more", few.join(", "), remaining.len())
        }
        _ => names.join(", "),
    }
}

/// Flows with similar least round trips.
struct Class {
    low_ms: f64,
    high_ms: f64,
    ports: BTreeSet<u16>,
    flows: usize,
    /// Those of them whose port is unknown.
    flows_without_port: usize,
}

impl Class {
    fn of(paths: &[AlignedPath<'_>], (low_ms, high_ms): (f64, f64)) -> Self {
        let members = paths
            .iter()
            .filter(|path| (low_ms..=high_ms).contains(&path.min_rtt_ms));
        Self {
            low_ms,
            high_ms,
            ports: members.clone().filter_map(|path| path.path.port).collect(),
            flows_without_port: members
                .clone()
                .filter(|path| path.path.port.is_none())
                .count(),
            flows: members.count(),
        }
    }

    fn contains(&self, path: &AlignedPath<'_>) -> bool {
        (self.low_ms..=self.high_ms).contains(&path.min_rtt_ms)
    }

    fn has_reused_ports(&self) -> bool {
        self.flows - self.flows_without_port > self.ports.len()
    }

    fn ports_text(&self) -> String {
        if self.flows_without_port > 0 {
            return plural(self.flows, "connection");
        }
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        match ports.as_slice() {
            [only] => format!("port {only}"),
            _ if ports.len() > 3 => format!("{} ports such as {}", ports.len(), ports[0]),
            _ => format!("ports {}", ports.join(", ")),
        }
    }
}

/// The classes of the flows, the fastest first; a single class if there is no gap.
fn classes(paths: &[AlignedPath<'_>]) -> Vec<Class> {
    let mut classes = rtt_levels(paths);
    classes.retain(|class| class.flows >= MIN_CLASS_FLOWS);
    classes
}

/// Like [`classes`], but includes classes of a single flow. Levels that chain over more than the least gap
/// form as many classes as their noise shows.
fn rtt_levels(paths: &[AlignedPath<'_>]) -> Vec<Class> {
    let mut min_rtts_ms: Vec<f64> = paths.iter().map(|path| path.min_rtt_ms).collect();
    min_rtts_ms.sort_by(f64::total_cmp);
    let is_near = |rtt_ms: &f64, next_ms: &f64| next_ms - rtt_ms < min_gap_ms(*rtt_ms);
    let ranges_ms = min_rtts_ms.chunk_by(is_near).flat_map(|near| {
        let (low_ms, high_ms) = (near[0], near[near.len() - 1]);
        if high_ms - low_ms < min_gap_ms(low_ms) {
            return vec![(low_ms, high_ms)];
        }
        let weighted = |&value: &f64| Weighted { value, weight: 1.0 };
        let values: Vec<Weighted> = near.iter().map(weighted).collect();
        let classes = neph_stats::classes(&values, min_gap_ms(low_ms), 0.0);
        let classes = classes.unwrap_or_default().into_iter();
        classes.map(|class| (class.low, class.high)).collect()
    });
    ranges_ms.map(|range| Class::of(paths, range)).collect()
}

/// The width of the widest class and the least gap between two; `None` with fewer than two.
fn class_gap(classes: &[Class]) -> Option<(f64, f64)> {
    let gaps = classes
        .windows(2)
        .map(|neighbours| neighbours[1].low_ms - neighbours[0].high_ms);
    let widths = classes.iter().map(|class| class.high_ms - class.low_ms);
    Some((widths.fold(0.0, f64::max), gaps.min_by(f64::total_cmp)?))
}

fn min_gap_ms(rtt_ms: f64) -> f64 {
    MIN_GAP_MS.max(MIN_GAP_SHARE * rtt_ms)
}

/// How many times the class changes along the sequence.
fn switches(class_sequence: &[usize]) -> usize {
    class_sequence
        .windows(2)
        .filter(|neighbours| neighbours[0] != neighbours[1])
        .count()
}

/// Whether the classes alternate at random over time, not in blocks as with route changes.
fn alternates_at_random(class_sequence: &[usize]) -> bool {
    let switch_count = switches(class_sequence);
    let mut random = Random::new(0);
    let mut shuffled = class_sequence.to_vec();
    let shuffles_with_as_few = (0..SHUFFLES).filter(|_| {
        for index in 1..shuffled.len() {
            shuffled.swap(index, random.below(index + 1));
        }
        switches(&shuffled) <= switch_count
    });
    switch_count >= MIN_SWITCHES
        && to_f64(shuffles_with_as_few.count()) >= MIN_SHUFFLE_SHARE * f64::from(SHUFFLES)
}

/// Whether the port selects the class. Each port stays in one class, and ports recur in every class or the
/// classes alternate.
fn is_by_port(paths: &[&AlignedPath<'_>], classes: &[Class]) -> bool {
    let ports: usize = classes.iter().map(|class| class.ports.len()).sum();
    let distinct_ports: BTreeSet<u16> = paths.iter().filter_map(|path| path.path.port).collect();
    ports == distinct_ports.len()
        && (classes.iter().all(Class::has_reused_ports)
            || alternates_at_random(&class_sequence(paths, classes)))
}

/// The class of each flow, over time.
fn class_sequence(paths: &[&AlignedPath<'_>], classes: &[Class]) -> Vec<usize> {
    let class_of = |path: &&AlignedPath<'_>| classes.iter().position(|class| class.contains(path));
    paths.iter().filter_map(class_of).collect()
}

/// The result after a route change is removed, where the flows as they are give none.
fn diagnose_with_route_change(name: &str, paths: &[FlowPath<'_>]) -> Option<RuleResult> {
    let mut likeliest = find_route_changes(paths).into_iter().take(MAX_CHANGES);
    likeliest.find_map(|change| diagnose_group(name, paths, Some(&change)))
}

/// The result for the flows, without the latency that a route change adds.
fn diagnose_group(
    name: &str,
    paths: &[FlowPath<'_>],
    change: Option<&RouteChange>,
) -> Option<RuleResult> {
    let route_change_text = change.map_or_else(String::new, |change| change.to_text(paths));
    let flows = align_paths(paths, change);
    let classes = classes(&flows);
    let has_class = |path: &&AlignedPath<'_>| classes.iter().any(|class| class.contains(path));
    let paths: Vec<&AlignedPath<'_>> = flows.iter().filter(has_class).collect();
    let (max_width_ms, gap_ms) = class_gap(&classes)?;
    let are_classes_distinct = max_width_ms * MIN_GAP_TO_WIDTH <= gap_ms;
    if paths.len() < MIN_FLOWS || !are_classes_distinct || !is_by_port(&paths, &classes) {
        return None;
    }
    let disturbed_flows = paths
        .iter()
        .filter(|path| !path.path.is_on_own_path(gap_ms))
        .count();
    if to_f64(disturbed_flows) > MAX_DISTURBED_SHARE * to_f64(paths.len()) {
        return None;
    }
    let (fast, slow) = (classes.first()?, classes.last()?);
    if slow.low_ms - fast.high_ms < min_gap_ms(fast.low_ms) {
        return None;
    }
    let listed: Vec<String> = classes
        .iter()
        .map(|class| format!("{} {}", class.ports_text(), millis(class.low_ms)))
        .collect();
    let flows_without_port: usize = classes.iter().map(|class| class.flows_without_port).sum();
    let port = match flows_without_port {
        0 => "source port",
        _ => "connection, so probably on its source port (imported files do not contain it)",
    };
    let cause = format!(
        "{name}: latency depends on the {port}: {}. {} stayed on its path. A router balances flows over {} equal-cost paths (ECMP) that differ by {}.{route_change_text}",
        listed.join("; "),
        flows_text(paths.len(), disturbed_flows),
        classes.len(),
        millis(slow.low_ms - fast.low_ms),
    );
    let remedy = remedy(fast);
    let mut confidence = confidence(&paths, &classes);
    if change.is_some() {
        confidence.level = confidence.level.one_lower();
        confidence.why.push_str("; the route changed as well");
    }
    let mut result = RuleResult::new(cause, remedy, confidence)
        .with_added_latency(slow.low_ms - fast.low_ms)
        .with("shortest path", fast.low_ms, "ms")
        .with("longest path", slow.low_ms, "ms")
        .with("difference within a path", max_width_ms, "ms");
    if let Some(port) = fast.ports.first() {
        result = result.with("best source port", f64::from(*port), "");
    }
    let result = result
        .with("flows", to_f64(paths.len()), "flows")
        .observed_in(paths.iter().map(|path| path.path.run));
    Some(result)
}

/// High if ports recurred in every class, lower if the classes only alternate.
fn confidence(paths: &[&AlignedPath<'_>], classes: &[Class]) -> Confidence {
    let reused_classes = classes
        .iter()
        .filter(|class| class.has_reused_ports())
        .count();
    let switch_count = switches(&class_sequence(paths, classes));
    let flows_without_port: usize = classes.iter().map(|class| class.flows_without_port).sum();
    let ports = match flows_without_port {
        0 => format!(
            "{reused_classes} of {} classes have ports that were reused and kept their path",
            classes.len()
        ),
        _ => "imported files contain no source port".to_owned(),
    };
    let reason = format!(
        "{ports}; {} changed class {switch_count} times",
        plural(paths.len(), "flow"),
    );
    let level = if reused_classes == classes.len() {
        Level::Sure
    } else if switch_count >= MANY_SWITCHES {
        Level::Likely
    } else {
        Level::Possible
    };
    Confidence::new(level, reason)
}
