//! Compares the requested behaviour of each link with measurements from outside the engine.
//!
//! Owns the order of exchanges, and the results per link. Timed UDP packets travel between the sites, with
//! kernel timestamps at both interfaces. Both use the same clock, so one-way delays are exact. [`replay`]
//! calculates the expected delays of the same packets. Other traffic on a link disturbs the measurement.

mod check;
mod delay;
mod duration;
mod end;
mod exchange;
mod loss;
mod ports;
mod rate;
mod replay;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use neph_model::Span;
use neph_sys::{clock, sched};

use crate::counters::DirectionCount;
use crate::direction::Direction;
use crate::gate::{Wire, gates_of_link};
use crate::lab::{Lab, LabError};
use crate::topology::Link;
use end::{LinkEnd, PROBE_BYTES};
use exchange::WaitLimit;
use replay::RequestedLink;

pub use check::{Lateness, LinkCheck, QuantityCheck, UnmeasuredPath, Verified};
pub use delay::{DelayCheck, DelayQuantiles, JitterCheck};
pub use duration::verification_duration;
pub use loss::LossCheck;

/// Tolerance of a median delay: far above the error of an idle host (below 20 us), far below relevant values.
/// CPU steal affects p99, which is reported without a verdict.
const DELAY_TOLERANCE: Span = Span::from_micros(50);
/// 99 % of a normal distribution are within this many deviations.
const Z99: f64 = 2.576;
/// Maximum time from one end to the other that the kernel adds to the link's delay.
const MAX_KERNEL_DELAY: Span = Span::from_millis(100);
/// Additional time to wait for packets with a schedule, because its delays are not known in advance.
const MAX_SCHEDULE_WAIT: Span = Span::from_secs(3);
/// Priority of the sender: below that of a link.
const SENDER_PRIORITY: u8 = 40;

/// Measures both directions of every link, one link after the other; see [`verify_link`].
///
/// # Errors
/// A site's interface cannot be opened. A link out of tolerance is no error.
pub fn verify(lab: &Lab) -> Result<Vec<LinkCheck>, LabError> {
    let mut checks = Vec::new();
    for number in 0..lab.topology().links.len() {
        checks.extend(verify_link(lab, number)?);
    }
    Ok(checks)
}

/// Like [`verify_until`], to the end; returns the checks.
///
/// # Errors
/// As [`verify`].
///
/// # Panics
/// There is no link with this index.
pub fn verify_link(lab: &Lab, number: usize) -> Result<Vec<LinkCheck>, LabError> {
    Ok(verify_until(lab, number, &AtomicBool::new(false))?.checks)
}

/// Measures both directions of the link with this index in the topology, each path separately; for the
/// duration see [`verification_duration`]. Restarts the schedules; the verdict is for their first seconds.
///
/// A link that fails, or whose rate is unknown, is measured a second time, which decides. One correct link in
/// a hundred fails at random, and a busy host fails many, but not twice. When `stop` is set it ends soon and
/// returns the complete measurements.
///
/// # Errors
/// As [`verify`].
///
/// # Panics
/// There is no link with this index.
pub fn verify_until(lab: &Lab, number: usize, stop: &AtomicBool) -> Result<Verified, LabError> {
    let requested = &lab.topology().links[number];
    let first = measure_link(lab, requested, number, stop)?;
    let shapes = [&requested.a_to_b, &requested.b_to_a];
    let wanted_rates = shapes
        .iter()
        .filter(|shape| exchange::can_stream(shape))
        .count();
    let measured_rates = first.checks.iter().filter(|check| check.rate.is_some());
    let is_passed = |check: &LinkCheck| check.is_ok() && !check.is_late();
    if first.checks.iter().all(is_passed) && measured_rates.count() >= wanted_rates {
        return Ok(first);
    }
    let second = measure_link(lab, requested, number, stop)?;
    let is_complete = second.checks.len() == first.checks.len();
    Ok(if is_complete { second } else { first })
}

/// Measures both directions of the link with index `number` once and compares them with `requested` instead
/// of the lab's topology.
///
/// # Errors
/// As [`verify`].
///
/// # Panics
/// There is no link with this index.
pub fn verify_against(
    lab: &Lab,
    requested: &Link,
    number: usize,
) -> Result<Vec<LinkCheck>, LabError> {
    Ok(measure_link(lab, requested, number, &AtomicBool::new(false))?.checks)
}

fn measure_link(
    lab: &Lab,
    requested: &Link,
    number: usize,
    stop: &AtomicBool,
) -> Result<Verified, LabError> {
    let shapes = [requested.a_to_b.clone(), requested.b_to_a.clone()];
    let gates = gates_of_link(&shapes, &requested.schedule, lab.link_seed(number));
    let mut ends = LinkEnd::both_ends(lab, number)?;
    let ports = [0, 1].map(|side| ports::find_ports(&mut ends[side], &gates[side]));
    let rounds = ports.iter().map(BTreeMap::len).max();
    let mut verified = Verified {
        unmeasured_paths: ports::unmeasured_paths(
            lab,
            number,
            [0, 1].map(|side| (&shapes[side], &ports[side])),
        ),
        ..Verified::default()
    };
    let ports = ports.map(|ports| ports.into_values().collect::<Vec<u16>>());
    for round in 0..rounds.unwrap_or_default() {
        let flows = [0, 1].map(|side| {
            let port = ports[side].get(round).or_else(|| ports[side].last());
            port.and_then(|port| ends[side].set_source_port(*port))
        });
        let requested = [0, 1].map(|side| RequestedLink {
            shape: &shapes[side],
            gate: gates[side].clone(),
            flow: flows[side],
            has_schedule: requested.schedule.iter().any(|change| {
                let directions = Direction::BOTH.map(Direction::index);
                change
                    .direction
                    .is_none_or(|only| only.index() == directions[side])
            }),
            cue: 0,
        });
        let Some(measured) = measure_round(
            LinkMeasurement { lab, number, stop },
            &mut ends,
            requested,
            round,
        ) else {
            break;
        };
        let has_flow = ports.iter().map(|ports| round < ports.len());
        let link_checks = measured.into_iter().zip(has_flow);
        let checks = link_checks.filter_map(|(check, has_flow)| has_flow.then_some(check));
        verified.checks.extend(checks);
    }
    let link = &lab.topology().links[number];
    let a = &lab.topology().sites[link.a].name;
    verified.checks.sort_by_key(|check| check.from != *a);
    Ok(verified)
}

/// The link that is measured, until it is stopped.
#[derive(Clone, Copy)]
struct LinkMeasurement<'a> {
    lab: &'a Lab,
    number: usize,
    stop: &'a AtomicBool,
}

/// One exchange in both directions for one flow; streams with the first flows only, since paths share rate
/// and queue. `None` if it was stopped: a partial measurement has no verdict.
fn measure_round(
    link_measurement: LinkMeasurement<'_>,
    ends: &mut [LinkEnd; 2],
    mut requested: [RequestedLink<'_>; 2],
    round: usize,
) -> Option<[LinkCheck; 2]> {
    let LinkMeasurement { lab, number, stop } = link_measurement;
    let shapes = [requested[0].shape, requested[1].shape];
    let wires = [0, 1].map(|side| requested[side].wire().clone());
    let before = read_counts(lab, number);
    let has_schedule = requested.iter().any(|requested| requested.has_schedule);
    let wait_limit = WaitLimit {
        extra_wait: max_wait(has_schedule),
        stop,
    };
    let mut cues = [0; 2];
    let (probes, streams) = with_real_time_priority(|| {
        cues[0] = restart_schedules(lab);
        let probes = exchange::exchange_probes(ends, shapes, [&wires[0], &wires[1]], wait_limit);
        let streams = [0, 1].map(|side| {
            let needs_stream = round == 0 && shapes[side].rate.is_some();
            needs_stream.then(|| {
                let cue = restart_schedules(lab);
                (
                    cue,
                    exchange::send_stream(ends, side, shapes[side], &wires[side], wait_limit),
                )
            })
        });
        (probes, streams)
    });
    if wait_limit.is_over() {
        return None;
    }
    let after = read_counts(lab, number);
    let checks = Direction::BOTH.map(|direction| {
        let sender = direction.index();
        let [from, to] = sites_of(lab, number, direction);
        let requested = &mut requested[sender];
        requested.cue = cues[0];
        let (delay, loss) = (
            delay::check(&probes[sender], requested),
            loss::check(&probes[sender], requested),
        );
        let path = requested.shape.paths.get(requested.path_index());
        let path = path.map(|path| path.name.clone());
        let stream = streams[sender].as_ref().and_then(|(cue, stream)| {
            requested.cue = *cue;
            stream.as_ref()
        });
        let (rate, queue) = stream.map_or((None, None), |stream| rate::check(stream, requested));
        LinkCheck {
            link: lab.topology().links[number].name.clone(),
            from,
            to,
            path,
            delay,
            loss,
            rate,
            queue,
            late: before
                .zip(after)
                .map(|(before, after)| Lateness::between(before[sender], after[sender])),
        }
    });
    Some(checks)
}

/// Restarts the schedules; returns their wall-clock time in nanoseconds.
fn restart_schedules(lab: &Lab) -> i64 {
    lab.cue();
    let raw = lab.shared_cue().last().unwrap_or_default().0;
    raw + clock::pair().offset()
}

/// Runs `work` with real-time priority below that of the links, if permitted: a stream with pauses shows no
/// rate.
fn with_real_time_priority<T>(work: impl FnOnce() -> T) -> T {
    if let Err(error) = sched::use_fifo(SENDER_PRIORITY) {
        tracing::debug!("verify: {error}");
        return work();
    }
    let result = work();
    if let Err(error) = sched::use_normal() {
        tracing::warn!("verify: {error}");
    }
    result
}

/// The sending and the receiving site of this direction of a link.
fn sites_of(lab: &Lab, number: usize, direction: Direction) -> [String; 2] {
    let link = &lab.topology().links[number];
    let ends = match direction {
        Direction::AToB => [link.a, link.b],
        Direction::BToA => [link.b, link.a],
    };
    ends.map(|site| lab.topology().sites[site].name.clone())
}

fn read_counts(lab: &Lab, number: usize) -> Option<[DirectionCount; 2]> {
    let counters = lab.counters(number)?;
    Some(Direction::BOTH.map(|direction| counters.read(direction)))
}

/// The maximum delay of a wire for one packet, with very high probability.
fn max_delay(wire: &Wire) -> Span {
    wire.delay + wire.jitter.max_deviation()
}

/// Additional time to wait for packets.
fn max_wait(has_schedule: bool) -> Span {
    MAX_KERNEL_DELAY
        + if has_schedule {
            MAX_SCHEDULE_WAIT
        } else {
            Span::ZERO
        }
}
