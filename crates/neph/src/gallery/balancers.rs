//! gallery/balancers: a layer 7 balancer ends connections, and adds little.

use super::entry::{Control, Entry};
use super::expectation::{Expectation, Number};
use super::said::Topic;

pub(super) const ENTRY: Entry = Entry {
    name: "balancers",
    finding: "a layer 7 balancer ends connections on the way, and adds little",
    published: "source 1, section 5.1.3",
    plan: include_str!("../../../../gallery/balancers/plan.toml"),
    lab: include_str!("../../../../gallery/balancers/lab.toml"),
    seasons: &[],
    control: Control::Lab(include_str!(
        "../../../../gallery/balancers/control.lab.toml"
    )),
    figure: "cdf-by-endpoint",
    expected: EXPECTED,
    of_control: OF_CONTROL,
    also: &[],
    innocent: &["L4"],
};

const EXPECTED: &[Expectation] = &[
    // HAProxy acknowledges after 8 ms; the server behind it is 1 ms farther, and the proxy's own
    // work takes some tenths of a millisecond.
    Expectation {
        topic: Topic::Cause("l7-proxy"),
        about: &["L7"],
        claim: &[],
        numbers: &[
            Number::between("TCP's least round trip, ms", 7.9, 8.6),
            Number::between("behind the proxy, ms", 0.9, 2.0),
        ],
    },
];

/// 9 ms to the server, over either.
const OF_CONTROL: &[Expectation] = &[
    Expectation::median(&["L4"], &[Number::between("median_ms", 9.0, 11.0)]),
    Expectation::median(&["L7"], &[Number::between("median_ms", 9.0, 11.0)]),
];
