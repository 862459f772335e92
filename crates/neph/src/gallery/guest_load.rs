//! gallery/guest-load: a busy guest answers later.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "guest-load",
    finding: "a busy guest answers later",
    published: "source 2, section 4.5",
    plan: include_str!("../../../../gallery/guest-load/plan.toml"),
    lab: include_str!("../../../../gallery/guest-load/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/guest-load/control.lab.toml"
    )),
    figure: "boxes-by-stress",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    busy(&["stress guest 25%", "stress none"]),
    busy(&["stress guest 80%", "stress none"]),
    busy(&["stress guest 98%", "stress none"]),
];

const LATER: &[Number] = &[
    Number::at_least("slower", 1.0),
    Number::at_least("share_most", 0.25),
];
const BY: &[Number] = &[Number::between("shift_most_ms", 0.02, 10.0)];

const fn busy(levels: &'static [&'static str]) -> Expectation {
    Expectation {
        topic: Topic::Finding("parameter"),
        about: levels,
        claim: LATER,
        numbers: BY,
    }
}

/// The guest that answers has nothing to do; the one that works is on the other CPU.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(&["stress none"], &[Number::between("median_ms", 0.02, 2.0)]),
    Expectation::median(
        &["stress guest 98%"],
        &[Number::between("median_ms", 0.02, 2.0)],
    ),
];
