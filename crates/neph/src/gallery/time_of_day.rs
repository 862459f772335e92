//! gallery/time-of-day: the time of day makes no difference.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "time-of-day",
    finding: "the time of day makes no difference",
    published: "source 1, section 5.2.3",
    plan: include_str!("../../../../gallery/time-of-day/plan.toml"),
    lab: include_str!("../../../../gallery/time-of-day/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/time-of-day/control.lab.toml"
    )),
    figure: "boxes-by-endpoint",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // Six links alike; all 15 pairs of hours lie within the margin of 1 ms.
    Expectation {
        topic: Topic::Finding("equivalence"),
        about: &["09:00", "11:00", "13:00", "15:00", "17:00", "19:00"],
        claim: &[],
        numbers: &[
            Number::between("equivalent_pairs", 15.0, 15.0),
            Number::between("reach_ms", 0.0, 0.99),
        ],
    },
];

/// 20 ms, and 1.5 ms more at 17:00.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(&["09:00"], &[Number::between("median_ms", 20.0, 21.4)]),
    Expectation::median(&["17:00"], &[Number::between("median_ms", 21.5, 23.0)]),
];
