//! Two hundred random worlds with no cause, one or two: how many causes are named, and how many
//! names are causes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use neph_model::ProbeKind;
use neph_stats::Random;

use super::diagnoses_of;
use super::stalling::{StalledParty, Stalling};
use super::world::{Queue, World};

/// Seeds of the worlds that the rules were tuned with.
const TUNED_SEEDS: Range<u64> = 0..200;
/// Seeds of other worlds: no rule is tuned with one of them.
const UNSEEN_SEEDS: Range<u64> = 10_000..10_200;
/// Minimum precision and recall.
const MIN_SHARE: f64 = 0.97;

/// A cause by its rule's name, and the function that adds it to a world.
type Cause = (&'static str, fn(&mut World, &mut Random));

/// Causes that change the path come before causes that depend on the path.
const CAUSES: [Cause; 14] = [
    ("head-of-line", |world, random| {
        world.round_trip_ms = between(random, 100.0, 200.0);
        // 100 kB every 20 ms over 100 ms take 345 segments.
        world.max_window = Some(200 + u32::try_from(random.below(100)).unwrap());
        world.sizes.push(100_000);
        world.intervals_ms.push(20);
    }),
    ("ecmp-imbalance", |world, random| {
        let count = 2 + random.below(2);
        let step = (world.round_trip_ms * between(random, 0.3, 1.0)).max(1.5);
        world.paths_ms = [0.0, step, 2.0 * step][..count].to_vec();
        // By lot, as a plan's scenarios go: in ascending order a hash puts neighbours together, and
        // such an order is also that of a route that changes and comes back.
        world.ports = (40_001..40_011).collect();
        for index in 1..world.ports.len() {
            world.ports.swap(index, random.below(index + 1));
        }
        world.blocks = 12;
    }),
    ("slow-start-after-idle", |world, random| {
        world.has_idle_restart = true;
        world.sizes.push(100_000);
        world.sizes.push(48_000 + 1000 * random.below(40) as u64);
        world.intervals_ms.push(1000);
        world.seconds = 25.0;
    }),
    ("serialisation", |world, random| {
        world.rate_mbit = between(random, 1.0, 8.0);
        world.sizes.extend([512, 8192]);
        world.intervals_ms.push(400);
    }),
    ("bufferbloat", |world, random| {
        let from = between(random, 3.0, 6.0);
        world.queue = Some(Queue {
            from,
            to: from + between(random, 5.0, 9.0),
            peak_ms: world.round_trip_ms * between(random, 2.0, 8.0) + 30.0,
        });
        world.echo_queue_share = [1.0, 1.0, 0.0][random.below(3)];
        world.intervals_ms.push(100);
        world.seconds = 25.0;
    }),
    ("connection-setup", |world, random| {
        world.handshake_round_trips = Some([0.0, 1.0, 2.0][random.below(3)]);
        world.handshake_share = [1.0, 1.0, 0.8][random.below(3)];
        world.probe = ProbeKind::Http;
    }),
    ("l7-proxy", |world, random| {
        world.proxy_ms = between(random, 0.6, 6.0);
    }),
    ("icmp-differs", |world, random| {
        let longer = (world.round_trip_ms * 0.2).max(1.0) * between(random, 1.0, 3.0);
        let shorter = -longer.min(world.round_trip_ms / 2.0);
        world.icmp_ms = [longer, shorter][random.below(2)];
    }),
    ("random-loss", |world, random| {
        world.loss = between(random, 0.006, 0.03);
        world.intervals_ms.push(50);
        world.seconds = 25.0;
    }),
    ("slow-server", |world, random| {
        world.processing_ms = world.round_trip_ms * between(random, 1.0, 4.0) + 5.0;
    }),
    ("starved-client", |world, random| {
        world.client_delay_ms = between(random, 1.5, 6.0) + world.round_trip_ms * 0.05;
    }),
    ("clock-step", |world, _| world.has_clock_step = true),
    ("stalled-peer", |world, random| {
        add_stalls(
            world,
            [StalledParty::Program, StalledParty::Host][random.below(2)],
            random,
        );
    }),
    ("stalled-client", |world, random| {
        let party = [StalledParty::ClientLate, StalledParty::ClientSkips][random.below(2)];
        add_stalls(world, party, random);
    }),
];

/// Pairs of which one takes away what the other needs: a connection per message has no window to
/// forget, no bytes before its own and no port that lasts; 100 kB every 20 ms never rest on a slow
/// link; behind one, a window does not matter; and a response of seconds hides milliseconds of our
/// own. A client that stands still most of the time sees no queue, and is not starved besides.
const EXCLUSIVE: [(&str, &str); 9] = [
    ("connection-setup", "slow-start-after-idle"),
    ("connection-setup", "head-of-line"),
    ("connection-setup", "ecmp-imbalance"),
    ("serialisation", "head-of-line"),
    ("serialisation", "slow-start-after-idle"),
    ("starved-client", "head-of-line"),
    ("stalled-client", "stalled-peer"),
    ("stalled-client", "bufferbloat"),
    ("stalled-client", "starved-client"),
];

/// From 0.3 to 0.95 of a period that holds six messages and more.
fn add_stalls(world: &mut World, party: StalledParty, random: &mut Random) {
    if world.intervals_ms.is_empty() {
        world.intervals_ms.push([10, 20, 50][random.below(3)]);
    }
    let interval = *world.intervals_ms.iter().max().expect("one at least");
    let period_ms =
        between(random, 600.0, 1500.0).max(12.0 * f64::from(i32::try_from(interval).unwrap()));
    world.stalling = Some(Stalling {
        party,
        period_ms,
        length_ms: period_ms * between(random, 0.4, 0.92),
    });
}

fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low + (high - low) * random.unit()
}

/// Whether one of the causes shows on a connection that lasts only.
fn needs_a_connection(indices: &BTreeSet<usize>) -> bool {
    let connection_setup = "connection-setup";
    let excludes_setup = |index: &usize| EXCLUSIVE.contains(&(connection_setup, CAUSES[*index].0));
    indices.iter().any(excludes_setup)
}

/// The rules of a world's causes.
type Rules = BTreeSet<&'static str>;

fn world(seed: u64) -> (World, Rules) {
    let mut random = Random::new(seed);
    let mut world = World {
        seed,
        round_trip_ms: between(&mut random, 4.0, 120.0),
        jitter_ms: [0.02, 0.1, 0.3, 1.0][random.below(4)],
        // No cause: in a quarter of the worlds a route changes, for good, for some blocks or one.
        path_change_ms: [0.0, 0.0, 0.0, 6.0][random.below(4)],
        path_change_blocks: [0.5..1.0, 0.35..0.7, 0.35..0.48][random.below(3)].clone(),
        sizes: vec![256 << random.below(3)],
        intervals_ms: Vec::new(),
        blocks: 6 + u32::try_from(random.below(4)).unwrap(),
        ..World::default()
    };
    let mut indices: BTreeSet<usize> = BTreeSet::new();
    for _ in 0..random.below(3) {
        let index = random.below(CAUSES.len());
        let is_excluded = |other: &usize| {
            let (name, other) = (CAUSES[index].0, CAUSES[*other].0);
            EXCLUSIVE.contains(&(name, other)) || EXCLUSIVE.contains(&(other, name))
        };
        if !indices.iter().any(is_excluded) {
            indices.insert(index);
        }
    }
    for index in &indices {
        CAUSES[*index].1(&mut world, &mut random);
    }
    if world.intervals_ms.is_empty() && random.below(3) == 0 {
        add_window_limit(&mut world, &mut random);
    }
    if world.intervals_ms.is_empty() {
        world.intervals_ms.push([50, 100, 200][random.below(3)]);
    }
    // No cause: a pool that opens a connection now and then, where no cause needs one that lasts.
    if world.handshake_round_trips.is_none()
        && world.stalling.is_none()
        && !needs_a_connection(&indices)
        && random.below(6) == 0
    {
        (
            world.handshake_round_trips,
            world.handshake_share,
            world.probe,
        ) = (Some(1.0), 0.1, ProbeKind::Http);
    }
    // No cause: a longer way for seconds.
    if world.queue.is_none() && random.below(4) == 0 {
        let from = between(&mut random, 2.0, 5.0);
        world.longer_path = Some(Queue {
            from,
            to: from + between(&mut random, 1.0, 4.0),
            peak_ms: world.round_trip_ms * between(&mut random, 0.6, 1.5) + 5.0,
        });
    }
    // No cause: of large replies a segment is lost now and then; a proxy needs small ones to show.
    if world.proxy_ms <= 0.0 && random.below(5) == 0 {
        world.reply_bytes = 20_000 + 1000 * random.below(80) as u64;
        world.reply_segment_loss = between(&mut random, 0.001, 0.01);
    }
    let rules: Rules = indices.iter().map(|index| CAUSES[*index].0).collect();
    // Half of the lossy paths carry datagrams.
    if rules.len() == 1 && rules.contains("random-loss") && random.below(2) == 0 {
        world.probe = ProbeKind::Udp;
    }
    (world, rules)
}

/// No cause that a rule names: messages larger than ten segments, which the receiver's room or pacing
/// holds back after idling as ever.
fn add_window_limit(world: &mut World, random: &mut Random) {
    world.sizes.push(100_000);
    world.intervals_ms.push(1000);
    world.seconds = 25.0;
    match random.below(3) {
        0 => world.receive_window = Some(12 + u32::try_from(random.below(30)).unwrap()),
        1 => world.pacing = Some(between(random, 20.0, 80.0)),
        _ => {
            world.pacing = Some(between(random, 20.0, 80.0));
            world.congestion = Some("bbr");
        }
    }
}

/// How often a cause was present, detected, and reported without being present.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    present: u32,
    detected: u32,
    false_alarms: u32,
}

impl Score {
    fn recall(self) -> f64 {
        f64::from(self.detected) / f64::from(self.present.max(1))
    }

    fn precision(self) -> f64 {
        f64::from(self.detected) / f64::from((self.detected + self.false_alarms).max(1))
    }
}

/// All causes together, and a line about each world where something is missing or wrong. Prints
/// each cause's counts.
fn score(seeds: Range<u64>) -> (Score, Vec<String>) {
    let mut counts: BTreeMap<&str, Score> = BTreeMap::new();
    let mut mistakes: Vec<String> = Vec::new();
    println!("seeds {seeds:?}");
    for seed in seeds {
        let (world, expected_rules) = world(seed);
        let diagnoses = diagnoses_of(&world);
        let detected_rules: BTreeSet<&str> =
            diagnoses.iter().map(|diagnosis| diagnosis.rule).collect();
        for name in &expected_rules {
            let count = counts.entry(name).or_default();
            count.present += 1;
            count.detected += u32::from(detected_rules.contains(name));
        }
        for name in detected_rules.difference(&expected_rules) {
            counts.entry(name).or_default().false_alarms += 1;
        }
        if detected_rules != expected_rules {
            mistakes.push(format!(
                "{seed}: {expected_rules:?}, named {detected_rules:?}"
            ));
            let false_alarms = diagnoses
                .iter()
                .filter(|diagnosis| !expected_rules.contains(diagnosis.rule));
            mistakes.extend(false_alarms.map(|diagnosis| format!("    {}", diagnosis.cause)));
        }
    }
    let sum = counts
        .values()
        .fold(Score::default(), |total, count| Score {
            present: total.present + count.present,
            detected: total.detected + count.detected,
            false_alarms: total.false_alarms + count.false_alarms,
        });
    println!("| cause | put in | named | named wrongly | precision | recall |");
    for (name, count) in counts.iter().chain([(&"all", &sum)]) {
        println!(
            "| {name} | {} | {} | {} | {:.1} % | {:.1} % |",
            count.present,
            count.detected,
            count.false_alarms,
            count.precision() * 100.0,
            count.recall() * 100.0
        );
    }
    (sum, mistakes)
}

fn assert_accurate(total: Score) {
    assert!(
        total.precision() >= MIN_SHARE && total.recall() >= MIN_SHARE,
        "{total:?}"
    );
}

#[test]
fn rules_are_accurate_for_the_worlds_they_were_tuned_with() {
    let (total, mistakes) = score(TUNED_SEEDS);
    println!("{}", mistakes.join("\n"));
    assert_accurate(total);
}

/// Prints no seed, so that no rule is tuned with it.
#[test]
fn rules_are_accurate_for_unseen_worlds() {
    let (total, _) = score(UNSEEN_SEEDS);
    assert_accurate(total);
}
