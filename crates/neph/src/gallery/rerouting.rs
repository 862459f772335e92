//! gallery/rerouting: flows change their paths within seconds.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};

pub(super) const ENTRY: Entry = Entry {
    name: "rerouting",
    finding: "flows change their paths within seconds",
    published: "source 3, 'path changes at a second-level time scale'",
    plan: include_str!("../../../../gallery/rerouting/plan.toml"),
    lab: include_str!("../../../../gallery/rerouting/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/rerouting/control.lab.toml"
    )),
    figure: "flow-persistence",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // Three in four flows move, 8 times in 120 s: 180 for each flow and hour. A stay ends after 8 s
    // or 22 s with 3 in 4: of all stays 37.5 % within 10 s (the source: 40 %).
    Expectation::of_flows_with_claim(
        &["virginia"],
        &[Number::at_least("changes", 1.0)],
        &[
            Number::between("changes_per_flow_hour", 165.0, 195.0),
            Number::between("leave_soon", 0.33, 0.42),
            Number::between("classes", 4.0, 4.0),
        ],
    ),
];

/// The same four paths, and nobody leaves one.
const OF_CONTROL: &[Expectation] = &[Expectation::of_flows(
    &["virginia"],
    &[
        Number::between("classes", 4.0, 4.0),
        Number::between("changes", 0.0, 0.0),
    ],
)];
