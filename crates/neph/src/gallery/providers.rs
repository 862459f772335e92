//! gallery/providers: within one provider is faster than between two.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "providers",
    finding: "within one provider is faster than between two",
    published: "source 1, section 5.2.2",
    plan: include_str!("../../../../gallery/providers/plan.toml"),
    lab: include_str!("../../../../gallery/providers/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/providers/control.lab.toml"
    )),
    figure: "cdf-by-endpoint",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // Whoever changes the provider pays 16 ms at an exchange; the backbones differ by 2 ms.
    Expectation {
        topic: Topic::Finding("crossover"),
        about: &["AWS London", "AKS London"],
        claim: &[],
        numbers: &[
            // AKS London from AWS, which the plan names first; AWS London from AKS.
            Number::between("first_slower_ms", 15.0, 18.0),
            Number::between("second_slower_ms", 13.0, 16.0),
        ],
    },
];

/// Twice 66 ms, whoever asks whom.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(
        &["AWS London", "from aws-us"],
        &[Number::between("median_ms", 132.0, 135.0)],
    ),
    Expectation::median(
        &["AWS London", "from aks-us"],
        &[Number::between("median_ms", 132.0, 135.0)],
    ),
    Expectation::median(
        &["AKS London", "from aws-us"],
        &[Number::between("median_ms", 132.0, 135.0)],
    ),
    Expectation::median(
        &["AKS London", "from aks-us"],
        &[Number::between("median_ms", 132.0, 135.0)],
    ),
];
