//! gallery/cable: a faulty cable ruins a long path and hides in a short one.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "cable",
    finding: "a faulty cable ruins a long path and hides in a short one",
    published: "source 1, chapter 6",
    plan: include_str!("../../../../gallery/cable/plan.toml"),
    lab: include_str!("../../../../gallery/cable/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!("../../../../gallery/cable/control.lab.toml")),
    figure: "cdf-by-endpoint",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &["head-of-line"],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // The window that CUBIC keeps with one loss in 200 carries about a quarter of what the far
    // endpoint is sent: distance alone would make it 99 ms slower.
    Expectation {
        topic: Topic::Finding("endpoint"),
        about: &["far away", "next door"],
        claim: &[
            Number::at_least("slower", 1.0),
            Number::at_least("shift_most_ms", 200.0),
        ],
        numbers: &[],
    },
    // One packet in 200, and some that are sent again without need.
    Expectation {
        topic: Topic::Cause("random-loss"),
        about: &[],
        claim: &[],
        numbers: &[Number::between("lost or sent again", 0.003, 0.012)],
    },
];

/// 1 ms and 100 ms, and 100 kB at 1 Gbit/s take 0.8 ms.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(&["next door"], &[Number::between("median_ms", 1.8, 4.0)]),
    Expectation::median(&["far away"], &[Number::between("median_ms", 100.8, 110.0)]),
];
