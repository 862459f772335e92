//! gallery/rest: a connection per message costs round trips.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "rest",
    finding: "a connection per message costs round trips",
    published: "source 1, section 5.4.3",
    plan: include_str!("../../../../gallery/rest/plan.toml"),
    lab: include_str!("../../../../gallery/rest/lab.toml"),
    seasons: &[],
    control: Control::Plan(include_str!("../../../../gallery/rest/control.toml")),
    figure: "cdf-by-endpoint",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &["persistent"],
};

const EXPECTED: &[Expectation] = &[
    // One round trip of 8 ms more for TCP, one for TLS 1.3, another for TLS 1.2.
    Expectation {
        topic: Topic::Finding("endpoint"),
        about: &["REST", "persistent"],
        claim: &[Number::at_least("slower", 1.0)],
        numbers: &[Number::between("shift_most_ms", 7.5, 9.5)],
    },
    Expectation {
        topic: Topic::Finding("endpoint"),
        about: &["REST, TLS 1.3", "persistent"],
        claim: &[Number::at_least("slower", 1.0)],
        numbers: &[Number::between("shift_most_ms", 15.5, 20.0)],
    },
    Expectation {
        topic: Topic::Finding("endpoint"),
        about: &["REST, TLS 1.2", "persistent"],
        claim: &[Number::at_least("slower", 1.0)],
        numbers: &[Number::between("shift_most_ms", 23.5, 28.5)],
    },
    // The costliest: a TCP handshake of 8 ms, and TLS 1.2 with two round trips more.
    Expectation {
        topic: Topic::Cause("connection-setup"),
        about: &["REST, TLS 1.2"],
        claim: &[],
        numbers: &[
            Number::between("handshakes above TCP, round trips", 1.8, 2.6),
            Number::between("connect, ms", 7.9, 9.5),
        ],
    },
];

/// One round trip of 8 ms, whatever the protocol.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(&["persistent"], &[Number::between("median_ms", 8.0, 10.0)]),
    Expectation::median(
        &["REST, TLS 1.2"],
        &[Number::between("median_ms", 8.0, 10.0)],
    ),
];
