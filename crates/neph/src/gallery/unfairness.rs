//! gallery/unfairness: one flow in three has 12 % more latency than the others.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};

pub(super) const ENTRY: Entry = Entry {
    name: "unfairness",
    finding: "one flow in three has 12 % more latency than the others",
    published: "source 3, 'the level of unfairness among flows'",
    plan: include_str!("../../../../gallery/unfairness/plan.toml"),
    lab: include_str!("../../../../gallery/unfairness/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/unfairness/control.lab.toml"
    )),
    figure: "flow-fairness",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // 78.4 ms over 70 ms.
    Expectation::of_flows_with_claim(
        &["virginia"],
        &[Number::at_least("unfairness", 0.01)],
        &[
            Number::between("unfairness", 0.115, 0.125),
            Number::between("classes", 2.0, 2.0),
        ],
    ),
];

/// 70 ms for every flow.
const OF_CONTROL: &[Expectation] = &[Expectation::of_flows(
    &["virginia"],
    &[
        Number::between("classes", 1.0, 1.0),
        Number::between("unfairness", 0.0, 0.005),
    ],
)];
