//! Where each flow was when, and a few flows' messages.

use neph_flows::{
    Direction, Dissected, DissectedOutcome, DissectedSample, Evidence, FlowHistory, FlowTally,
    LastMessages, PathChange, Segment,
};
use neph_model::{Slot, Span};
use neph_stats::Random;

use super::{FleetModel, Path, PathStability, exponential, paths, seconds};

pub(super) fn flows(fleet_model: &FleetModel) -> (Vec<FlowHistory>, Vec<PathChange>) {
    let mut random = fleet_model.random();
    let mut changes = Vec::new();
    let flows = (0..fleet_model.flows)
        .map(|slot| {
            let paths = paths(slot % fleet_model.pairs);
            let flow = flow(fleet_model, slot, &paths, &mut random);
            changes.extend(path_changes(&flow, &mut random));
            flow
        })
        .collect();
    changes.sort_by_key(|change: &PathChange| (change.at, change.slot));
    (flows, changes)
}

fn flow(fleet_model: &FleetModel, slot: u32, paths: &[Path], random: &mut Random) -> FlowHistory {
    let jitter = Span::from_nanos(i64::try_from(random.below(300_000)).unwrap() - 150_000);
    let has_one_path = paths.len() == 1;
    #[expect(clippy::cast_precision_loss, reason = "days")]
    let end = fleet_model.seconds as f64;
    let mut at = 0.8;
    let mut path = pick_path(paths, random);
    // The first stay has been going on for a while: no burst of early moves.
    let mut is_first_stay = true;
    let mut segments = Vec::new();
    while at < end {
        let mut stay = stay(fleet_model, (path, paths.len()), random);
        if std::mem::take(&mut is_first_stay) {
            stay += exponential(random, 600.0);
        }
        let until = if has_one_path {
            end
        } else {
            (at + stay).min(end)
        };
        segments.push(Segment {
            from: seconds(at),
            until: seconds(until),
            base: paths[path].base + jitter,
            class: Some(u16::try_from(path).unwrap()),
        });
        at = until;
        let before = path;
        while path == before && !has_one_path {
            path = pick_path(paths, random);
        }
    }
    FlowHistory {
        slot: Slot(slot),
        source_port: u16::try_from(10_000 + slot).unwrap(),
        segments,
        tally: FlowTally {
            replies: u64::try_from(fleet_model.seconds * 5 - fleet_model.seconds / 40).unwrap(),
            lost: u64::try_from(fleet_model.seconds / 40).unwrap(),
            lost_forward: u64::try_from(fleet_model.seconds / 60).unwrap(),
            ..FlowTally::default()
        },
        last: LastMessages { lost: 0, of: 63 },
    }
}

/// Low paths shed their flows sooner: traffic engineering by shortest path first.
fn stay(fleet_model: &FleetModel, (path, paths): (usize, usize), random: &mut Random) -> f64 {
    let rank =
        f64::from(u32::try_from(path + 1).unwrap()) / f64::from(u32::try_from(paths).unwrap());
    match fleet_model.stability {
        PathStability::Stable => exponential(random, 20_000.0),
        PathStability::Unstable if random.unit() < 0.4 => 0.8 + exponential(random, 4.0),
        PathStability::Unstable => 10.0 + exponential(random, 1400.0 * rank),
    }
}

fn pick_path(paths: &[Path], random: &mut Random) -> usize {
    let total_weight: f64 = paths.iter().map(|path| path.weight).sum();
    let mut remaining = random.unit() * total_weight;
    for (index, path) in paths.iter().enumerate() {
        remaining -= path.weight;
        if remaining <= 0.0 {
            return index;
        }
    }
    paths.len() - 1
}

fn path_changes(flow: &FlowHistory, random: &mut Random) -> Vec<PathChange> {
    flow.segments
        .windows(2)
        .map(|pair| {
            let is_shorter = pair[1].base < pair[0].base;
            PathChange {
                slot: flow.slot,
                source_port: flow.source_port,
                at: pair[1].from,
                reported: pair[1].from + Span::from_millis(600),
                before: pair[0].base,
                after: pair[1].base,
                evidence: Evidence {
                    reordered: is_shorter && random.unit() < 0.7,
                    ttl: random.unit() < 0.5,
                    trace: (random.unit() < 0.1).then_some(true),
                    direction: match random.below(10) {
                        0..6 => Some(Direction::Forward),
                        6..9 => Some(Direction::Reverse),
                        _ => None,
                    },
                },
            }
        })
        .collect()
}

/// Four minutes or less of the three flows with the most changes.
pub(super) fn dissected(
    fleet_model: &FleetModel,
    flows: &[FlowHistory],
    changes: &[PathChange],
) -> Vec<Dissected> {
    let mut ranked: Vec<&FlowHistory> = flows.iter().collect();
    ranked.sort_by_key(|flow| std::cmp::Reverse(flow.segments.len()));
    let mut random = Random::new(5);
    let most_changed = ranked.into_iter().take(3);
    most_changed
        .map(|flow| {
            let own_changes = changes.iter().filter(|change| change.slot == flow.slot);
            let first = own_changes.map(|change| change.at).min();
            let from = first.map_or(0, |at| (at.nanos() / 1_000_000_000 - 30).max(0));
            let last = (from + 240).min(fleet_model.seconds);
            let samples = (from * 5..last * 5).filter_map(|tick| sample(flow, tick, &mut random));
            Dissected {
                slot: flow.slot,
                source_port: flow.source_port,
                samples: samples.collect(),
            }
        })
        .collect()
}

#[expect(clippy::cast_possible_truncation, reason = "microseconds")]
fn sample(flow: &FlowHistory, tick: i64, random: &mut Random) -> Option<DissectedSample> {
    let sent = seconds(0.0) + Span::from_millis(tick * 200);
    let index = flow
        .segments
        .partition_point(|segment| segment.from <= sent);
    let base = flow.segments[index.checked_sub(1)?].base;
    let is_shorter = index >= 2 && base < flow.segments[index - 2].base;
    let is_first_message = sent - flow.segments[index - 1].from < Span::from_millis(200);
    // A queue fills and drains for twelve seconds of each minute and a half.
    let phase = f64::from(u32::try_from(tick % 450).unwrap()) / 5.0 - 40.0;
    let queue = if (0.0..12.0).contains(&phase) {
        6000.0 * (phase / 12.0 * std::f64::consts::PI).sin()
    } else {
        0.0
    };
    let noise = exponential(random, 90.0) + queue * (0.8 + 0.2 * random.unit());
    let spike = if random.unit() < 0.004 {
        4000.0 * random.unit()
    } else {
        0.0
    };
    let round_trip = base + Span::from_micros((noise + spike) as i64);
    let outcome = if random.unit() < 0.003 {
        DissectedOutcome::Lost
    } else {
        let reordered = (is_shorter && is_first_message).then_some(Direction::Forward);
        DissectedOutcome::Reply {
            round_trip,
            reordered,
        }
    };
    Some(DissectedSample { sent, outcome })
}
