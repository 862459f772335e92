//! gallery/transfers: a slow path makes 1 KB transfers 18 % longer.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "transfers",
    finding: "a slow path makes 1 KB transfers 18 % longer",
    published: "source 3, 'Moving 1K of data'",
    plan: include_str!("../../../../gallery/transfers/plan.toml"),
    lab: include_str!("../../../../gallery/transfers/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/transfers/control.lab.toml"
    )),
    figure: "cdf-by-endpoint",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &["connection-setup"],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // Two round trips each: 165.2 ms against 140 ms, which are 18 % more.
    Expectation {
        topic: Topic::Finding("endpoint"),
        about: &["slow path", "fast path"],
        claim: &[Number::at_least("slower", 1.0)],
        numbers: &[
            Number::between("shift_most_ms", 24.5, 26.5),
            Number::between("share_most", 0.17, 0.19),
        ],
    },
];

/// Two round trips of 70 ms, for the connection and for the message.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(
        &["fast path"],
        &[Number::between("median_ms", 140.0, 142.5)],
    ),
    Expectation::median(
        &["slow path"],
        &[Number::between("median_ms", 140.0, 142.5)],
    ),
];
