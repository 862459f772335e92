//! Equal-cost paths that are not equal: flows of the same pair whose round trip depends on their
//! ports (RFC 2992; the path is chosen by a hash over the 5-tuple).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crate::axis::millis;
use crate::diagnosis::{Confidence, Found, Level, Ordered, Rule, Run, Sight};
use crate::findings::{plural, real};

pub(super) const RULE: Rule = Rule {
    name: "ecmp-imbalance",
    title: "equal-cost paths of unequal length",
    limits: "It compares flows, so it needs four or more that went by turns. Where on the way the paths part it cannot tell (a traceroute with the flow's port may), and a port is good only until somebody changes routes or the hash's seed.",
    covers: &[],
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
/// One switch from one class to another over time is a changed route; ports mix them.
const SWITCHES: usize = 2;
/// The least of fewer messages is not yet the path's.
const MESSAGES: usize = 5;
/// Of a flow's messages so many lie nearer to their own path than to the next longer one.
const STAYS: f64 = 0.5;

/// Endpoints of one address that are named, at most.
const NAMED: usize = 3;

/// What flows have in common that differ in their ports only.
type Key = (String, SocketAddr, u64, u64);

/// One flow: an experiment's connection.
struct Path<'a> {
    run: &'a Run<'a>,
    port: u16,
    /// Its least round trip in milliseconds.
    base: f64,
    /// The messages' round trips.
    networks: Ordered,
}

impl<'a> Path<'a> {
    fn of(run: &'a Run<'a>) -> Option<Self> {
        let port = run.flow.flow.source.map(|source| source.port());
        let port = port.filter(|port| *port > 0)?;
        let replied = run
            .flow
            .exchanges
            .iter()
            .filter(|one| one.response.is_some());
        let networks = run.networks();
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
    let sizes = (
        scenario.request_size.bytes(),
        scenario.response_size.bytes(),
    );
    (
        run.site().to_owned(),
        run.flow.flow.target,
        sizes.0,
        sizes.1,
    )
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let mut best: BTreeMap<(String, SocketAddr), Found> = BTreeMap::new();
    for ((site, target, ..), runs) in sight.grouped(key) {
        let mut paths: Vec<Path<'_>> = runs.iter().filter_map(|run| Path::of(run)).collect();
        paths.sort_by_key(|path| path.run.experiment.experiment.started);
        let Some(found) = told(&name(sight, &runs), &paths) else {
            continue;
        };
        let entry = best.entry((site, target)).or_insert_with(|| found.clone());
        if found.seen.len() > entry.seen.len() {
            *entry = found;
        }
    }
    best.into_values().collect()
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
}

impl Class {
    fn ports_in_words(&self) -> String {
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        match ports.as_slice() {
            [only] => format!("port {only}"),
            _ if ports.len() > 3 => format!("{} ports such as {}", ports.len(), ports[0]),
            _ => format!("ports {}", ports.join(", ")),
        }
    }
}

/// The classes that flows fall into, the fastest first; one if they do not fall apart.
fn classes(paths: &[Path<'_>]) -> Vec<Class> {
    let mut sorted: Vec<&Path<'_>> = paths.iter().collect();
    sorted.sort_by(|a, b| a.base.total_cmp(&b.base));
    let mut found: Vec<Class> = Vec::new();
    for path in sorted {
        let new = |path: &Path<'_>| Class {
            low: path.base,
            high: path.base,
            ports: [path.port].into(),
            flows: 1,
        };
        match found.last_mut() {
            Some(class) if path.base - class.high < least_gap(class.low) => {
                class.high = path.base;
                class.ports.insert(path.port);
                class.flows += 1;
            }
            _ => found.push(new(path)),
        }
    }
    found
}

fn least_gap(base: f64) -> f64 {
    LEAST_GAP_MS.max(LEAST_GAP_SHARE * base)
}

fn told(name: &str, paths: &[Path<'_>]) -> Option<Found> {
    let classes = classes(paths);
    if paths.len() < FLOWS || classes.len() < 2 {
        return None;
    }
    let gap = classes.windows(2).map(|pair| pair[1].low - pair[0].high);
    let gap = gap.min_by(f64::total_cmp)?;
    let widest = classes
        .iter()
        .map(|one| one.high - one.low)
        .fold(0.0, f64::max);
    let of = |path: &Path<'_>| classes.iter().position(|one| path.base <= one.high);
    let order: Vec<Option<usize>> = paths.iter().map(of).collect();
    let switches = order.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let ports: usize = classes.iter().map(|one| one.ports.len()).sum();
    let all: BTreeSet<u16> = paths.iter().map(|path| path.port).collect();
    // A port that was seen in two classes does not decide.
    let is_by_port = ports == all.len() && all.len() > 1;
    if widest * TIGHT > gap || switches < SWITCHES || !is_by_port {
        return None;
    }
    if !paths.iter().all(|path| path.stays(gap)) {
        return None;
    }
    let (fast, slow) = (classes.first()?, classes.last()?);
    let listed: Vec<String> = classes
        .iter()
        .map(|one| format!("{} {}", one.ports_in_words(), millis(one.low)))
        .collect();
    let cause = format!(
        "{name}: the path depends on the source port: {}. Each of {} stayed on its path, by turns with the others: a router shares flows out among {} equal-cost paths that differ by {}.",
        listed.join("; "),
        plural(paths.len(), "flow"),
        classes.len(),
        millis(slow.low - fast.low),
    );
    let best: Vec<String> = fast.ports.iter().take(3).map(u16::to_string).collect();
    let remedy = format!(
        "bind the source port {} before connecting (in a plan, source_port), or ask whoever routes for paths of equal length",
        best.join(" or "),
    );
    let found = Found::new(cause, remedy, confidence(paths, &classes))
        .costing(slow.low - fast.low)
        .with("shortest path", fast.low, "ms")
        .with("longest path", slow.low, "ms")
        .with("difference within a path", widest, "ms")
        .with("best source port", f64::from(*fast.ports.first()?), "")
        .with("flows", real(paths.len()), "flows")
        .seen_in(paths.iter().map(|path| path.run));
    Some(found)
}

/// Ports that came again in both classes leave no doubt; many flows by turns leave little.
fn confidence(paths: &[Path<'_>], classes: &[Class]) -> Confidence {
    let again = classes
        .iter()
        .filter(|one| one.flows > one.ports.len())
        .count();
    let turns = real(classes.len()).powi(-i32::try_from(paths.len()).unwrap_or(i32::MAX));
    let why = format!(
        "{} of {} classes have ports that were used again and kept their path; {} by turns",
        again,
        classes.len(),
        plural(paths.len(), "flow"),
    );
    let level = if again == classes.len() || turns < 1e-3 {
        Level::Sure
    } else if turns < 0.02 {
        Level::Likely
    } else {
        Level::Possible
    };
    Confidence::new(level, why)
}
