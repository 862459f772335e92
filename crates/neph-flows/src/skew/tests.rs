use neph_model::{FleetMessage, FleetOutcome, Instant, Span};
use neph_stats::{Random, proportion};

use crate::world::World;
use crate::{Digest, Direction, Settings};

/// How many changes were reported, and of these the way there, the way back, both, nothing.
#[derive(Debug, Default)]
struct LevelDetection {
    all: usize,
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
) -> LevelDetection {
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
        digest.push(&over(message, paths, || late(&mut random, jitter), drift));
    });
    digest.finish();
    let mut detections = LevelDetection::default();
    for change in digest.view().changes {
        detections.all += 1;
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
fn late(random: &mut Random, jitter: f64) -> i64 {
    (random.unit() * jitter * 1000.0) as i64
}

/// A message as it would be over one of the paths.
fn over(
    message: &FleetMessage,
    paths: [(i64, i64); 2],
    mut late: impl FnMut() -> i64,
    drift: i64,
) -> FleetMessage {
    let mut message = *message;
    if let FleetOutcome::Reply(reply) = &mut message.outcome {
        let sum = reply.round_trip.nanos() / 1000;
        let path = paths
            .iter()
            .find(|(forward, reverse)| forward + reverse == sum);
        let (forward, reverse) = path.expect("one of both");
        let (forward, reverse) = (forward * 1000 + late(), reverse * 1000 + late());
        reply.round_trip = Span::from_nanos(forward + reverse);
        let sent = message.sent.nanos();
        let ahead = 77_000_000_000_000 + sent / 1_000_000_000 * drift;
        let rx = Instant::from_nanos(sent + ahead + forward);
        reply.peer_report = reply
            .peer_report
            .map(|peer| neph_model::PeerReport { rx, ..peer });
    }
    message
}

impl LevelDetection {
    /// All that were said of another way than this one.
    fn others(&self, truth: Direction) -> usize {
        let right = match truth {
            Direction::Forward => self.forward,
            Direction::Reverse => self.reverse,
            Direction::Both => self.both,
        };
        self.all - self.unknown - right
    }
}

/// The lab's "uniform 0.3ms" is up to 0.3 ms to either side: 0.6 ms wide.
const WIDE: f64 = 600.0;
const NARROW: f64 = 300.0;
const FIRST: (i64, i64) = (35_000, 35_000);
/// A peer's clock that runs 20 us a second fast.
const DRIFT: i64 = 20_000;

/// None of more than 1,800: with 95 % certainty fewer than 0.17 % are wrong.
#[test]
fn under_jitter_no_other_way_is_named_than_the_one_that_moved_by_two_milliseconds() {
    for (second, truth) in [
        ((37_000, 35_000), Direction::Forward),
        ((35_000, 37_000), Direction::Reverse),
        ((36_000, 36_000), Direction::Both),
    ] {
        for (jitter, unknown) in [(NARROW, 0.01), (WIDE, 0.15)] {
            let detections = count_detections([FIRST, second], (jitter, DRIFT), 1);
            assert!(detections.all > 1800, "{detections:?}");
            assert_eq!(
                detections.others(truth),
                0,
                "{truth:?}, {jitter} us: {detections:?}"
            );
            let unknown_share = proportion(detections.unknown, detections.all).unwrap();
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
        for jitter in [NARROW, WIDE] {
            let detections = count_detections([FIRST, second], (jitter, DRIFT), 1);
            assert!(detections.all > 1600, "{detections:?}");
            assert_eq!(detections.both, 0, "{truth:?}, {jitter} us: {detections:?}");
            let wrong = proportion(detections.others(truth), detections.all).unwrap();
            assert!(
                wrong.interval().high < 0.005,
                "{truth:?}, {jitter} us: {detections:?}"
            );
        }
        let quiet = count_detections([FIRST, second], (30.0, DRIFT), 1);
        assert_eq!((quiet.others(truth), quiet.unknown), (0, 0), "{quiet:?}");
    }
}
