//! What a detector told, held against what was.

use super::world::{INTERVAL, Jitter, MS, S, World};

/// A change that a detector told of one flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) at: i64,
    pub(crate) certain: i64,
    pub(crate) before: i64,
    pub(crate) after: i64,
}

/// A change that should be reported: more than the tolerance, and both stays have 4 samples or more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) from: i64,
    pub(crate) until: i64,
    /// The path's round trip, without what all flows drift by.
    pub(crate) path: i64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Score {
    pub(crate) wanted: usize,
    pub(crate) reported: usize,
    pub(crate) wrong: Vec<(u32, Change)>,
    pub(crate) missed: usize,
    pub(crate) misses: Vec<(u32, Wanted)>,
    pub(crate) delays: Vec<i64>,
}

const TOLERANCE: i64 = MS / 2;
const MIN_SAMPLES: usize = 4;

impl Score {
    pub(crate) fn precision(&self) -> f64 {
        share(self.reported - self.wrong.len(), self.reported)
    }

    pub(crate) fn recall(&self) -> f64 {
        share(self.wanted - self.missed, self.wanted)
    }

    /// A quantile of the delays in milliseconds.
    pub(crate) fn delay(&self, part: f64) -> i64 {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rank"
        )]
        let rank = (part * delays.len() as f64) as usize;
        delays
            .get(rank.min(delays.len().saturating_sub(1)))
            .map_or(0, |d| d / MS)
    }

    /// Adds what was reported in another world.
    pub(crate) fn merge(&mut self, other: Self) {
        self.wanted += other.wanted;
        self.reported += other.reported;
        self.wrong.extend(other.wrong);
        self.missed += other.missed;
        self.misses.extend(other.misses);
        self.delays.extend(other.delays);
    }

    /// Prints false reports and missed changes.
    pub(crate) fn list_faults(&self) {
        for (flow, change) in &self.wrong {
            println!("false {flow} {change:?}");
        }
        for (flow, change) in &self.misses {
            println!("missed {flow} {change:?}");
        }
    }

    /// Adds what was reported about one flow, in order of time.
    pub(crate) fn add(
        &mut self,
        world: &World,
        flow: u32,
        samples: &[(i64, i64)],
        changes: &[Change],
    ) {
        self.reported += changes.len();
        let mut earlier = 0;
        for change in changes {
            if !is_true(world, flow, earlier, change) {
                self.wrong.push((flow, *change));
            }
            earlier = change.at;
        }
        let mut used = vec![false; changes.len()];
        for wanted in wanted(world, flow, samples) {
            self.wanted += 1;
            let hit = changes.iter().enumerate().position(|(i, change)| {
                !used[i]
                    && (change.after - wanted.path - world.drifted(change.certain)).abs()
                        <= TOLERANCE
                    && change.at >= wanted.from - 2 * INTERVAL
                    && change.at <= wanted.until
            });
            match hit {
                None => {
                    self.missed += 1;
                    self.misses.push((flow, wanted));
                }
                Some(i) => {
                    used[i] = true;
                    self.delays.push(changes[i].certain - wanted.from);
                }
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts")]
fn share(part: usize, of: usize) -> f64 {
    if of == 0 {
        1.0
    } else {
        part as f64 / of as f64
    }
}

/// How far off a date may be: a second, or as many samples as it takes to tell two levels so far
/// apart with one error in a million. Before that many, jitter of standard deviation s moves the
/// likeliest date by n samples with a probability of Q(sqrt(n) d / 2 s).
fn date_margin(jitter: Jitter, apart: i64) -> i64 {
    if matches!(jitter, Jitter::Quiet | Jitter::Spikes) {
        return S;
    }
    let (deviation, millionth) = (3 * MS / 10, 95);
    let root = millionth * deviation / apart.abs().max(1);
    S.max(root * root * INTERVAL / 100)
}

/// Whether the flow did change to that level then, give or take [`date_margin`] (where a queue stood,
/// from its beginning to its end), and had been on the level before since what was reported last.
fn is_true(world: &World, flow: u32, earlier: i64, change: &Change) -> bool {
    let stays = &world.stays[flow as usize];
    let margin = date_margin(world.plan.jitter, change.after - change.before);
    let (mut reach, mut limit) = (change.at - margin, change.at + margin);
    for burst in world.bursts.iter().rev() {
        if burst.from <= change.at && burst.until() >= reach - S {
            reach = reach.min(burst.from - S);
            limit = limit.max(burst.until());
        }
    }
    let drifted = world.drifted(change.certain);
    let near = |path: usize, level: i64| (world.paths[path] + drifted - level).abs() <= TOLERANCE;
    let came = stays
        .iter()
        .skip(1)
        .any(|stay| near(stay.path, change.after) && (reach..=limit).contains(&stay.from));
    let was = stays.iter().enumerate().any(|(i, stay)| {
        let until = stays.get(i + 1).map_or(i64::MAX, |next| next.from);
        near(stay.path, change.before) && until >= earlier.min(reach) && stay.from <= change.at
    });
    came && was && (change.after - change.before).abs() > TOLERANCE
}

/// The changes that should be reported: stays with too few samples are passed over.
fn wanted(world: &World, flow: u32, samples: &[(i64, i64)]) -> Vec<Wanted> {
    let visits = &world.stays[flow as usize];
    let mut due: Vec<Wanted> = Vec::new();
    for (i, stay) in visits.iter().enumerate() {
        let until = visits.get(i + 1).map_or(i64::MAX, |next| next.from);
        let received =
            samples.partition_point(|s| s.0 < until) - samples.partition_point(|s| s.0 < stay.from);
        let path = world.paths[stay.path];
        if received < MIN_SAMPLES {
            continue;
        }
        match due.last_mut() {
            Some(last) if (last.path - path).abs() <= TOLERANCE => last.until = until,
            _ => due.push(Wanted {
                from: stay.from,
                until,
                path,
            }),
        }
    }
    due.drain(..1.min(due.len()));
    due
}
