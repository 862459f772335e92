//! gallery/far-bulk: large messages over a long path wait for those before them.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};

pub(super) const ENTRY: Entry = Entry {
    name: "far-bulk",
    finding: "large messages over a long path wait for those before them",
    published: "thesis, section 5.2.1",
    plan: include_str!("../../../../gallery/far-bulk/plan.toml"),
    lab: include_str!("../../../../gallery/far-bulk/lab.toml"),
    control: Control::Lab(include_str!(
        "../../../../gallery/far-bulk/control.lab.toml"
    )),
    figure: "timeline",
    expected: EXPECTED,
};

const EXPECTED: &[Expectation] = &[
    // The window that CUBIC keeps with two losses in 10,000 packets and 160 ms carries less than
    // half of 40 Mbit/s: messages wait for it longer than they travel.
    Expectation {
        topic: "ledger",
        about: &["send window"],
        claim: &[],
        numbers: &[Number::between("share_most", 0.5, 1.0)],
    },
];
