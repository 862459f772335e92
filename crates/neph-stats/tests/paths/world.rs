//! A world of paths that can be seen: delays, weights, reshuffles at known times, jitter, queues,
//! loss. Seeded; no input or output; time is an argument.

use std::f64::consts::TAU;

use neph_stats::Random;

pub(crate) const US: i64 = 1000;
pub(crate) const MS: i64 = 1000 * US;
pub(crate) const S: i64 = 1000 * MS;

/// How single samples differ from what path and queue say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Jitter {
    /// Only what hosts do: some 10 us, and a millisecond in a thousand samples.
    Quiet,
    /// Even within +-0.3 ms.
    Uniform,
    /// Normal, standard deviation 0.3 ms.
    Normal,
    /// One-sided, mean 0.3 ms.
    Exponential,
    /// Quiet, but for one sample in twenty that is up to 20 ms late.
    Spikes,
    /// One-sided with a heavy tail (Lomax, exponent 2.5), mean 0.3 ms.
    Pareto,
}

/// Who waits in the queues that build up now and then.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Queues {
    None,
    /// All flows: the queue is in front of the paths.
    Shared,
    /// The flows of one path, another each time.
    OnePath,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) flows: u32,
    pub(crate) length: i64,
    pub(crate) jitter: Jitter,
    pub(crate) queues: Queues,
    /// The smallest and largest difference of neighbouring paths.
    pub(crate) gaps: (i64, i64),
    /// All flows drift by so much up and down, in [`DRIFT_TURN`].
    pub(crate) drift: i64,
    pub(crate) seed: u64,
}

/// A queue that grows, stands and drains.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Burst {
    pub(crate) from: i64,
    grows: i64,
    stands: i64,
    drains: i64,
    height: i64,
    path: Option<usize>,
}

impl Burst {
    pub(crate) fn until(&self) -> i64 {
        self.from + self.grows + self.stands + self.drains
    }

    fn depth(&self, at: i64) -> i64 {
        let part = |spent: i64, of: i64| self.height * spent / of;
        let spent = at - self.from;
        if spent < 0 {
            0
        } else if spent < self.grows {
            part(spent, self.grows)
        } else if spent < self.grows + self.stands {
            self.height
        } else {
            part((self.until() - at).max(0), self.drains)
        }
    }
}

/// A time that a flow spends on a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stay {
    pub(crate) from: i64,
    pub(crate) path: usize,
}

/// What happens, all of it known beforehand.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    /// Round trip of each path, lowest first.
    pub(crate) paths: Vec<i64>,
    pub(crate) bursts: Vec<Burst>,
    /// Where each flow was when.
    pub(crate) stays: Vec<Vec<Stay>>,
}

/// How long a drift takes from the middle up, down and back.
const DRIFT_TURN: i64 = 600 * S;

pub(crate) const INTERVAL: i64 = 200 * MS;
const LOSS: f64 = 0.002;

fn between(random: &mut Random, low: i64, high: i64) -> i64 {
    let width = usize::try_from(high - low).expect("ranges ascend");
    low + i64::try_from(random.below(width + 1)).expect("it is below the width")
}

#[expect(clippy::cast_possible_truncation, reason = "nanoseconds of noise")]
fn nanos(ms: f64) -> i64 {
    (ms * 1e6) as i64
}

#[expect(clippy::cast_precision_loss, reason = "times of hours")]
fn waiting(random: &mut Random, mean: i64) -> i64 {
    nanos(-(1.0 - random.unit()).ln() * mean as f64 / 1e6)
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let mut random = Random::new(plan.seed);
        let mut paths = vec![between(&mut random, 60 * MS, 90 * MS)];
        for _ in 0..3 {
            let gap = between(&mut random, plan.gaps.0, plan.gaps.1);
            paths.push(paths[paths.len() - 1] + gap);
        }
        let bursts = bursts(&plan, &mut random);
        let stays = stays(&plan, &mut random);
        Self {
            plan,
            paths,
            bursts,
            stays,
        }
    }

    /// By how much all flows have drifted at a moment.
    #[expect(clippy::cast_precision_loss, reason = "times of hours")]
    pub(crate) fn drifted(&self, at: i64) -> i64 {
        let turns = at as f64 / DRIFT_TURN as f64;
        nanos(self.plan.drift as f64 / 1e6 * (TAU * turns).sin())
    }

    /// Everything that a flow measures: when sent, and the round trip. Lost messages are missing.
    pub(crate) fn samples(&self, flow: u32) -> Vec<(i64, i64)> {
        let seed = self.plan.seed ^ (u64::from(flow) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = Random::new(seed);
        let offset = INTERVAL * i64::from(flow) / i64::from(self.plan.flows);
        let stays = &self.stays[flow as usize];
        let (mut stay, mut burst) = (0, 0);
        let mut samples = Vec::new();
        let mut at = offset;
        while at < self.plan.length {
            while stays.get(stay + 1).is_some_and(|next| next.from <= at) {
                stay += 1;
            }
            while self.bursts.get(burst).is_some_and(|b| b.until() < at) {
                burst += 1;
            }
            let path = stays[stay].path;
            let queue = self.bursts.get(burst).map_or(0, |b| {
                let hit = b.path.is_none_or(|hit| hit == path);
                if hit { b.depth(at) } else { 0 }
            });
            let noise = noise(self.plan.jitter, queue, &mut random);
            let lost = random.unit() < if queue > 0 { 5.0 * LOSS } else { LOSS };
            if !lost {
                let drifted = self.drifted(at);
                samples.push((at, self.paths[path] + drifted + queue + noise));
            }
            at += INTERVAL;
        }
        samples
    }
}

fn noise(jitter: Jitter, queue: i64, random: &mut Random) -> i64 {
    let u = 1.0 - random.unit();
    let own = match jitter {
        Jitter::Spikes if u < 0.05 => 20.0 * random.unit(),
        Jitter::Quiet | Jitter::Spikes => 0.0,
        Jitter::Uniform => 0.6 * u - 0.3,
        Jitter::Normal => 0.3 * (-2.0 * u.ln()).sqrt() * (TAU * random.unit()).cos(),
        Jitter::Exponential => -0.3 * u.ln(),
        Jitter::Pareto => 0.45 * (u.powf(-1.0 / 2.5) - 1.0),
    };
    let host = -0.01 * (1.0 - random.unit()).ln();
    let stolen = if random.unit() < 0.001 {
        5.0 * random.unit()
    } else {
        0.0
    };
    // A queue that stands is full to a packet or two.
    let filling = if queue > 0 { 0.2 * random.unit() } else { 0.0 };
    nanos(own + host + stolen + filling)
}

fn bursts(plan: &Plan, random: &mut Random) -> Vec<Burst> {
    let mut bursts = Vec::new();
    if plan.queues == Queues::None {
        return bursts;
    }
    let mut at = 10 * S;
    loop {
        at += between(random, 10 * S, 60 * S);
        let burst = Burst {
            from: at,
            grows: between(random, 300 * MS, 4 * S),
            stands: between(random, 200 * MS, 10 * S),
            drains: between(random, 300 * MS, 4 * S),
            height: between(random, 15 * MS, 20 * MS),
            path: (plan.queues == Queues::OnePath).then(|| random.below(4)),
        };
        at = burst.until();
        if at >= plan.length {
            return bursts;
        }
        bursts.push(burst);
    }
}

/// Reshuffles: new splitting ratios, by ranges of the hash (some flows move) or by a new hash (most
/// do). After four in ten the next follows within 10 s, as the source saw; after one in six within
/// some samples. Each flow's way over 5 ms, as routers are not updated at once.
fn stays(plan: &Plan, random: &mut Random) -> Vec<Vec<Stay>> {
    let mut hashes: Vec<f64> = (0..plan.flows).map(|_| random.unit()).collect();
    let mut weights = [0.35, 0.3, 0.2, 0.15];
    let place = |hash: f64, weights: &[f64; 4]| {
        let mut sum = 0.0;
        weights
            .iter()
            .position(|w| {
                sum += w;
                hash < sum
            })
            .unwrap_or(3)
    };
    let mut stays: Vec<Vec<Stay>> = hashes
        .iter()
        .map(|&hash| {
            vec![Stay {
                from: 0,
                path: place(hash, &weights),
            }]
        })
        .collect();
    let mut at = 10 * S;
    loop {
        at += match random.unit() {
            u if u < 0.17 => between(random, 850 * MS, 2 * S),
            u if u < 0.4 => between(random, 2 * S, 10 * S),
            _ => 10 * S + waiting(random, 30 * S),
        };
        if at >= plan.length {
            return stays;
        }
        let raw: [f64; 4] = std::array::from_fn(|_| 0.05 + random.unit());
        let sum: f64 = raw.iter().sum();
        weights = raw.map(|w| w / sum);
        if random.unit() < 0.3 {
            hashes.fill_with(|| random.unit());
        }
        for (flow, &hash) in stays.iter_mut().zip(&hashes) {
            let path = place(hash, &weights);
            if flow[flow.len() - 1].path != path {
                let from = at + between(random, 0, 5 * MS);
                flow.push(Stay { from, path });
            }
        }
    }
}
