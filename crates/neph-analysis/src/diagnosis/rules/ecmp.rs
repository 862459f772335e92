//! Equal-cost paths that are not equal: flows of the same pair whose round trip depends on their
//! ports (RFC 2992; the path is chosen by a hash over the 5-tuple).

mod change;
mod imported;

use crate::diagnosis::Peer;
use crate::diagnosis::is_imported;
use crate::diagnosis::peer;
use std::collections::{BTreeMap, BTreeSet};

use neph_model::{ByteSize, ProbeKind};
use neph_stats::{Random, Weighted};

use crate::diagnosis::{Confidence, Found, Level, Need, Ordered, Rule, Run, Sight};
use crate::numbers::millis;
use crate::words::{plural, real};
use change::{Aligned, Change, aligned, changes};

pub(crate) const RULE: Rule = Rule {
    name: "ecmp-imbalance",
    title: "equal-cost paths of unequal length",
    limits: "It compares flows, so it needs four or more that went by turns. Where on the way the paths part it cannot tell (a traceroute with the flow's port may), and a port is good only until somebody changes routes or the hash's seed.",
    covers: &[],
    needs: &[Need::Flows(FLOWS)],
    look,
};

/// Flows of one path differ by what the least of some dozen messages leaves of jitter.
const LEAST_GAP_MS: f64 = 0.3;
/// And paths that differ by less than this share of the shorter one are not worth choosing.
const LEAST_GAP_SHARE: f64 = 0.08;
/// The flows of one path lie at least so many times closer together than the paths are apart.
const TIGHT: f64 = 3.0;
/// Fewer flows can fall into two classes by chance or by one change of a route.
const FLOWS: usize = 4;
/// One switch from one class to another over time is a changed route, and two are one that came
/// back; ports mix them.
const SWITCHES: usize = 3;
/// A class of fewer flows is a disturbed experiment.
const MEMBERS: usize = 2;
/// Where no port tells, the classes take turns as drawn by lot: one order in twenty has as few
/// switches by chance.
const BY_CHANCE: f64 = 0.05;
const DRAWS: u32 = 2000;
/// So many switches are no route any more that comes and goes.
const MANY_SWITCHES: usize = 6;
/// Of the changes of the route that may be the reason why flows do not fall into classes, so many
/// are tried.
const TRIED: usize = 8;
/// The least of fewer messages is not yet the path's.
const MESSAGES: usize = 5;
/// Of a flow's messages so many lie nearer to their own path than to the next longer one.
const STAYS: f64 = 0.5;
/// So many of the flows may not: in one of a second, all that is sent behind a segment that was lost
/// or held waits with it.
const DISTURBED: f64 = 0.1;

/// Endpoints of one address that are named, at most.
const NAMED: usize = 3;

/// What flows have in common that differ in their ports only: the plan's load among it, under which all
/// take longer.
type Key = (String, Peer, ProbeKind, [u64; 2], Option<String>);

/// One flow: an experiment's connection.
struct Path<'a> {
    run: &'a Run<'a>,
    /// Absent where an imported file does not name it: a port of its own.
    port: Option<u16>,
    /// Its least round trip in milliseconds.
    base: f64,
    /// The messages' round trips.
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
            .filter(|one| one.response.is_some());
        let networks = if is_imported(run) {
            imported::round_trips(run)
        } else {
            run.networks()
        };
        let base = [run.tcp_least(), networks.least()];
        let base = base.into_iter().flatten().min_by(f64::total_cmp)?;
        (replied.count() >= MESSAGES).then_some(Self {
            run,
            port,
            base,
            networks,
        })
    }

    /// Whether most of its messages are nearer to its own path than to one this much longer.
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

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let mut best: BTreeMap<(String, Peer), (usize, Found)> = BTreeMap::new();
    for ((site, target, ..), runs) in sight.grouped(key) {
        let mut paths: Vec<Path<'_>> = runs.iter().filter_map(|run| Path::of(run)).collect();
        paths.sort_by_key(|path| path.run.experiment.experiment.started);
        let name = name(sight, &runs);
        // Where no port is known, a change of the route explains the same.
        let all_named = paths.iter().all(|path| path.port.is_some());
        let beside = || {
            all_named
                .then(|| told_beside_a_change(&name, &paths))
                .flatten()
        };
        let Some(found) = told(&name, &paths, None).or_else(beside) else {
            continue;
        };
        let known = best.get(&(site.clone(), target.clone()));
        if known.is_none_or(|(flows, _)| *flows < paths.len()) {
            best.insert((site, target), (paths.len(), found));
        }
    }
    best.into_values().map(|(_, found)| found).collect()
}

/// The endpoints by name: a plan may give the same address several, one for each port.
fn name(sight: &Sight<'_>, runs: &[&Run<'_>]) -> String {
    let names: BTreeSet<String> = runs.iter().map(|run| sight.name(&run.place())).collect();
    let names: Vec<String> = names.into_iter().collect();
    match names.split_at_checked(NAMED) {
        Some((few, rest @ [_, ..])) => format!("{} and {} more", few.join(", "), rest.len()),
        _ => names.join(", "),
    }
}

/// Flows whose least round trips lie close together.
struct Class {
    low: f64,
    high: f64,
    ports: BTreeSet<u16>,
    flows: usize,
    /// Of these, flows whose port is not known.
    unnamed: usize,
}

impl Class {
    fn of(paths: &[Aligned<'_>], (low, high): (f64, f64)) -> Self {
        let held = paths.iter().filter(|one| (low..=high).contains(&one.base));
        Self {
            low,
            high,
            ports: held.clone().filter_map(|one| one.path.port).collect(),
            unnamed: held.clone().filter(|one| one.path.port.is_none()).count(),
            flows: held.count(),
        }
    }

    fn holds(&self, path: &Aligned<'_>) -> bool {
        (self.low..=self.high).contains(&path.base)
    }

    fn has_ports_again(&self) -> bool {
        self.flows - self.unnamed > self.ports.len()
    }

    fn ports_in_words(&self) -> String {
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

/// The classes that flows fall into, the fastest first; one if they do not fall apart.
fn classes(paths: &[Aligned<'_>]) -> Vec<Class> {
    let mut found = levels(paths);
    found.retain(|class| class.flows >= MEMBERS);
    found
}

/// The same, with those of a single flow. Levels that chain over more than the least gap are as many
/// classes as their noise shows.
fn levels(paths: &[Aligned<'_>]) -> Vec<Class> {
    let mut bases: Vec<f64> = paths.iter().map(|one| one.base).collect();
    bases.sort_by(f64::total_cmp);
    let is_near = |one: &f64, next: &f64| next - one < least_gap(*one);
    let found = bases.chunk_by(is_near).flat_map(|near| {
        let (low, high) = (near[0], near[near.len() - 1]);
        if high - low < least_gap(low) {
            return vec![(low, high)];
        }
        let weighted = |&value: &f64| Weighted { value, weight: 1.0 };
        let values: Vec<Weighted> = near.iter().map(weighted).collect();
        let found = neph_stats::classes(&values, least_gap(low), 0.0);
        let found = found.unwrap_or_default().into_iter();
        found.map(|class| (class.low, class.high)).collect()
    });
    found.map(|range| Class::of(paths, range)).collect()
}

/// How wide the widest class is, and how far apart the nearest two are; nothing of fewer.
fn apart(classes: &[Class]) -> Option<(f64, f64)> {
    let gaps = classes.windows(2).map(|pair| pair[1].low - pair[0].high);
    let widths = classes.iter().map(|one| one.high - one.low);
    Some((widths.fold(0.0, f64::max), gaps.min_by(f64::total_cmp)?))
}

fn least_gap(base: f64) -> f64 {
    LEAST_GAP_MS.max(LEAST_GAP_SHARE * base)
}

/// How many times in a row something else follows.
fn switches(order: &[usize]) -> usize {
    order.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Whether the classes take turns over time as if drawn by lot, not in blocks as routes do.
fn take_turns(order: &[usize]) -> bool {
    let seen = switches(order);
    let mut random = Random::new(0);
    let mut drawn = order.to_vec();
    let as_few = (0..DRAWS).filter(|_| {
        for place in 1..drawn.len() {
            drawn.swap(place, random.below(place + 1));
        }
        switches(&drawn) <= seen
    });
    seen >= SWITCHES && real(as_few.count()) >= BY_CHANCE * f64::from(DRAWS)
}

/// Whether ports choose the class: each stays in one, and they came again in every class, or the
/// classes take turns.
fn is_by_port(paths: &[&Aligned<'_>], classes: &[Class]) -> bool {
    let ports: usize = classes.iter().map(|one| one.ports.len()).sum();
    let all: BTreeSet<u16> = paths.iter().filter_map(|one| one.path.port).collect();
    ports == all.len()
        && (classes.iter().all(Class::has_ports_again) || take_turns(&order(paths, classes)))
}

/// Each flow's class, over time.
fn order(paths: &[&Aligned<'_>], classes: &[Class]) -> Vec<usize> {
    let of = |path: &&Aligned<'_>| classes.iter().position(|one| one.holds(path));
    paths.iter().filter_map(of).collect()
}

/// What flows tell where all together do not, because the route changed meanwhile.
fn told_beside_a_change(name: &str, paths: &[Path<'_>]) -> Option<Found> {
    let mut likely = changes(paths).into_iter().take(TRIED);
    likely.find_map(|change| told(name, paths, Some(&change)))
}

/// What flows tell, without what a change of the route adds.
fn told(name: &str, paths: &[Path<'_>], change: Option<&Change>) -> Option<Found> {
    let also = change.map_or_else(String::new, |change| change.in_words(paths));
    let flows = aligned(paths, change);
    let classes = classes(&flows);
    let is_classed = |path: &&Aligned<'_>| classes.iter().any(|one| one.holds(path));
    let paths: Vec<&Aligned<'_>> = flows.iter().filter(is_classed).collect();
    let (widest, gap) = apart(&classes)?;
    if paths.len() < FLOWS || widest * TIGHT > gap || !is_by_port(&paths, &classes) {
        return None;
    }
    let strayed = paths.iter().filter(|one| !one.path.stays(gap)).count();
    if real(strayed) > DISTURBED * real(paths.len()) {
        return None;
    }
    let (fast, slow) = (classes.first()?, classes.last()?);
    if slow.low - fast.high < least_gap(fast.low) {
        return None;
    }
    let listed: Vec<String> = classes
        .iter()
        .map(|one| format!("{} {}", one.ports_in_words(), millis(one.low)))
        .collect();
    let unnamed: usize = classes.iter().map(|one| one.unnamed).sum();
    let port = match unnamed {
        0 => "source port",
        _ => "connection, so probably on its source port (the imported files do not name it)",
    };
    let cause = format!(
        "{name}: the path depends on the {port}: {}. {} stayed on its path, by turns with the others: a router shares flows out among {} equal-cost paths that differ by {}.{also}",
        listed.join("; "),
        each_of(paths.len(), strayed),
        classes.len(),
        millis(slow.low - fast.low),
    );
    let remedy = remedy(fast);
    let mut confidence = confidence(&paths, &classes);
    if change.is_some() {
        confidence.level = confidence.level.less();
        confidence.why.push_str("; the route changed as well");
    }
    let mut found = Found::new(cause, remedy, confidence)
        .costing(slow.low - fast.low)
        .with("shortest path", fast.low, "ms")
        .with("longest path", slow.low, "ms")
        .with("difference within a path", widest, "ms");
    if let Some(port) = fast.ports.first() {
        found = found.with("best source port", f64::from(*port), "");
    }
    let found = found
        .with("flows", real(paths.len()), "flows")
        .seen_in(paths.iter().map(|one| one.path.run));
    Some(found)
}

/// Which port to take, where it is known.
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
    format!("{bind} (in a plan, source_port), or ask whoever routes for paths of equal length")
}

/// Who stayed on its path.
fn each_of(flows: usize, strayed: usize) -> String {
    match strayed {
        0 => format!("Each of {}", plural(flows, "flow")),
        _ => format!(
            "Each of {} but {strayed}, most of whose messages were held up,",
            plural(flows, "flow"),
        ),
    }
}

/// Ports that came again in every class leave no doubt; turns leave some.
fn confidence(paths: &[&Aligned<'_>], classes: &[Class]) -> Confidence {
    let again = classes.iter().filter(|one| one.has_ports_again()).count();
    let turns = switches(&order(paths, classes));
    let unnamed: usize = classes.iter().map(|one| one.unnamed).sum();
    let ports = match unnamed {
        0 => format!(
            "{again} of {} classes have ports that were used again and kept their path",
            classes.len()
        ),
        _ => "the imported files name no source port".to_owned(),
    };
    let why = format!(
        "{ports}; {} changed class {turns} times",
        plural(paths.len(), "flow"),
    );
    let level = if again == classes.len() {
        Level::Sure
    } else if turns >= MANY_SWITCHES {
        Level::Likely
    } else {
        Level::Possible
    };
    Confidence::new(level, why)
}
