//! gallery/idle: after idling TCP begins slowly again.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "idle",
    finding: "after idling TCP begins slowly again",
    published: "source 1, section 5.4.2",
    plan: include_str!("../../../../gallery/idle/plan.toml"),
    lab: include_str!("../../../../gallery/idle/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!("../../../../gallery/idle/control.lab.toml")),
    figure: "boxes-by-interval",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // 10, 20 and 40 segments are 70: two round trips of 40 ms more, three if a segment is left
    // over, less what the 100 KB take on their way at once.
    Expectation {
        topic: Topic::Finding("interval"),
        about: &["1 s", "100 ms"],
        claim: &[Number::at_least("shift_ms", 20.0)],
        numbers: &[
            Number::between("shift_ms", 55.0, 125.0),
            Number::between("p", 0.0, 0.05),
        ],
    },
    // Two or three round trips of 40 ms in which the message waits for the window.
    Expectation {
        topic: Topic::Cause("slow-start-after-idle"),
        about: &["Zurich"],
        claim: &[],
        numbers: &[
            Number::between("round trip, ms", 39.9, 42.0),
            Number::between("wait for the window, round trips", 1.5, 3.2),
        ],
    },
];

/// 40 ms, however long the pause was.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(&["every 1 s"], &[Number::between("median_ms", 40.0, 43.0)]),
    Expectation::median(
        &["every 100 ms"],
        &[Number::between("median_ms", 40.0, 43.0)],
    ),
];
