//! gallery/near-far: the near endpoint is farther than the far one.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "near-far",
    finding: "the near endpoint is farther than the far one",
    published: "source 1, section 5.1.2",
    plan: include_str!("../../../../gallery/near-far/plan.toml"),
    lab: include_str!("../../../../gallery/near-far/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/near-far/control.lab.toml"
    )),
    figure: "cdf-by-endpoint",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // 20 ms through the exchange against 8 ms, and a path that would reach 2,000 km.
    Expectation {
        topic: Topic::Finding("position"),
        about: &["CrownLabs Turin", "Azure Zurich"],
        claim: &[],
        numbers: &[
            Number::between("shift_ms", 11.5, 15.0),
            Number::between("path_km", 1990.0, 2200.0),
        ],
    },
];

/// 1 ms in the city, and 100 kB at 1 Gbit/s take 0.8 ms; Zurich as in the entry.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(
        &["CrownLabs Turin"],
        &[Number::between("median_ms", 1.8, 4.0)],
    ),
    Expectation::median(
        &["Azure Zurich"],
        &[Number::between("median_ms", 8.8, 11.0)],
    ),
];
