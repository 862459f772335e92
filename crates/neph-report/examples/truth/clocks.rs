//! Error bounds of clock offsets: how often the truth lies within them, and how wide they are.

mod recording;

use neph_stats::{ClockFit, ClockNature, ClockStep, Random, clock_course};

use crate::outcome::{Row, Section, Target};
use recording::{Clocks, Direction, LENGTH, MILLI, Recording, SECOND, between, to_f64, to_i64};

/// Moments that are asked, evenly, and as many more near to what happens.
const MOMENTS: i64 = 20;
const WITHIN_BOUND: &str = "truth within the bound at every moment";
const TIGHT_BOUND: &str = "bound at most 1.5 times half of the least round trip";
const CLAIMED: Target = Target::AtLeast(99.9);

/// What happens to the clocks and to the packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Steady,
    /// One message in 10 s.
    Rare,
    RateJump(f64),
    Swing(f64),
    /// A step, with no queues.
    Step,
    /// Queues without a step.
    Queues,
    /// A step that is smaller than the round trip, and queues.
    StepInQueues,
    /// The same where a queue stands while the clock is set.
    StepBehindQueue,
    /// A queue in one direction at the end, where moments are asked.
    QueueAtEnd,
    /// Delays longer than the time between messages.
    Reordering,
    StepInReordering,
}

const WORLDS: [(&str, Kind); 14] = [
    ("steady rate", Kind::Steady),
    ("steady rate, one message in 10 s", Kind::Rare),
    ("rate jumps by 0.2 ppm", Kind::RateJump(0.2e-6)),
    ("rate jumps by 0.5 ppm", Kind::RateJump(0.5e-6)),
    ("rate jumps by 1 ppm", Kind::RateJump(1e-6)),
    ("rate jumps by 2 ppm", Kind::RateJump(2e-6)),
    (
        "rate swings by 1 ppm either way in 600 s",
        Kind::Swing(1e-6),
    ),
    ("step, no queues", Kind::Step),
    ("queues of up to 20 ms, no step", Kind::Queues),
    (
        "queue in one direction at the end, no step",
        Kind::QueueAtEnd,
    ),
    (
        "step below the round trip, queues of up to 20 ms",
        Kind::StepInQueues,
    ),
    (
        "step below the round trip while a queue stands",
        Kind::StepBehindQueue,
    ),
    ("replies out of order, no step", Kind::Reordering),
    ("replies out of order, a step", Kind::StepInReordering),
];

impl Kind {
    const fn has_step(self) -> bool {
        matches!(
            self,
            Self::Step | Self::StepInQueues | Self::StepBehindQueue | Self::StepInReordering
        )
    }

    const fn has_queues(self) -> bool {
        matches!(
            self,
            Self::Queues | Self::StepInQueues | Self::StepBehindQueue
        )
    }

    const fn has_rate_changes(self) -> bool {
        matches!(self, Self::Rare | Self::RateJump(_) | Self::Swing(_))
    }

    const fn is_out_of_order(self) -> bool {
        matches!(self, Self::Reordering | Self::StepInReordering)
    }

    /// The least round trips of this world, in nanoseconds.
    const fn round_trips(self) -> (f64, f64) {
        if self.has_queues() {
            (2.0 * MILLI, 40.0 * MILLI)
        } else if self.has_rate_changes() {
            (0.1 * MILLI, 2.0 * MILLI)
        } else {
            (0.1 * MILLI, 40.0 * MILLI)
        }
    }

    /// One recording.
    fn recording(self, random: &mut Random) -> (Clocks, Recording) {
        let (shortest, longest) = self.round_trips();
        let round_trip = between(random, shortest, longest);
        let interval = match self {
            Self::Rare => 10.0 * SECOND,
            _ => between(random, 0.1, 0.5) * SECOND,
        };
        let share = 0.05 + 0.9 * random.unit();
        let mut directions = [share, 1.0 - share].map(|share| Direction {
            min_delay: share * round_trip,
            jitter: round_trip * between(random, 0.01, 0.5),
            ..Direction::default()
        });
        let clocks = self.clocks(round_trip, random);
        self.delay(&mut directions, (interval, clocks.moment), random);
        let recording = Recording::of(&clocks, &directions, interval, random);
        (clocks, recording)
    }

    fn clocks(self, round_trip: f64, random: &mut Random) -> Clocks {
        let sign: f64 = if random.unit() < 0.5 { -1.0 } else { 1.0 };
        let mut clocks = Clocks {
            offset: SECOND * random.unit(),
            rate: 1e-4 * (random.unit() - 0.5),
            moment: LENGTH * (0.1 + 0.8 * random.unit()),
            ..Clocks::default()
        };
        match self {
            Self::RateJump(by) => clocks.rate_jump = sign * by,
            Self::Swing(by) => clocks.swing = by,
            Self::StepInQueues | Self::StepBehindQueue => {
                let max = f64::min(15.0 * MILLI, 0.95 * round_trip);
                clocks.step = sign * between(random, 0.5 * MILLI, max);
            }
            Self::Step | Self::StepInReordering => {
                clocks.step = sign * round_trip * between(random, 0.25, 20.0);
            }
            Self::QueueAtEnd => clocks.moment = LENGTH,
            Self::Steady | Self::Rare | Self::Queues | Self::Reordering => {}
        }
        clocks
    }

    /// Queues and late packets of this world; what happens to the clocks happens at `moment`.
    fn delay(
        self,
        directions: &mut [Direction; 2],
        (interval, moment): (f64, f64),
        random: &mut Random,
    ) {
        if self.has_queues() {
            for direction in directions.iter_mut() {
                direction.add_queues(random);
            }
        }
        if self == Self::StepBehindQueue {
            // In one direction, in the other, or in both.
            let kind = random.below(3);
            for (index, direction) in directions.iter_mut().enumerate() {
                if kind == 2 || kind == index {
                    let before = SECOND * between(random, 0.5, 60.0);
                    let behind = SECOND * between(random, 0.5, 60.0);
                    direction.add_queue((moment - before, moment + behind), random);
                }
            }
        }
        if self == Self::QueueAtEnd {
            let long = SECOND * between(random, 1.0, 60.0);
            directions[random.below(2)].add_queue((LENGTH - long, 2.0 * LENGTH), random);
        }
        if self.is_out_of_order() {
            for direction in directions {
                let late = interval * between(random, 0.5, 5.0);
                direction.spikes = (between(random, 0.02, 0.4), late);
            }
        }
    }
}

/// What was counted over the recordings of one world.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    recordings: usize,
    /// Recordings with the truth inside at every moment.
    inside: usize,
    moments: usize,
    answers: usize,
    tight_bounds: usize,
    /// Recordings with no more steps than were set, and with that one.
    without_extra_steps: usize,
    steps_found: usize,
}

impl Count {
    fn add(&mut self, kind: Kind, seed: u64) {
        let mut random = Random::new(seed);
        let (clocks, recording) = kind.recording(&mut random);
        let nature = ClockNature::default();
        let course = clock_course(recording.limits(), nature).expect("limits in order");
        let min = recording.min_round_trip() / 2;
        let mut is_inside = true;
        for (index, at) in moments(&clocks, &mut random).into_iter().enumerate() {
            self.moments += 1;
            let Some(fit) = course.at(at) else {
                continue;
            };
            self.answers += 1;
            self.tight_bounds += usize::from(fit.bound <= min + min / 2);
            // It asks the other once more, which takes its time.
            let likeliest = (index % 4 == 0).then(|| course.likeliest_at(at)).flatten();
            is_inside &= contains_true_offset(&fit, &clocks)
                && likeliest.is_none_or(|fit| contains_true_offset(&fit, &clocks));
        }
        self.recordings += 1;
        self.inside += usize::from(is_inside);
        let steps = course.steps();
        self.without_extra_steps += usize::from(steps.len() <= usize::from(kind.has_step()));
        let is_found = |step: &ClockStep| (step.by - to_i64(clocks.step)).abs() <= step.bound;
        self.steps_found += usize::from(steps.len() == 1 && steps.iter().all(is_found));
    }

    fn rows(&self, world: &str, kind: Kind) -> Vec<Row> {
        let row = |quantity: &str, hits: usize, cases: usize, target: Target| Row {
            world: world.to_owned(),
            quantity: quantity.to_owned(),
            hits,
            cases,
            target,
        };
        let sets = self.recordings;
        let (moments, answers) = (self.moments, self.answers);
        let mut rows = vec![
            row(WITHIN_BOUND, self.inside, sets, CLAIMED),
            row("moments with an answer", answers, moments, Target::Shown),
            row(TIGHT_BOUND, self.tight_bounds, answers, Target::Shown),
            row(
                "no step but the one that was set",
                self.without_extra_steps,
                sets,
                Target::Shown,
            ),
        ];
        if kind.has_step() {
            rows.push(row(
                "that step is found",
                self.steps_found,
                sets,
                Target::Shown,
            ));
        }
        rows
    }
}

/// Evenly over the recording, and as many more near to what happens: most of them very near.
fn moments(clocks: &Clocks, random: &mut Random) -> Vec<i64> {
    let last = to_i64(LENGTH);
    let even = (0..MOMENTS).map(|index| index * (last / MOMENTS));
    let near = (0..MOMENTS).map(|index| {
        let away = SECOND * between(random, 0.01, 100.0);
        let side = if index % 2 == 0 { -1.0 } else { 1.0 };
        to_i64(clocks.moment + side * away).clamp(0, last)
    });
    even.chain(near).collect()
}

fn contains_true_offset(fit: &ClockFit, clocks: &Clocks) -> bool {
    let truth = to_i64(clocks.offset_at(to_f64(fit.at)));
    (fit.offset - truth).abs() <= fit.bound
}

pub(crate) fn clock_section(reports: u64) -> Section {
    let mut rows = Vec::new();
    for (world, kind) in WORLDS {
        let mut count = Count::default();
        for seed in 0..reports * 3 / 2 {
            count.add(kind, seed);
        }
        rows.extend(count.rows(world, kind));
    }
    Section {
        about: "Recordings of 10 minutes, two to ten messages a second unless another rate is named, least round \
                trips of 0.1 to 40 ms (with queues from 2 ms on, about rates up to 2 ms), of which 5 to 95 % are \
                the forward path. A recording counts as inside if the truth lies within the bound at each of 40 \
                moments, half of them near to what happens.",
        rows,
    }
}
