//! A simulated recording: exchanges between two clocks of which the true offset is known at any moment.

use neph_stats::{FourTimestamps, OffsetLimit, OffsetLimits, Random};

pub(crate) const MILLI: f64 = 1e6;
pub(crate) const SECOND: f64 = 1e9;
/// How long a recording lasts, in nanoseconds.
pub(crate) const LENGTH: f64 = 600.0 * SECOND;
/// The highest level of a queue, in nanoseconds.
const MAX_QUEUE_DELAY: f64 = 20.0 * MILLI;

/// The peer's clock minus ours. All times are in nanoseconds of our clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks {
    pub(crate) offset: f64,
    pub(crate) rate: f64,
    /// When something happens: a step, a jump of the rate; or where a swing begins.
    pub(crate) moment: f64,
    pub(crate) step: f64,
    pub(crate) rate_jump: f64,
    /// A sinusoid of the rate, of this amplitude and with a period of 600 s.
    pub(crate) swing: f64,
}

impl Clocks {
    pub(crate) fn offset_at(&self, at: f64) -> f64 {
        let since = at - self.moment;
        let (step, bend) = if since >= 0.0 {
            (self.step, self.rate_jump * since)
        } else {
            (0.0, 0.0)
        };
        let turn = std::f64::consts::TAU / (600.0 * SECOND);
        let swung = self.swing / turn * (1.0 - (turn * since).cos());
        self.offset + self.rate * at + step + bend + swung
    }
}

/// What delays packets in one direction, beyond its least delay.
#[derive(Clone, Debug, Default)]
pub(crate) struct Direction {
    pub(crate) min_delay: f64,
    /// Mean of the exponential part.
    pub(crate) jitter: f64,
    /// From when until when a queue stands, and how high.
    pub(crate) queues: Vec<((f64, f64), f64)>,
    /// How often a packet is late, and by how much in the mean.
    pub(crate) spikes: (f64, f64),
}

impl Direction {
    /// Queues that come and go: for half a second to a minute each, as long without.
    pub(crate) fn add_queues(&mut self, random: &mut Random) {
        let mut from = 0.0;
        while from < LENGTH {
            from += SECOND * between(random, 2.0, 60.0);
            let until = from + SECOND * between(random, 0.5, 60.0);
            self.add_queue((from, until), random);
            from = until;
        }
    }

    /// A queue from one moment until another.
    pub(crate) fn add_queue(&mut self, time: (f64, f64), random: &mut Random) {
        self.queues.push((time, MAX_QUEUE_DELAY * random.unit()));
    }

    fn delay(&self, at: f64, random: &mut Random) -> f64 {
        let active_queues = self.queues.iter();
        let active_queues =
            active_queues.filter(|((from, until), _)| (*from..*until).contains(&at));
        let level = active_queues.map(|(_, level)| *level).fold(0.0, f64::max);
        let (often, late) = self.spikes;
        let spike = if random.unit() < often {
            exponential(random, late)
        } else {
            0.0
        };
        let queued = level * (0.7 + 0.3 * random.unit());
        self.min_delay + exponential(random, self.jitter) + queued + spike
    }
}

/// Limits of both kinds, ascending in time.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    at_most: Vec<OffsetLimit>,
    at_least: Vec<OffsetLimit>,
}

impl Recording {
    /// An exchange about each `interval`.
    pub(crate) fn of(
        clocks: &Clocks,
        directions: &[Direction; 2],
        interval: f64,
        random: &mut Random,
    ) -> Self {
        let mut recording = Self::default();
        let mut due = 0.0;
        while due < LENGTH {
            let sent = to_i64(due + 0.5 * interval * random.unit());
            let arrived = sent + to_i64(directions[0].delay(to_f64(sent), random));
            let read = arrived + to_i64(clocks.offset_at(to_f64(arrived)));
            let exchange = FourTimestamps {
                sent,
                arrived: read,
                answered: read,
                returned: arrived + to_i64(directions[1].delay(to_f64(arrived), random)),
            };
            let (upper, lower) = exchange.limits(0);
            recording.at_most.push(upper);
            recording.at_least.push(lower);
            due += interval;
        }
        recording
    }

    pub(crate) fn limits(&self) -> OffsetLimits<'_> {
        OffsetLimits {
            at_most: &self.at_most,
            at_least: &self.at_least,
        }
    }

    /// The shortest of its round trips, in nanoseconds.
    pub(crate) fn min_round_trip(&self) -> i64 {
        let round_trips = self.at_most.iter().map(|limit| limit.within);
        round_trips.min().unwrap_or(i64::MAX)
    }
}

fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * (1.0 - random.unit()).ln()
}

/// Between two numbers, as often in each octave.
pub(crate) fn between(random: &mut Random, min: f64, max: f64) -> f64 {
    min * (max / min).powf(random.unit())
}

#[expect(clippy::cast_possible_truncation, reason = "minutes in nanoseconds")]
pub(crate) fn to_i64(nanos: f64) -> i64 {
    nanos.round() as i64
}

#[expect(clippy::cast_precision_loss, reason = "minutes in nanoseconds")]
pub(crate) fn to_f64(nanos: i64) -> f64 {
    nanos as f64
}
