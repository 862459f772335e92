//! Path changes that are found, and that were there: the detectors in the worlds of their tests.

use crate::outcome::{Row, Section, Target};

/// The worlds and the count of what is true, as the tests of `neph-stats` have them.
#[expect(
    dead_code,
    clippy::print_stdout,
    reason = "the tests look at more than is counted here"
)]
#[path = "../../../neph-stats/tests/paths"]
mod paths {
    pub(super) mod detectors;
    pub(super) mod score;
    pub(super) mod world;
}

use paths::detectors::{AFTERWARDS, GUARD, RULE, scores};
use paths::score::Score;
use paths::world::{Jitter, MS, Plan, Queues, S};

const PROMISED: Target = Target::AtLeast(99.0);
/// Worlds of one kind for a thousand reports, and the seed of the first: nothing was tuned on them.
const WORLDS: u64 = 4;
const FIRST: u64 = 7000;

fn plan(jitter: Jitter, drift: i64, seed: u64) -> Plan {
    Plan {
        flows: 128,
        length: 1200 * S,
        jitter,
        queues: Queues::None,
        gaps: (2 * MS, 8 * MS),
        drift,
        seed,
    }
}

pub(crate) fn path_change_section(reports: u64) -> Section {
    let worlds = (reports * WORLDS).div_ceil(1000);
    let mut rows = Vec::new();
    for (drift, drifts) in [
        (0, ""),
        (3 * MS / 2, ", all drift by 1.5 ms up and down in 10 min"),
    ] {
        for (jitter, name) in [
            (Jitter::Quiet, "clean"),
            (Jitter::Normal, "jitter of 0.3 ms"),
            (Jitter::Spikes, "spikes in 5 %"),
        ] {
            for (detector, target) in [
                (GUARD, PROMISED),
                (RULE, Target::Shown),
                (AFTERWARDS, Target::Shown),
            ] {
                let mut sum = Score::default();
                for seed in FIRST..FIRST + worlds {
                    for (_, score) in scores(plan(jitter, drift, seed), Some(detector)) {
                        sum.merge(score);
                    }
                }
                let title = format!("{name}{drifts}: {detector}");
                rows.extend(counted(&title, &sum, target));
            }
        }
    }
    Section {
        about: "Path changes of 128 flows in 20 minutes on four paths, five messages a second each. *Guard* \
                is what reports use, *rule* the rule of the source alone, *change points* looks back on \
                whole series.",
        rows,
    }
}

fn counted(title: &str, score: &Score, target: Target) -> [Row; 2] {
    let row = |quantity: &str, hits, cases| Row {
        world: title.to_owned(),
        quantity: quantity.to_owned(),
        hits,
        cases,
        target,
    };
    let correct = score.reported - score.wrong.len();
    let reported = score.wanted - score.missed;
    [
        row("reported changes that were there", correct, score.reported),
        row("changes that are reported", reported, score.wanted),
    ]
}
