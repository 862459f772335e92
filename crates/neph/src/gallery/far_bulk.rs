//! gallery/far-bulk: large messages over a long path wait for those before them.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "far-bulk",
    finding: "large messages over a long path wait for those before them",
    published: "source 1, section 5.2.1",
    plan: include_str!("../../../../gallery/far-bulk/plan.toml"),
    lab: include_str!("../../../../gallery/far-bulk/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/far-bulk/control.lab.toml"
    )),
    figure: "timeline",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &["random-loss"],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // The window that CUBIC keeps with two losses in 10,000 packets and 160 ms carries less than
    // half of 40 Mbit/s: messages wait for it longer than they travel.
    Expectation {
        topic: Topic::Finding("ledger"),
        about: &["send window"],
        claim: &[],
        numbers: &[Number::between("share_most", 0.5, 1.0)],
    },
    // A message is written while the one before it still waits for the window.
    Expectation {
        topic: Topic::Cause("head-of-line"),
        about: &["CrownLabs"],
        claim: &[],
        numbers: &[
            Number::between("messages that wait", 0.3, 1.0),
            Number::between("round trip, ms", 159.0, 170.0),
        ],
    },
];

/// 4 ms, and 100 kB at 500 Mbit/s take 1.6 ms.
const OF_CONTROL: &[Expectation] = &[Expectation::median(
    &["CrownLabs"],
    &[Number::between("median_ms", 5.6, 9.0)],
)];
