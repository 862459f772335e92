//! What was asked of each link against what it does, measured from outside the engine.
//!
//! Owns the order of the exchanges and what is told of each link. Timed UDP packets go from one
//! site to the other; the kernel stamps them at both interfaces. It is one machine with one clock,
//! so the one-way delays are exact. What should have come of the very same packets is calculated
//! by [`replay`]. Whatever else uses a link meanwhile disturbs what is measured.

mod delay;
mod end;
mod exchange;
mod loss;
mod rate;
mod replay;

use std::collections::BTreeMap;

use neph_model::{BitRate, ByteSize, Span};
use neph_sys::{clock, sched};

use crate::counters::{Direction, DirectionCount};
use crate::gate::{Gate, Wire, both_ways};
use crate::lab::{Lab, LabError};
use crate::topology::Link;
use end::{End, PROBE_BYTES};
use replay::Asked;

pub use delay::{DelayCheck, JitterCheck, Quantiles};
pub use loss::LossCheck;

/// How far a median delay may be off. Far above what an idle machine does (below 20 us), far
/// below what matters; the hypervisor's thefts show in the p99, which is told, not judged.
const DELAY_TOLERANCE: Span = Span::from_micros(50);
/// 99 % of a normal distribution lie within this many deviations.
const Z99: f64 = 2.576;
/// Source ports that are tried to find a flow for each path: enough for a path that gets one flow
/// in a thousand.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 40_000;
/// The kernel takes this long at most from one end to the other, beside what the link was asked.
const GRACE: Span = Span::from_millis(100);
/// What a schedule may add to a delay is not known beforehand: packets are waited for so much
/// longer.
const CHANGES: Span = Span::from_secs(3);
/// Of the sender: below that of a link.
const PRIORITY: u8 = 40;
/// One packet in so many may be late, as in a campaign.
const LATE_SHARE: u64 = 100;

/// One direction of one link: asked, measured, and whether they agree.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkCheck {
    /// The link's name.
    pub link: String,
    /// The site that sends.
    pub from: String,
    /// The site that receives.
    pub to: String,
    /// Which of several paths.
    pub path: Option<String>,
    /// The one-way delay of small packets.
    pub delay: DelayCheck,
    /// Packets lost out of those sent.
    pub loss: LossCheck,
    /// The rate at which a stream came out; none where no rate was asked, or more than this
    /// machine sends.
    pub rate: Option<Check<BitRate>>,
    /// The queue that a stream filled; none where no rate was asked, or where it is so long or so
    /// fast that it is not filled and drained in time.
    pub queue: Option<Check<ByteSize>>,
    /// What the link itself counted as late meanwhile; none where it does not count.
    pub late: Option<Lateness>,
}

/// Packets that a link sent on late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// How many left later than [`crate::tolerance`] after they were due.
    pub late: u64,
    /// Of how many.
    pub carried: u64,
    /// Packets that it lost without being asked to.
    pub broken: u64,
}

impl Lateness {
    /// Whether at most one packet in a hundred was late, and none lost without being asked to.
    pub const fn is_ok(self) -> bool {
        self.late * LATE_SHARE <= self.carried && self.broken == 0
    }

    fn between(before: DirectionCount, after: DirectionCount) -> Self {
        Self {
            late: after.late - before.late,
            carried: after.delivered - before.delivered,
            broken: after.broken() - before.broken(),
        }
    }
}

impl LinkCheck {
    /// Whether everything that was measured is as asked.
    pub fn is_ok(&self) -> bool {
        self.delay.ok
            && self.loss.ok
            && self.rate.is_none_or(|rate| rate.ok)
            && self.queue.is_none_or(|queue| queue.ok)
    }

    /// Whether the link itself counted so many late packets that an experiment on it would be
    /// flagged: the machine is too busy, whatever the median says.
    pub fn is_late(&self) -> bool {
        self.late.is_some_and(|late| !late.is_ok())
    }
}

/// A quantity as asked and as measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check<T> {
    /// What the topology says.
    pub asked: T,
    /// What the link does.
    pub measured: T,
    /// Whether they agree within the tolerance.
    pub ok: bool,
}

/// Measures both directions of every link, one link after the other; see [`verify_link`].
///
/// # Errors
/// A site's interface cannot be opened. A link that does not do as asked is no error.
pub fn verify(lab: &Lab) -> Result<Vec<LinkCheck>, LabError> {
    let mut checks = Vec::new();
    for number in 0..lab.topology().links.len() {
        checks.extend(verify_link(lab, number)?);
    }
    Ok(checks)
}

/// Measures both directions of the link with this index in the topology, each of its paths by
/// itself: about 1 s a path, up to 6 s where there is a slow rate or a long jitter. Schedules begin
/// anew for it: what is judged is their first seconds. A link that does not do as asked is measured
/// a second time, and that counts, as is one whose rate could not be told: one right link in a hundred fails by chance, and a busy machine
/// fails many, but not twice.
///
/// # Errors
/// As [`verify`].
///
/// # Panics
/// There is no link with this index.
pub fn verify_link(lab: &Lab, number: usize) -> Result<Vec<LinkCheck>, LabError> {
    let asked = &lab.topology().links[number];
    let first = verify_against(lab, asked, number)?;
    let wanted = [&asked.a_to_b, &asked.b_to_a];
    let wanted = wanted.iter().filter(|shape| shape.rate.is_some()).count();
    let told = first.iter().filter(|check| check.rate.is_some()).count();
    let fine = first.iter().all(|check| check.is_ok() && !check.is_late());
    if fine && told >= wanted {
        return Ok(first);
    }
    verify_against(lab, asked, number)
}

/// Measures both directions of the link with index `number` once and holds them against `asked`
/// instead of what the lab was made from: what if, and what has changed since.
///
/// # Errors
/// As [`verify`].
///
/// # Panics
/// There is no link with this index.
pub fn verify_against(lab: &Lab, asked: &Link, number: usize) -> Result<Vec<LinkCheck>, LabError> {
    let shapes = [asked.a_to_b.clone(), asked.b_to_a.clone()];
    let gates = both_ways(&shapes, &asked.schedule, lab.link_seed(number));
    let mut ends = End::both(lab, number)?;
    let ports = [0, 1].map(|side| ports_of_paths(&mut ends[side], &gates[side]));
    let turns = ports.iter().map(Vec::len).max().unwrap_or_default();
    let mut checks = Vec::new();
    for turn in 0..turns {
        let flows = [0, 1].map(|side| {
            let port = ports[side].get(turn).or_else(|| ports[side].last());
            port.and_then(|port| ends[side].send_from(*port))
        });
        let asked = [0, 1].map(|side| Asked {
            shape: &shapes[side],
            gate: gates[side].clone(),
            flow: flows[side],
            scheduled: asked.schedule.iter().any(|change| {
                let directions = Direction::BOTH.map(Direction::index);
                change
                    .direction
                    .is_none_or(|only| only.index() == directions[side])
            }),
            cue: 0,
        });
        let measured = measure(lab, number, (&mut ends, asked, turn));
        let theirs = ports.iter().map(|ports| turn < ports.len());
        checks.extend(
            measured
                .into_iter()
                .zip(theirs)
                .filter_map(|(check, has)| has.then_some(check)),
        );
    }
    let link = &lab.topology().links[number];
    let a = &lab.topology().sites[link.a].name;
    checks.sort_by_key(|check| check.from != *a);
    Ok(checks)
}

/// A source port for each path that flows take; one where there is one path.
fn ports_of_paths(end: &mut End, gate: &Gate) -> Vec<u16> {
    let mut ports: BTreeMap<usize, u16> = BTreeMap::new();
    for port in FIRST_PORT..FIRST_PORT + PORTS {
        ports
            .entry(gate.path_of(end.send_from(port)))
            .or_insert(port);
    }
    ports.into_values().collect()
}

/// One exchange in both directions, for one flow each; streams with the first flows only, since
/// paths share rate and queue.
fn measure(
    lab: &Lab,
    number: usize,
    (ends, mut asked, turn): (&mut [End; 2], [Asked<'_>; 2], usize),
) -> [LinkCheck; 2] {
    let shapes = [asked[0].shape, asked[1].shape];
    let wires = [0, 1].map(|side| asked[side].wire().clone());
    let before = counts(lab, number);
    let scheduled = asked.iter().any(|asked| asked.scheduled);
    let patience = GRACE + if scheduled { CHANGES } else { Span::ZERO };
    let mut cues = [0; 2];
    let (small, large) = punctually(|| {
        cues[0] = cue(lab);
        let small = exchange::trickle(ends, shapes, [&wires[0], &wires[1]], patience);
        let large = [0, 1].map(|side| {
            let wanted = turn == 0 && shapes[side].rate.is_some();
            wanted.then(|| {
                let cue = cue(lab);
                (
                    cue,
                    exchange::stream(ends, side, (shapes[side], &wires[side]), patience),
                )
            })
        });
        (small, large)
    });
    let after = counts(lab, number);
    let link = &lab.topology().links[number];
    Direction::BOTH.map(|direction| {
        let at = direction.index();
        let sites = [link.a, link.b].map(|site| lab.topology().sites[site].name.clone());
        let [from, to] = in_order(sites, direction);
        let asked = &mut asked[at];
        asked.cue = cues[0];
        let (delay, loss) = (
            delay::check(&small[at], asked),
            loss::check(&small[at], asked),
        );
        let path = asked
            .shape
            .paths
            .get(asked.path())
            .map(|path| path.name.clone());
        let stream = large[at].as_ref().and_then(|(cue, stream)| {
            asked.cue = *cue;
            stream.as_ref()
        });
        LinkCheck {
            link: link.name.clone(),
            from,
            to,
            path,
            delay,
            loss,
            rate: stream.and_then(|stream| rate::check(stream, asked)),
            queue: stream.and_then(|stream| rate::check_queue(stream, asked)),
            late: before
                .zip(after)
                .map(|(before, after)| Lateness::between(before[at], after[at])),
        }
    })
}

/// Lets the schedules begin anew; the wall-clock nanoseconds at which they do.
fn cue(lab: &Lab) -> i64 {
    lab.cue();
    let raw = lab.cue_giver().last().unwrap_or_default().0;
    raw + clock::pair().offset()
}

/// With real-time priority, below the links' own: a stream with pauses tells no rate. Without the
/// permission as it is.
fn punctually<T>(work: impl FnOnce() -> T) -> T {
    if let Err(error) = sched::use_fifo(PRIORITY) {
        tracing::debug!("verify: {error}");
        return work();
    }
    let done = work();
    if let Err(error) = sched::use_normal() {
        tracing::warn!("verify: {error}");
    }
    done
}

fn in_order<T>([a, b]: [T; 2], direction: Direction) -> [T; 2] {
    match direction {
        Direction::AToB => [a, b],
        Direction::BToA => [b, a],
    }
}

fn counts(lab: &Lab, number: usize) -> Option<[DirectionCount; 2]> {
    let counters = lab.counters(number)?;
    Some(Direction::BOTH.map(|direction| counters.read(direction)))
}

/// How long a wire can take for one packet, as good as always.
fn longest(wire: &Wire) -> Span {
    wire.delay + wire.jitter.reach()
}
