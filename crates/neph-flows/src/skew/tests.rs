use neph_model::{FleetMessage, FleetOutcome, Instant, Span};
use neph_stats::{Random, proportion};

use crate::world::World;
use crate::{Digest, Direction, Settings};

/// How many changes were reported, and of these the way there, the way back, both, nothing.
#[derive(Debug, Default)]
struct DirectionCounts {
    total: usize,
    forward: usize,
    reverse: usize,
    both: usize,
    unknown: usize,
}

/// Two paths with these one-way times, microseconds, there and back; flows are thrown about every 20
/// seconds. Jitter is uniform up to `jitter` microseconds, each way by itself; the peer's clock is
/// far off and drifts by `drift` nanoseconds a second.
fn count_detections(
    paths: [(i64, i64); 2],
    (jitter, drift): (f64, i64),
    seed: u64,
) -> DirectionCounts {
    let world = World {
        slots: 256,
        interval: Span::from_millis(500),
        seconds: 300,
        paths: paths
            .iter()
            .map(|(forward, reverse)| forward + reverse)
            .collect(),
        weights: vec![0.5; 2],
        jitter: 0.0,
        seed,
        ..World::default()
    };
    let mut random = Random::new(seed);
    let mut digest = Digest::new(&world.fleet(), Settings::default()).unwrap();
    world.messages(&world.truth(), |message| {
        digest.push(&move_to_paths(
            message,
            paths,
            || random_delay(&mut random, jitter),
            drift,
        ));
    });
    digest.finish();
    let mut detections = DirectionCounts::default();
    for change in digest.view().changes {
        detections.total += 1;
        *match change.evidence.direction {
            Some(Direction::Forward) => &mut detections.forward,
            Some(Direction::Reverse) => &mut detections.reverse,
            Some(Direction::Both) => &mut detections.both,
            None => &mut detections.unknown,
        } += 1;
    }
    detections
}

#[expect(clippy::cast_possible_truncation, reason = "a test's jitter")]
fn random_delay(random: &mut Random, jitter: f64) -> i64 {
    (random.unit() * jitter * 1000.0) as i64
}

/// A message as it would be over one of the paths.
fn move_to_paths(
    message: &FleetMessage,
    paths: [(i64, i64); 2],
    mut delay: impl FnMut() -> i64,
    drift: i64,
) -> FleetMessage {
    let mut message = *message;
    if let FleetOutcome::Reply(reply) = &mut message.outcome {
        let path_micros = reply.round_trip.nanos() / 1000;
        let path = paths
            .iter()
            .find(|(forward, reverse)| forward + reverse == path_micros);
        let (forward, reverse) = path.expect("one of both");
        let (forward, reverse) = (forward * 1000 + delay(), reverse * 1000 + delay());
        reply.round_trip = Span::from_nanos(forward + reverse);
        let sent = message.sent.nanos();
        let clock_offset = 77_000_000_000_000 + sent / 1_000_000_000 * drift;
        let rx = Instant::from_nanos(sent + clock_offset + forward);
        reply.peer_report = reply
            .peer_report
            .map(|peer| neph_model::PeerReport { rx, ..peer });
    }
    message
}

impl DirectionCounts {
    /// All that were said of another way than this one.
    fn wrong_count(&self, truth: Direction) -> usize {
        let correct = match truth {
            Direction::Forward => self.forward,
            Direction::Reverse => self.reverse,
            Direction::Both => self.both,
        };
        self.total - self.unknown - correct
    }
}

/// The lab's "uniform 0.3ms" is up to 0.3 ms to either side: 0.6 ms wide.
const WIDE_JITTER_MICROS: f64 = 600.0;
const NARROW_JITTER_MICROS: f64 = 300.0;
const FIRST_PATH: (i64, i64) = (35_000, 35_000);
/// A peer's clock that runs 20 us a second fast.
const DRIFT_NANOS_PER_SECOND: i64 = 20_000;

/// None of more than 1,800: with 95 % certainty fewer than 0.17 % are wrong.
#[test]
fn with_jitter_a_2_ms_change_never_gets_the_wrong_direction() {
    for (second, truth) in [
        ((37_000, 35_000), Direction::Forward),
        ((35_000, 37_000), Direction::Reverse),
        ((36_000, 36_000), Direction::Both),
    ] {
        for (jitter, unknown) in [(NARROW_JITTER_MICROS, 0.01), (WIDE_JITTER_MICROS, 0.15)] {
            let detections =
                count_detections([FIRST_PATH, second], (jitter, DRIFT_NANOS_PER_SECOND), 1);
            assert!(detections.total > 1800, "{detections:?}");
            assert_eq!(
                detections.wrong_count(truth),
                0,
                "{truth:?}, {jitter} us: {detections:?}"
            );
            let unknown_share = proportion(detections.unknown, detections.total).unwrap();
            assert!(
                unknown_share.share() < unknown,
                "{truth:?}, {jitter} us: {detections:?}"
            );
        }
    }
}

/// 0.6 ms are as much as the jitter of one way: often nothing is said, but hardly ever another way.
/// Where none of 1,600 were wrong, up to 0.25 % could be; up to two of them, up to 0.5 %.
#[test]
fn the_direction_of_a_jitter_sized_change_is_almost_never_wrong() {
    for (second, truth) in [
        ((35_600, 35_000), Direction::Forward),
        ((35_000, 35_600), Direction::Reverse),
    ] {
        for jitter in [NARROW_JITTER_MICROS, WIDE_JITTER_MICROS] {
            let detections =
                count_detections([FIRST_PATH, second], (jitter, DRIFT_NANOS_PER_SECOND), 1);
            assert!(detections.total > 1600, "{detections:?}");
            assert_eq!(detections.both, 0, "{truth:?}, {jitter} us: {detections:?}");
            let wrong_share = proportion(detections.wrong_count(truth), detections.total).unwrap();
            assert!(
                wrong_share.interval().high < 0.005,
                "{truth:?}, {jitter} us: {detections:?}"
            );
        }
        let quiet_counts =
            count_detections([FIRST_PATH, second], (30.0, DRIFT_NANOS_PER_SECOND), 1);
        assert_eq!(
            (quiet_counts.wrong_count(truth), quiet_counts.unknown),
            (0, 0),
            "{quiet_counts:?}"
        );
    }
}
