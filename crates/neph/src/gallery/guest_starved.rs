//! gallery/guest-starved: a starved guest answers in bursts, and no queue is to blame.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "guest-starved",
    finding: "a starved guest answers in bursts, and no queue is to blame",
    published: "source 2, sections 4.3 and 5",
    plan: include_str!("../../../../gallery/guest-starved/plan.toml"),
    lab: include_str!("../../../../gallery/guest-starved/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/guest-starved/control.lab.toml"
    )),
    figure: "timeline",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // A fifth of each period of 100 ms or less; what waits falls by a millisecond each millisecond.
    Expectation {
        topic: Topic::Cause("stalled-peer"),
        about: &["guest", "stress guest 95%"],
        claim: &[],
        numbers: &[
            Number::between("length at the median, ms", 10.0, 100.0),
            Number::between("slope of the delay, ms/ms", -1.1, -0.85),
        ],
    },
];

/// Busy, and never stopped.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(&["stress none"], &[Number::between("median_ms", 0.02, 2.0)]),
    Expectation::median(
        &["stress guest 95%"],
        &[Number::between("median_ms", 0.02, 4.0)],
    ),
];
