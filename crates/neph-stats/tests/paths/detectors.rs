//! The detectors, asked for all flows of a world.

use neph_stats::{
    BaseLatency, ChangePenalty, Detection, Finding, FleetBase, FleetDetectionSettings,
    change_points, change_sample, window_minima,
};

use super::score::{Change, Score};
use super::world::{self, Plan, World};

pub(crate) const RULE: &str = "rule";
pub(crate) const GUARD: &str = "guard";
pub(crate) const AFTERWARDS: &str = "change points";

fn rule_alone(samples: &[(i64, i64)]) -> Vec<Change> {
    let mut base = BaseLatency::new(Detection::default());
    let mut changes = Vec::new();
    for (i, &(certain, sample)) in samples.iter().enumerate() {
        if let Some(shift) = base.push(sample)
            && let Some(before) = shift.before
        {
            changes.push(Change {
                at: samples[i - usize::from(shift.since)].0,
                certain,
                before,
                after: shift.after,
            });
        }
    }
    changes
}

fn guarded(flow_samples: &[Vec<(i64, i64)>]) -> Vec<Vec<Change>> {
    let mut fleet = FleetBase::new(FleetDetectionSettings::default());
    let mut changes = vec![Vec::new(); flow_samples.len()];
    let mut next = vec![0; flow_samples.len()];
    let mut take = |fleet: &mut FleetBase| {
        while let Some(decided) = fleet.next_detection() {
            let (flow, change) = (decided.flow, decided.detection);
            if change.finding == Finding::Change {
                // As they were measured: with what all flows have drifted by.
                let drifted = fleet.drifted();
                changes[flow as usize].push(Change {
                    at: change.at,
                    certain: change.certain,
                    before: change.before.expect("a change has a before") + drifted,
                    after: change.after + drifted,
                });
            }
        }
    };
    let mut round = 0;
    loop {
        let mut any = false;
        round += 1;
        for (number, samples) in (0_u32..).zip(flow_samples) {
            let flow = number as usize;
            while let Some(&(at, sample)) = samples.get(next[flow])
                && at < round * world::INTERVAL
            {
                fleet.push(number, at, sample);
                next[flow] += 1;
            }
            any |= next[flow] < samples.len();
        }
        take(&mut fleet);
        if !any {
            break;
        }
    }
    fleet.finish();
    take(&mut fleet);
    changes
}

/// Change points on window minima, after the fact.
fn afterwards(samples: &[(i64, i64)]) -> Vec<Change> {
    let detection = Detection::default();
    let window = detection.window();
    let values: Vec<i64> = samples.iter().map(|s| s.1).collect();
    let minima = window_minima(&values, window);
    let Ok(stretches) = change_points(&minima, ChangePenalty::of(&detection)) else {
        return Vec::new();
    };
    let changes = stretches.windows(2).map(|pair| {
        let (before, after) = (pair[0].level, pair[1].level);
        let first = change_sample(pair[1].from, window, after > before);
        let at = samples[first].0;
        Change {
            at,
            certain: at,
            before,
            after,
        }
    });
    changes
        .filter(|c| (c.after - c.before).abs() > detection.tolerance())
        .collect()
}

/// The source's rule alone, the guard, change points; or only one of them.
pub(crate) fn scores(plan: Plan, only: Option<&str>) -> Vec<(&'static str, Score)> {
    let world = World::new(plan);
    let flow_samples: Vec<_> = (0..plan.flows).map(|flow| world.samples(flow)).collect();
    let wanted = |name: &&str| only.is_none_or(|only| only == *name);
    let detectors = [RULE, GUARD, AFTERWARDS].into_iter().filter(wanted);
    let score = |name: &'static str| {
        let changes: Vec<Vec<Change>> = match name {
            RULE => flow_samples
                .iter()
                .map(|samples| rule_alone(samples))
                .collect(),
            GUARD => guarded(&flow_samples),
            _ => flow_samples
                .iter()
                .map(|samples| afterwards(samples))
                .collect(),
        };
        let mut score = Score::default();
        for ((flow, samples), changes) in (0..).zip(&flow_samples).zip(&changes) {
            score.add(&world, flow, samples, changes);
        }
        (name, score)
    };
    detectors.map(score).collect()
}
