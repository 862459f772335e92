//! Peers with known clocks, over paths with known delays. The reported results are true, and the error of the
//! formula for comparison is the expected one.

use neph_model::{FlowIndex, Marks, Outcome, Seq};

use super::*;
use crate::clocks::course::Course;
use crate::clocks::steady_time_conversion::SteadyTimeConversion;

const MICRO: i64 = 1_000;
const MILLI: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;
/// Both machines were set to the right time at about this hour.
const EPOCH: i64 = 1_795_000_000 * SECOND;

/// Pseudo-random numbers (Steele, Lea and Flood's `SplitMix64`).
struct RandomNumbers(u64);

impl RandomNumbers {
    /// From 0 up to 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let high = u32::try_from((mixed ^ mixed >> 31) >> 32).expect("32 bits");
        f64::from(high) / 4_294_967_296.0
    }

    /// Exponentially distributed with this mean.
    fn exponential(&mut self, mean: i64) -> i64 {
        let seconds = -Span::from_nanos(mean).secs_f64() * (1.0 - self.uniform()).ln();
        nanos(seconds)
    }
}

fn nanos(seconds: f64) -> i64 {
    i64::try_from(std::time::Duration::from_secs_f64(seconds.max(0.0)).as_nanos()).expect("short")
}

/// A peer and the path to it. Our raw clock is true; our wall clock shows [`EPOCH`] at its 0.
#[derive(Debug, Clone, Copy)]
struct Peer {
    /// Raw clock minus ours at 0, in nanoseconds.
    initial_raw_offset: i64,
    /// How much faster it runs, in parts per billion.
    drift_ppb: i64,
    /// Wall clock minus ours, in nanoseconds, until it is set by `wall_step` after 30 s.
    initial_wall_offset: i64,
    wall_step: i64,
    /// The least delay of each direction, and the mean queue above it, in nanoseconds.
    min_delays: [i64; 2],
    mean_queue_delays: [i64; 2],
}

impl Peer {
    const UNLOADED: Self = Self {
        initial_raw_offset: 77 * SECOND,
        drift_ppb: 0,
        initial_wall_offset: 0,
        wall_step: 0,
        min_delays: [500 * MICRO; 2],
        mean_queue_delays: [20 * MICRO; 2],
    };

    fn raw_offset(&self, at: i64) -> i64 {
        self.initial_raw_offset + at / MILLI * self.drift_ppb / 1_000
    }

    fn wall_offset(&self, at: i64) -> i64 {
        self.initial_wall_offset + if at >= 30 * SECOND { self.wall_step } else { 0 }
    }

    /// A minute of it, ten times a second.
    fn simulate_exchanges(&self, seed: u64) -> PeerExchanges {
        let mut random = RandomNumbers(seed);
        let mut exchanges = PeerExchanges::new(ClockNature::default());
        for number in 0..600_u64 {
            let sent = i64::try_from(number).expect("small") * SECOND / 10 + 7 * MICRO;
            let arrived = sent + self.min_delays[0] + random.exponential(self.mean_queue_delays[0]);
            let answered = arrived + 15 * MICRO;
            let returned =
                answered + self.min_delays[1] + random.exponential(self.mean_queue_delays[1]);
            let peer_clock_at = |at: i64| Instant::from_nanos(at + self.raw_offset(at));
            let mut marks = Marks::intended_at(Instant::from_nanos(sent));
            marks.nic_tx = Some(Instant::from_nanos(sent));
            marks.nic_rx = Some(Instant::from_nanos(returned));
            marks.peer.rx = Some(peer_clock_at(arrived));
            marks.peer.app_tx = Some(peer_clock_at(answered));
            marks.peer.nic_tx = Some(peer_clock_at(answered));
            let mut message = Message::new(FlowIndex(0), Seq(number), marks);
            message.outcome = Outcome::Reply;
            let wall = EPOCH + answered + self.wall_offset(answered);
            message.peer_wall_offset = Some(wall - peer_clock_at(answered).nanos());
            for at in [sent, returned] {
                exchanges.add_anchor(Anchor {
                    at: Instant::from_nanos(at),
                    wall: Wall::from_unix_nanos(EPOCH + at),
                });
            }
            assert!(exchanges.add_message(&message), "it has four stamps");
        }
        exchanges
    }
}

#[test]
fn answered_messages_count_immediately_and_only_once() {
    let mut exchanges = Peer::UNLOADED.simulate_exchanges(3);
    let marks = |sent: i64| {
        let peer_clock_at = |at: i64| Instant::from_nanos(at + Peer::UNLOADED.initial_raw_offset);
        let mut marks = Marks::intended_at(Instant::from_nanos(sent));
        marks.app_send = Some(Instant::from_nanos(sent));
        marks.peer.app_rx = Some(peer_clock_at(sent + 500 * MICRO));
        marks.peer.app_tx = Some(peer_clock_at(sent + 510 * MICRO));
        marks.app_recv = Some(Instant::from_nanos(sent + 1_010 * MICRO));
        marks
    };
    // The 600th is out for long; these came after it.
    let later = [601, 602].map(|number: u64| {
        let sent = 60 * SECOND + i64::try_from(number).expect("small") * MILLI;
        let mut message = Message::new(FlowIndex(0), Seq(number), marks(sent));
        message.outcome = Outcome::Reply;
        message
    });
    for message in &later {
        exchanges.add_answered(message);
    }
    let known = exchanges.snapshot();
    assert_eq!((exchanges.exchange_count, known.exchange_count), (600, 602));
    assert!(known.latest_sent_at > exchanges.latest_sent_at);
    let at = known.latest_sent_at.expect("a moment");
    let fit = known.reading(at).expect("messages are around it").raw;
    assert!(
        (fit.offset - Peer::UNLOADED.initial_raw_offset).abs() <= fit.bound,
        "{fit:?}"
    );
    for message in &later {
        assert!(exchanges.add_message(message));
    }
    assert_eq!(exchanges.snapshot().exchange_count, 602);
}

#[test]
fn true_offsets_and_drift_are_within_the_error_bounds() {
    let mut random = RandomNumbers(1);
    for seed in 0..40 {
        let mut draw = |limit: i64| nanos(random.uniform() * Span::from_nanos(limit).secs_f64());
        let peer = Peer {
            initial_raw_offset: draw(9_000 * SECOND) - 4_000 * SECOND,
            drift_ppb: draw(200_000) - 100_000,
            initial_wall_offset: draw(8 * SECOND) - 4 * SECOND,
            wall_step: draw(4 * SECOND) - 2 * SECOND,
            min_delays: [draw(20 * MILLI), draw(20 * MILLI)],
            mean_queue_delays: [draw(3 * MILLI) + 1, draw(3 * MILLI) + 1],
        };
        let exchanges = peer.simulate_exchanges(seed);
        for second in [5, 20, 29, 31, 45, 59] {
            let at = second * SECOND;
            let reading = exchanges.reading(at).expect("messages are around it");
            let error = reading.raw.offset - peer.raw_offset(at);
            assert!(
                error.abs() <= reading.raw.bound,
                "{error}: {reading:?} {peer:?}"
            );
            let (wall, bound) = reading.wall.expect("the peer reports it");
            // In addition to the bound: drift of the raw clocks until the peer reads its two clocks.
            let error = wall - peer.wall_offset(at);
            assert!(
                error.abs() <= bound,
                "{error} at {second}: {reading:?} {peer:?}"
            );
        }
        let course = Course::fit(
            exchanges.raw_clock.limits(),
            exchanges.raw_clock.nature(),
            &SteadyTimeConversion::default(),
            SECOND,
        )
        .expect("it has limits");
        assert_eq!(course.steps, [], "raw clocks are never set: {peer:?}");
        let drift = course.drift.expect("of a minute");
        let rate = Span::from_nanos(peer.drift_ppb).secs_f64();
        assert!(
            (drift.rate - rate).abs() <= drift.bound,
            "{drift:?} {peer:?}"
        );
    }
}

#[test]
fn a_wall_clock_step_is_attributed_to_the_peer() {
    let peer = Peer {
        initial_wall_offset: -4 * MILLI,
        wall_step: 3 * SECOND,
        drift_ppb: 40_000,
        ..Peer::UNLOADED
    };
    let exchanges = peer.simulate_exchanges(3);
    let [step] = exchanges.steps.as_slice() else {
        panic!("{:?}", exchanges.steps);
    };
    assert!(step.is_of_peer, "{step:?}");
    assert!(
        step.after <= 30 * SECOND && 30 * SECOND <= step.before,
        "{step:?}"
    );
    assert!(step.before - step.after < SECOND / 5, "{step:?}");
    // The raw clocks drift by 4 us in a tenth of a second: the peer's wall is steered against it.
    assert!(
        (step.by.nanos() - 3 * SECOND).abs() < 10 * MICRO,
        "{step:?}"
    );
}

/// How far both methods are off in the end, and the bound of the first: of the clocks on the wall.
fn errors(peer: &Peer) -> (i64, i64, i64) {
    let exchanges = peer.simulate_exchanges(11);
    let at = exchanges.latest_sent_at.expect("messages");
    let (wall, bound) = exchanges
        .reading(at)
        .and_then(|reading| reading.wall)
        .expect("the peer reports it");
    let truth = peer.wall_offset(at);
    let mean = exchanges.wall_mean.mean().expect("messages");
    (wall - truth, bound, mean - truth)
}

#[test]
fn a_queue_in_one_direction_biases_the_mean_but_not_the_fit() {
    let loaded = Peer {
        mean_queue_delays: [3 * MILLI, 20 * MICRO],
        ..Peer::UNLOADED
    };
    let (error, bound, mean) = errors(&loaded);
    assert!(error.abs() <= bound && bound < MILLI, "{error} {bound}");
    assert!(error.abs() < 100 * MICRO, "{error}");
    // Half of the mean queue.
    assert!((mean - 1_500 * MICRO).abs() < 300 * MICRO, "{mean}");
}

#[test]
fn a_constant_path_asymmetry_shifts_the_offset_within_its_bound() {
    let longer = Peer {
        min_delays: [8_500 * MICRO, 500 * MICRO],
        ..Peer::UNLOADED
    };
    let (error, bound, mean) = errors(&longer);
    assert!(
        (error - 4 * MILLI).abs() < 100 * MICRO && error <= bound,
        "{error} {bound}"
    );
    assert!((mean - 4 * MILLI).abs() < 100 * MICRO, "{mean}");
}

#[test]
fn a_clock_step_biases_the_mean_but_not_the_offset() {
    let stepped = Peer {
        wall_step: 10 * MILLI,
        ..Peer::UNLOADED
    };
    let (error, bound, mean) = errors(&stepped);
    assert!(error.abs() <= bound && bound < MILLI, "{error} {bound}");
    assert!(
        (mean + 5 * MILLI).abs() < 100 * MICRO,
        "half of the time it was not set: {mean}"
    );
}

#[test]
fn the_clock_page_contains_the_simulated_errors() {
    let unloaded = Peer::UNLOADED;
    let directions = [
        ("no other queue", unloaded),
        (
            "queue of 3 ms, forward path",
            Peer {
                mean_queue_delays: [3 * MILLI, 20 * MICRO],
                ..unloaded
            },
        ),
        (
            "queues of 3 ms, both directions",
            Peer {
                mean_queue_delays: [3 * MILLI; 2],
                ..unloaded
            },
        ),
        (
            "forward path always 8 ms longer",
            Peer {
                min_delays: [8_500 * MICRO, 500 * MICRO],
                ..unloaded
            },
        ),
        (
            "peer's clock set forward by 10 ms in the middle of the minute",
            Peer {
                wall_step: 10 * MILLI,
                ..unloaded
            },
        ),
    ];
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands/clock.md");
    let page = std::fs::read_to_string(page).expect("the command's page");
    let us = |of: i64| format!("{:.0} us", Span::from_nanos(of).secs_f64() * 1e6);
    let rows = directions.map(|(name, peer)| {
        let (error, bound, mean) = errors(&peer);
        format!(
            "| {name} | {} | {} | {} |\n",
            us(error),
            us(bound),
            us(mean)
        )
    });
    let rows = rows.concat();
    assert!(page.contains(&rows), "docs/commands/clock.md lacks\n{rows}");
}

#[test]
fn offsets_are_thinned_to_the_maximum_of_a_figure() {
    let mut offsets = FigureOffsets::default();
    for at in 0..1_000_000 {
        offsets.push(at, at);
    }
    assert!(
        (2_000..=4_096).contains(&offsets.points.len()),
        "{}",
        offsets.points.len()
    );
    assert!(offsets.points.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(offsets.points.last().is_some_and(|last| last.0 > 990_000));
}
