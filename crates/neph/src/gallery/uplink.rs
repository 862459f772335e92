//! gallery/uplink: a narrow uplink slows even small messages.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "uplink",
    finding: "a narrow uplink slows even small messages",
    published: "source 1, section 5.3.1",
    plan: include_str!("../../../../gallery/uplink/plan.toml"),
    lab: include_str!("../../../../gallery/uplink/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!("../../../../gallery/uplink/control.lab.toml")),
    figure: "cdf-by-from",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &[],
};

const EXPECTED: &[Expectation] = &[
    // (1 / 3 - 1 / 15) us for each bit: 2.3 ms for 1 KB with its headers, 111 ms for 50 KB.
    Expectation {
        topic: Topic::Finding("parameter"),
        about: &["from rimini", "from turin"],
        claim: &[Number::at_least("slower", 1.0)],
        numbers: &[
            Number::between("slower", 3.0, 3.0),
            Number::between("shift_least_ms", 2.0, 3.5),
            Number::between("shift_most_ms", 100.0, 125.0),
        ],
    },
    // The costlier one is Rimini's uplink of 3 Mbit/s, less its headers.
    Expectation {
        topic: Topic::Cause("serialisation"),
        about: &["from rimini"],
        claim: &[],
        numbers: &[Number::between("rate, Mbit/s", 2.7, 3.1)],
    },
];

/// 35 ms; at 1 Gbit/s 50 kB take 0.4 ms.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(
        &["1 kB", "from rimini"],
        &[Number::between("median_ms", 35.0, 37.0)],
    ),
    Expectation::median(
        &["50 kB", "from rimini"],
        &[Number::between("median_ms", 35.4, 38.0)],
    ),
];
