//! gallery/guest-pinned: a guest that shares its CPU with a hashing one answers later.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "guest-pinned",
    finding: "a guest that shares its CPU with a hashing one answers later",
    published: "source 2, sections 4.3 and 4.4",
    plan: include_str!("../../../../gallery/guest-pinned/plan.toml"),
    lab: include_str!("../../../../gallery/guest-pinned/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/guest-pinned/control.lab.toml"
    )),
    figure: "boxes-by-stress",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // The neighbour has to be put aside before the guest can run.
    Expectation {
        topic: Topic::Finding("parameter"),
        about: &["stress neighbour 95%", "stress none"],
        claim: &[
            Number::at_least("slower", 1.0),
            Number::at_least("share_most", 0.2),
        ],
        numbers: &[Number::between("shift_most_ms", 0.02, 10.0)],
    },
];

/// As fast as a guest with nothing beside it.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(&["stress none"], &[Number::between("median_ms", 0.02, 2.0)]),
    Expectation::median(
        &["stress neighbour 95%"],
        &[Number::between("median_ms", 0.02, 2.0)],
    ),
];
