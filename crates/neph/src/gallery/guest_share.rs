//! gallery/guest-share: most of a guest's round trip is the way into it and out of it.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "guest-share",
    finding: "most of a guest's round trip is the way into it and out of it",
    published: "source 2, section 4.6",
    plan: include_str!("../../../../gallery/guest-share/plan.toml"),
    lab: include_str!("../../../../gallery/guest-share/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/guest-share/control.lab.toml"
    )),
    figure: "boxes-by-endpoint",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // More than 70 % of the round trip (the source: 70 to 75 %): 2.33 times what is left without
    // the guest.
    Expectation {
        topic: Topic::Finding("endpoint"),
        about: &["guest", "namespace"],
        claim: &[
            Number::at_least("slower", 3.0),
            Number::at_least("share_most", 1.0),
        ],
        numbers: &[Number::at_least("share_most", 2.33)],
    },
];

/// Nothing but the kernel that both share.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(&["guest"], &[Number::between("median_ms", 0.01, 0.25)]),
    Expectation::median(&["namespace"], &[Number::between("median_ms", 0.01, 0.25)]),
];
