//! Unequal equal-cost paths: flows of the same pair whose RTT depends on their ports. Routers select the path
//! by a hash over the 5-tuple (RFC 2992).

mod change;
mod imported;

use crate::diagnosis::Peer;
use crate::diagnosis::is_imported;
use crate::diagnosis::peer;
use std::collections::{BTreeMap, BTreeSet};

use neph_model::{ByteSize, ProbeKind};
use neph_stats::{Random, Weighted};

use crate::diagnosis::{Confidence, Level, Need, Ordered, Rule, RuleInput, RuleResult, Run};
use crate::numbers::millis;
use crate::text::{plural, real};
use change::{Aligned, Change, aligned, changes};

pub(crate) const RULE: Rule = Rule {
    name: "ecmp-imbalance",
    title: "equal-cost paths of unequal length",
    limits: "The rule compares flows and needs at least four. It does not show where the paths diverge; neph trace with the flow's port may. A port is fast only until routes or the hash seed change.",
    covers: &[],
    needs: &[Need::Flows(FLOWS)],
    evaluate,
};

/// Smallest gap between two paths, in milliseconds. Flows of one path may differ by less: their minimum still
/// contains jitter.
const MIN_GAP_MS: f64 = 0.3;
/// Smallest gap as a share of the shorter path; a smaller one is not worth a remedy.
const MIN_GAP_SHARE: f64 = 0.08;
/// The gap between paths is at least this many times the spread of the flows of one path.
const TIGHT: f64 = 3.0;
/// With fewer flows, two classes can arise at random or from one route change.
const FLOWS: usize = 4;
/// One switch between classes over time is a route change; two are a change and its reversal. Port hashing
/// mixes the classes.
const SWITCHES: usize = 3;
/// A class of fewer flows is a disturbed experiment.
const MEMBERS: usize = 2;
/// Without known ports, the classes must alternate at random: the probability of so few switches is at most
/// 5 %.
const BY_CHANCE: f64 = 0.05;
const DRAWS: u32 = 2000;
/// This many switches are no temporary route change.
const MANY_SWITCHES: usize = 6;
/// Maximum number of route changes that are tried to explain why flows form no classes.
const TRIED: usize = 8;
/// With fewer messages the minimum is not yet that of the path.
const MESSAGES: usize = 5;
/// Share of a flow's messages that lie nearer to its own path than to the next longer one.
const STAYS: f64 = 0.5;
/// Share of the flows that may not. Messages behind a lost or delayed segment wait with it, for a second in
/// some flows.
const DISTURBED: f64 = 0.1;

/// Maximum number of endpoints of one address that are named.
const NAMED: usize = 3;

/// What flows share that differ in ports only. The plan's load is part of it, because it slows all flows.
type Key = (String, Peer, ProbeKind, [u64; 2], Option<String>);

/// One flow: the connection of an experiment.
struct Path<'a> {
    run: &'a Run<'a>,
    /// `None` if an imported file does not have it: each such flow has a port of its own.
    port: Option<u16>,
    /// The least round trip in milliseconds.
    base: f64,
    /// The round trips of the messages.
    networks: Ordered,
}

impl<'a> Path<'a> {
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
        let networks = if is_imported(run) {
            imported::round_trips(run)
        } else {
            run.networks()
        };
        let base = [run.min_tcp_rtt(), networks.min()];
        let base = base.into_iter().flatten().min_by(f64::total_cmp)?;
        (replied.count() >= MESSAGES).then_some(Self {
            run,
            port,
            base,
            networks,
        })
    }

    /// Whether most messages are nearer to this path than to one that is longer by `gap`.
    fn stays(&self, gap: f64) -> bool {
        let strayed = self.networks.above(self.base + gap / 2.0);
        real(strayed) <= STAYS * real(self.networks.len())
    }
}

fn key(run: &Run<'_>) -> Key {
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
    for ((site, target, ..), runs) in input.grouped(key) {
        let mut paths: Vec<Path<'_>> = runs.iter().filter_map(|run| Path::of(run)).collect();
        paths.sort_by_key(|path| path.run.experiment.experiment.started);
        let name = name(input, &runs);
        // Without known ports, a route change explains the same.
        let all_named = paths.iter().all(|path| path.port.is_some());
        let with_route_change = || {
            all_named
                .then(|| found_with_a_change(&name, &paths))
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
fn name(input: &RuleInput<'_>, runs: &[&Run<'_>]) -> String {
    let names: BTreeSet<String> = runs.iter().map(|run| input.name(&run.pair())).collect();
    let names: Vec<String> = names.into_iter().collect();
    match names.split_at_checked(NAMED) {
        Some((few, remaining @ [_, ..])) => {
            format!("{} and {} more", few.join(", "), remaining.len())
        }
        _ => names.join(", "),
    }
}

/// Flows with similar least round trips.
struct Class {
    low: f64,
    high: f64,
    ports: BTreeSet<u16>,
    flows: usize,
    /// Those of them whose port is unknown.
    unnamed: usize,
}

impl Class {
    fn of(paths: &[Aligned<'_>], (low, high): (f64, f64)) -> Self {
        let members = paths
            .iter()
            .filter(|path| (low..=high).contains(&path.base));
        Self {
            low,
            high,
            ports: members.clone().filter_map(|path| path.path.port).collect(),
            unnamed: members
                .clone()
                .filter(|path| path.path.port.is_none())
                .count(),
            flows: members.count(),
        }
    }

    fn contains(&self, path: &Aligned<'_>) -> bool {
        (self.low..=self.high).contains(&path.base)
    }

    fn has_reused_ports(&self) -> bool {
        self.flows - self.unnamed > self.ports.len()
    }

    fn ports_text(&self) -> String {
        if self.unnamed > 0 {
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
fn classes(paths: &[Aligned<'_>]) -> Vec<Class> {
    let mut classes = levels(paths);
    classes.retain(|class| class.flows >= MEMBERS);
    classes
}

/// Like [`classes`], but includes classes of a single flow. Levels that chain over more than the least gap
/// form as many classes as their noise shows.
fn levels(paths: &[Aligned<'_>]) -> Vec<Class> {
    let mut bases: Vec<f64> = paths.iter().map(|path| path.base).collect();
    bases.sort_by(f64::total_cmp);
    let is_near = |base: &f64, next: &f64| next - base < least_gap(*base);
    let levels = bases.chunk_by(is_near).flat_map(|near| {
        let (low, high) = (near[0], near[near.len() - 1]);
        if high - low < least_gap(low) {
            return vec![(low, high)];
        }
        let weighted = |&value: &f64| Weighted { value, weight: 1.0 };
        let values: Vec<Weighted> = near.iter().map(weighted).collect();
        let classes = neph_stats::classes(&values, least_gap(low), 0.0);
        let classes = classes.unwrap_or_default().into_iter();
        classes.map(|class| (class.low, class.high)).collect()
    });
    levels.map(|range| Class::of(paths, range)).collect()
}

/// The width of the widest class and the least gap between two; `None` with fewer than two.
fn class_gap(classes: &[Class]) -> Option<(f64, f64)> {
    let gaps = classes.windows(2).map(|pair| pair[1].low - pair[0].high);
    let widths = classes.iter().map(|class| class.high - class.low);
    Some((widths.fold(0.0, f64::max), gaps.min_by(f64::total_cmp)?))
}

fn least_gap(base: f64) -> f64 {
    MIN_GAP_MS.max(MIN_GAP_SHARE * base)
}

/// How many times the class changes along the order.
fn switches(order: &[usize]) -> usize {
    order.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Whether the classes alternate at random over time, not in blocks as with route changes.
fn take_turns(order: &[usize]) -> bool {
    let switch_count = switches(order);
    let mut random = Random::new(0);
    let mut drawn = order.to_vec();
    let as_few = (0..DRAWS).filter(|_| {
        for index in 1..drawn.len() {
            drawn.swap(index, random.below(index + 1));
        }
        switches(&drawn) <= switch_count
    });
    switch_count >= SWITCHES && real(as_few.count()) >= BY_CHANCE * f64::from(DRAWS)
}

/// Whether the port selects the class. Each port stays in one class, and ports recur in every class or the
/// classes alternate.
fn is_by_port(paths: &[&Aligned<'_>], classes: &[Class]) -> bool {
    let ports: usize = classes.iter().map(|class| class.ports.len()).sum();
    let distinct_ports: BTreeSet<u16> = paths.iter().filter_map(|path| path.path.port).collect();
    ports == distinct_ports.len()
        && (classes.iter().all(Class::has_reused_ports) || take_turns(&order(paths, classes)))
}

/// The class of each flow, over time.
fn order(paths: &[&Aligned<'_>], classes: &[Class]) -> Vec<usize> {
    let class_of = |path: &&Aligned<'_>| classes.iter().position(|class| class.contains(path));
    paths.iter().filter_map(class_of).collect()
}

/// The result after a route change is removed, where the flows as they are give none.
fn found_with_a_change(name: &str, paths: &[Path<'_>]) -> Option<RuleResult> {
    let mut likely = changes(paths).into_iter().take(TRIED);
    likely.find_map(|change| diagnose_group(name, paths, Some(&change)))
}

/// The result for the flows, without the latency that a route change adds.
fn diagnose_group(name: &str, paths: &[Path<'_>], change: Option<&Change>) -> Option<RuleResult> {
    let also = change.map_or_else(String::new, |change| change.to_text(paths));
    let flows = aligned(paths, change);
    let classes = classes(&flows);
    let is_classed = |path: &&Aligned<'_>| classes.iter().any(|class| class.contains(path));
    let paths: Vec<&Aligned<'_>> = flows.iter().filter(is_classed).collect();
    let (widest, gap) = class_gap(&classes)?;
    if paths.len() < FLOWS || widest * TIGHT > gap || !is_by_port(&paths, &classes) {
        return None;
    }
    let strayed = paths.iter().filter(|path| !path.path.stays(gap)).count();
    if real(strayed) > DISTURBED * real(paths.len()) {
        return None;
    }
    let (fast, slow) = (classes.first()?, classes.last()?);
    if slow.low - fast.high < least_gap(fast.low) {
        return None;
    }
    let listed: Vec<String> = classes
        .iter()
        .map(|class| format!("{} {}", class.ports_text(), millis(class.low)))
        .collect();
    let unnamed: usize = classes.iter().map(|class| class.unnamed).sum();
    let port = match unnamed {
        0 => "source port",
        _ => "connection, so probably on its source port (imported files do not contain it)",
    };
    let cause = format!(
        "{name}: latency depends on the {port}: {}. {} stayed on its path. A router balances flows over {} equal-cost paths (ECMP) that differ by {}.{also}",
        listed.join("; "),
        each_of(paths.len(), strayed),
        classes.len(),
        millis(slow.low - fast.low),
    );
    let remedy = remedy(fast);
    let mut confidence = confidence(&paths, &classes);
    if change.is_some() {
        confidence.level = confidence.level.one_lower();
        confidence.why.push_str("; the route changed as well");
    }
    let mut result = RuleResult::new(cause, remedy, confidence)
        .with_added_latency(slow.low - fast.low)
        .with("shortest path", fast.low, "ms")
        .with("longest path", slow.low, "ms")
        .with("difference within a path", widest, "ms");
    if let Some(port) = fast.ports.first() {
        result = result.with("best source port", f64::from(*port), "");
    }
    let result = result
        .with("flows", real(paths.len()), "flows")
        .observed_in(paths.iter().map(|path| path.path.run));
    Some(result)
}

/// Which port to use, if it is known.
fn remedy(fast: &Class) -> String {
    let best: Vec<String> = fast.ports.iter().take(3).map(u16::to_string).collect();
    let bind = match fast.unnamed {
        0 => format!(
            "bind the source port {} before connecting",
            best.join(" or ")
        ),
        _ => "measure with several fixed source ports and bind the fastest one before connecting"
            .to_owned(),
    };
    format!(
        "{bind} (in a plan: source_port), or ask the network operator for paths of equal latency"
    )
}

/// How many flows stayed on their paths.
fn each_of(flows: usize, strayed: usize) -> String {
    match strayed {
        0 => format!("Each of {}", plural(flows, "flow")),
        _ => format!(
            "Each of {} but {strayed} (most of their messages were delayed)",
            plural(flows, "flow"),
        ),
    }
}

/// High if ports recurred in every class, lower if the classes only alternate.
fn confidence(paths: &[&Aligned<'_>], classes: &[Class]) -> Confidence {
    let reused = classes
        .iter()
        .filter(|class| class.has_reused_ports())
        .count();
    let turns = switches(&order(paths, classes));
    let unnamed: usize = classes.iter().map(|class| class.unnamed).sum();
    let ports = match unnamed {
        0 => format!(
            "{reused} of {} classes have ports that were reused and kept their path",
            classes.len()
        ),
        _ => "imported files contain no source port".to_owned(),
    };
    let reason = format!(
        "{ports}; {} changed class {turns} times",
        plural(paths.len(), "flow"),
    );
    let level = if reused == classes.len() {
        Level::Sure
    } else if turns >= MANY_SWITCHES {
        Level::Likely
    } else {
        Level::Possible
    };
    Confidence::new(level, reason)
}
