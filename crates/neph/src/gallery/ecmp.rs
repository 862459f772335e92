//! gallery/ecmp: which of two equal-cost paths a flow takes is chance.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "ecmp",
    finding: "which of two equal-cost paths a flow takes is chance",
    published: "source 1, section 5.1.1",
    plan: include_str!("../../../../gallery/ecmp/plan.toml"),
    lab: include_str!("../../../../gallery/ecmp/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!("../../../../gallery/ecmp/control.lab.toml")),
    figure: "per-block",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // 8 ms over Milan, 16 ms over Rome.
    Expectation {
        topic: Topic::Cause("ecmp-imbalance"),
        about: &["any port"],
        claim: &[],
        numbers: &[
            Number::between("shortest path, ms", 7.9, 9.0),
            Number::between("longest path, ms", 15.9, 17.5),
        ],
    },
];

/// 8 ms there and back, whichever path.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(&["any port"], &[Number::between("median_ms", 8.0, 10.0)]),
    Expectation::median(&["port 40001"], &[Number::between("median_ms", 8.0, 10.0)]),
];
