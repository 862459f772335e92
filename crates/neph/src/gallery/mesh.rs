//! gallery/mesh: some pairs of regions have paths that are a third longer than others.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};

pub(super) const ENTRY: Entry = Entry {
    name: "mesh",
    finding: "some pairs of regions have paths that are a third longer than others",
    published: "source 3, 'Latency inflation'",
    plan: include_str!("../../../../gallery/mesh/plan.toml"),
    lab: include_str!("../../../../gallery/mesh/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!("../../../../gallery/mesh/control.lab.toml")),
    figure: "flow-inflation",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // 78.4, 232.4, 100.8, 142.8 and 140.8 ms over 70, 176, 96, 140 and 138 ms.
    pair(
        &["virginia"],
        &[
            Number::between("classes", 3.0, 3.0),
            Number::between("inflation", 0.115, 0.125),
        ],
    ),
    pair(
        &["saopaulo"],
        &[
            Number::between("classes", 4.0, 4.0),
            Number::between("inflation", 0.316, 0.325),
        ],
    ),
    pair(
        &["tokyo"],
        &[
            Number::between("classes", 2.0, 2.0),
            Number::between("inflation", 0.045, 0.055),
        ],
    ),
    pair(
        &["frankfurt"],
        &[
            Number::between("classes", 2.0, 2.0),
            Number::between("inflation", 0.017, 0.023),
        ],
    ),
    pair(
        &["sydney"],
        &[
            Number::between("classes", 3.0, 3.0),
            Number::between("inflation", 0.017, 0.023),
        ],
    ),
];

const SEVERAL: &[Number] = &[Number::at_least("classes", 2.0)];

const fn pair(name: &'static [&'static str], numbers: &'static [Number]) -> Expectation {
    Expectation::of_flows_with_claim(name, SEVERAL, numbers)
}

/// One class each.
const OF_CONTROL: &[Expectation] = &[
    Expectation::of_flows(&["virginia"], &[Number::between("classes", 1.0, 1.0)]),
    Expectation::of_flows(&["saopaulo"], &[Number::between("classes", 1.0, 1.0)]),
    Expectation::of_flows(&["tokyo"], &[Number::between("classes", 1.0, 1.0)]),
];
