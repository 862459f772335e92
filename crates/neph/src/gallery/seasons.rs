//! gallery/seasons: flows change paths more often in the high season.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};

pub(super) const ENTRY: Entry = Entry {
    name: "seasons",
    finding: "flows change paths more often in the high season",
    published: "source 3, 'low and high season'",
    plan: include_str!("../../../../gallery/seasons/plan.toml"),
    lab: include_str!("../../../../gallery/seasons/lab.toml"),
    seasons: &[(
        "high.lab.toml",
        include_str!("../../../../gallery/seasons/high.lab.toml"),
    )],
    control: Control::Plan(include_str!("../../../../gallery/seasons/control.toml")),
    figure: "flow-change-counts",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // Two changes of three in four flows more in 8 s: 675 for each flow and hour, and up to a third
    // more, as a flow's first second is in no rate.
    Expectation::of_flows_with_claim(
        &["virginia", "season high", "season low"],
        &[
            Number::at_least("changes_per_flow_hour_shift", 100.0),
            Number::between("changes_per_flow_hour_p_holm", 0.0, 0.05),
        ],
        &[
            Number::between("changes_per_flow_hour_shift", 600.0, 900.0),
            Number::between("inflation_shift", -0.01, 0.01),
        ],
    ),
];

/// The same network twice: no difference.
const OF_CONTROL: &[Expectation] = &[Expectation::of_flows(
    &["virginia", "season high", "season low"],
    &[Number::between("changes_per_flow_hour_shift", -50.0, 50.0)],
)];
