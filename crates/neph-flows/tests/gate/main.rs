//! What a fleet's digest says, held against the gates of the lab's links, in virtual time: path
//! changes, classes, shares, inflation.

#![expect(clippy::print_stdout, reason = "the table of two hours")]

mod link;
mod truth;

use std::collections::BTreeMap;

use neph_flows::{Digest, Direction, FleetView, Settings};

use link::{Bursts, FleetParameters, MS, NOISY, NONE, S, measure};
use truth::{LevelDetection, Margins, Score, Truth};

const QUIET_LINK: &str = include_str!("../../../neph-lab/topologies/flows-4-paths.toml");
const NOISY_LINK: &str = include_str!("../../../neph-lab/topologies/flows-noisy.toml");

/// Levels that were reported lie within the tolerance, and twice that where there is jitter; dates within
/// a second, and five where there is jitter.
const LEVEL: i64 = MS / 2;
const TIME: i64 = S;

fn parameters(flows: u32, seconds: i64, seed: u64) -> FleetParameters {
    FleetParameters {
        flows,
        interval: 200 * MS,
        length: seconds * S,
        seed,
    }
}

struct GateResult {
    view: FleetView,
    truth: Truth,
    score: Score,
}

fn found(link: &str, bursts: [Option<Bursts>; 2], parameters: &FleetParameters) -> GateResult {
    let mut digest = Digest::new(&parameters.fleet(), Settings::default()).expect("the source's");
    let truth = measure(link, bursts, parameters, &mut digest);
    digest.finish();
    let view = digest.view();
    let mut detections: Vec<Vec<LevelDetection>> = vec![Vec::new(); parameters.flows as usize];
    for change in &view.changes {
        detections[change.slot.0 as usize].push(LevelDetection {
            at: change.at.nanos(),
            certain: change.reported.nanos(),
            before: change.before,
            after: change.after,
        });
    }
    let both = bursts.iter().flatten();
    let mut queues: Vec<_> = both
        .flat_map(|bursts| bursts.queues(parameters.length))
        .collect();
    queues.sort_unstable();
    let quiet = queues.is_empty();
    let margins = Margins {
        time: if quiet { TIME } else { 5 * TIME },
        level: if quiet { LEVEL } else { 2 * LEVEL },
        queues,
    };
    let mut score = Score::default();
    for (slot, slot_detections) in detections.iter().enumerate() {
        truth.score(slot, slot_detections, &margins, &mut score);
    }
    GateResult { view, truth, score }
}

impl GateResult {
    /// As many classes as paths, each with its share; the inflation within 1 %.
    fn classes_are_the_paths(&self) {
        let classes = &self.view.classes[0];
        let shares = self.truth.shares();
        assert_eq!(classes.len(), shares.len(), "{classes:?}");
        for (class, (level, share)) in classes.iter().zip(&shares) {
            assert!((class.base.nanos() - level).abs() <= LEVEL, "{class:?}");
            assert!((class.share - share).abs() < 0.01, "{class:?}: {share}");
        }
        let inflation = self.view.pairs[0].inflation.expect("classes").ratio;
        let truly = 78.0 / 70.0;
        assert!((inflation / truly - 1.0).abs() < 0.01, "{inflation}");
    }

    /// On these links the way back takes the same on every path: of what moved nothing else is said
    /// than the way there.
    fn only_the_way_there_moved(&self) {
        let other = |direction: Direction| direction != Direction::Forward;
        let ways = || {
            let changes = self.view.changes.iter();
            changes.filter_map(|change| change.evidence.direction)
        };
        assert!(ways().count() >= 40, "{}", ways().count());
        assert!(
            !ways().any(other),
            "{:?}",
            ways().find(|direction| other(*direction))
        );
    }

    fn print(&self, name: &str) {
        let score = &self.score;
        println!(
            "| {name} | {} | {} | {} | {} | {:.2} | {} | {} | {} | {} |",
            score.due,
            score.reported,
            score.wrong.len(),
            score.missed.len(),
            100.0 * score.recall(),
            score.delay(0.5),
            score.delay(0.95),
            score.delay(1.0),
            score.misdated
        );
        by_second("false", score.wrong.iter().map(|(_, change)| change.at));
        by_second("missed", score.missed.iter().map(|(_, at)| *at));
        let shares = self.truth.shares();
        for (class, (level, share)) in self.view.classes[0].iter().zip(&shares) {
            let base = class.base.millis_f64();
            println!(
                "class {base:.3} ms, share {:.4}; path {:.3} ms, share {share:.4}",
                class.share,
                neph_model::Span::from_nanos(*level).millis_f64()
            );
        }
    }
}

/// How many of them there are in each second: what goes wrong does so for many flows at once.
fn by_second(what: &str, moments: impl Iterator<Item = i64>) {
    let mut counts: BTreeMap<i64, u32> = BTreeMap::new();
    for at in moments {
        *counts.entry(at / S).or_default() += 1;
    }
    let lines = counts
        .iter()
        .map(|(second, count)| format!("{count} at {second} s"));
    println!("{what}: {}", lines.collect::<Vec<_>>().join(", "));
}

#[test]
fn reshuffles_on_a_quiet_link_are_detected_without_false_changes() {
    let result = found(QUIET_LINK, NONE, &parameters(128, 130, 3));
    result.print("quiet, 130 s");
    assert!(result.score.due > 150, "{}", result.score.due);
    assert!(result.score.wrong.is_empty(), "{:?}", result.score.wrong);
    assert!(result.score.recall() >= 0.99, "{:?}", result.score.missed);
    result.only_the_way_there_moved();
    result.classes_are_the_paths();
}

#[test]
fn jitter_and_full_queues_cause_no_false_changes() {
    let result = found(NOISY_LINK, NOISY, &parameters(128, 70, 3));
    result.print("noisy, 70 s");
    assert!(result.score.reported > 50, "{}", result.score.reported);
    assert!(result.score.wrong.is_empty(), "{:?}", result.score.wrong);
    result.only_the_way_there_moved();
}

/// 512 flows, 5 messages a second each.
#[test]
#[ignore = "minutes, in release"]
fn two_virtual_hours() {
    let seed = std::env::var("SEED").map_or(20_261_122, |seed| seed.parse().expect("a number"));
    println!(
        "| link | true | told | false | missed | recall % | delay ms, p50 | p95 | most | date over 1 s off |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let quiet = found(QUIET_LINK, NONE, &parameters(512, 7200, seed));
    quiet.print("flows-4-paths");
    let noisy = found(NOISY_LINK, NOISY, &parameters(512, 7200, seed));
    noisy.print("flows-noisy");
    for result in [&quiet, &noisy] {
        assert!(result.score.wrong.is_empty(), "{:?}", result.score.wrong);
        result.classes_are_the_paths();
    }
    assert!(quiet.score.recall() >= 0.99, "{}", quiet.score.recall());
}
