//! gallery/advice: a source port that was advised stays on the low path.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "advice",
    finding: "a source port that was advised stays on the low path",
    published: "source 3, 'selfish routing'",
    plan: include_str!("../../../../gallery/advice/plan.toml"),
    lab: include_str!("../../../../gallery/advice/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!("../../../../gallery/advice/control.lab.toml")),
    figure: "boxes-by-endpoint",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &["ecmp-imbalance"],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // 78 ms against 70 ms.
    Expectation {
        topic: Topic::Finding("endpoint"),
        about: &["next port", "advised port"],
        claim: &[Number::at_least("slower", 1.0)],
        numbers: &[Number::between("shift_most_ms", 7.8, 8.2)],
    },
];

/// 70 ms, whichever port.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(
        &["advised port"],
        &[Number::between("median_ms", 70.0, 70.5)],
    ),
    Expectation::median(&["any port"], &[Number::between("median_ms", 70.0, 70.5)]),
];
