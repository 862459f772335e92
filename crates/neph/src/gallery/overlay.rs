//! gallery/overlay: an overlay is as fast as what lies beneath it.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "overlay",
    finding: "an overlay is as fast as what lies beneath it",
    published: "source 5, table 2 and appendix D",
    plan: include_str!("../../../../gallery/overlay/plan.toml"),
    lab: include_str!("../../../../gallery/overlay/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!("../../../../gallery/overlay/control.lab.toml")),
    figure: "boxes-by-endpoint",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    within(&[
        "AMS-MIL",
        "AMS-MIL libnet",
        "AMS-MIL weave",
        "AMS-MIL flannel",
    ]),
    within(&[
        "AMS-LJU",
        "AMS-LJU libnet",
        "AMS-LJU weave",
        "AMS-LJU flannel",
    ]),
    within(&[
        "AMS-BRA",
        "AMS-BRA libnet",
        "AMS-BRA weave",
        "AMS-BRA flannel",
    ]),
    within(&[
        "MIL-LJU",
        "MIL-LJU libnet",
        "MIL-LJU weave",
        "MIL-LJU flannel",
    ]),
    within(&[
        "MIL-BRA",
        "MIL-BRA libnet",
        "MIL-BRA weave",
        "MIL-BRA flannel",
    ]),
    within(&[
        "BRA-LJU",
        "BRA-LJU libnet",
        "BRA-LJU weave",
        "BRA-LJU flannel",
    ]),
];

/// Underlay and three overlays are six pairs, all of them within the margin of 0.5 ms.
const WITHIN: &[Number] = &[
    Number::between("equivalent_pairs", 6.0, 6.0),
    Number::between("reach_ms", 0.0, 0.5),
];

const fn within(circuit: &'static [&'static str]) -> Expectation {
    Expectation {
        topic: Topic::Finding("equivalence"),
        about: circuit,
        claim: &[],
        numbers: WITHIN,
    }
}

/// 36.5 ms, and 1 ms more between the machines that Flannel's containers live on.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(&["AMS-MIL"], &[Number::between("median_ms", 36.5, 38.0)]),
    Expectation::median(
        &["AMS-MIL flannel"],
        &[Number::between("median_ms", 37.5, 39.5)],
    ),
];
