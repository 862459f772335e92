//! gallery/bufferbloat: an upload fills the queue that every message waits in.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "bufferbloat",
    finding: "an upload fills the queue that every message waits in",
    published: "source 1, section 5.4.1",
    plan: include_str!("../../../../gallery/bufferbloat/plan.toml"),
    lab: include_str!("../../../../gallery/bufferbloat/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/bufferbloat/control.lab.toml"
    )),
    figure: "timeline",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // 35 ms without the queue, 140 ms more when its 256 KiB are full; CUBIC keeps seven tenths of
    // its window at a loss and more of it from then on. From 15 to 40 s.
    Expectation {
        topic: Topic::Cause("bufferbloat"),
        about: &["CrownLabs"],
        claim: &[],
        numbers: &[
            Number::between("path alone, ms", 35.0, 38.0),
            Number::between("median in the stretch, ms", 120.0, 180.0),
            Number::between("from, s", 14.5, 18.0),
            Number::between("to, s", 37.0, 42.0),
        ],
    },
];

/// 35 ms, and CoDel's 5 ms in the half of the time that has the upload.
const OF_CONTROL: &[Expectation] = &[Expectation::median(
    &["CrownLabs"],
    &[Number::between("median_ms", 35.0, 40.0)],
)];
