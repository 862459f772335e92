//! What looks like a cause and is none: an endpoint without a cause is given one of them.

use neph_stats::Random;

use crate::causes::{
    bulk_on_an_uplink, extra_path, frequent_and_large, ports, rare_and_large, requests,
};
use crate::draw::{between, one_of};
use crate::endpoint::{Endpoint, ExtraPath, Middle, Uplink};

/// All of them.
pub(crate) const DECOYS: [fn(&mut Endpoint, &mut Random); 10] = [
    |_, _| {},
    |at, random| {
        // Equal paths of equal length.
        at.extra_paths = vec![extra_path(at.delay_ms), extra_path(at.delay_ms)];
        at.ports = ports(random)[..4].to_vec();
        (at.interval_ms, at.seconds) = (20, 0.4);
    },
    // Rare and large, from a client that keeps its window.
    rare_and_large,
    |at, random| {
        // Sizes on a link that is not slow.
        at.uplink = Some(Uplink {
            mbit: between(random, 200.0, 900.0),
            queue_kib: 1024.0,
            discipline: "drop-tail",
        });
        at.sizes = vec![200, 10_000];
    },
    |at, random| {
        // An upload behind CoDel.
        at.delay_ms = between(random, 15.0, 25.0);
        bulk_on_an_uplink(at, random);
        at.uplink = Some(Uplink {
            mbit: between(random, 8.0, 20.0),
            queue_kib: 512.0,
            discipline: "codel",
        });
    },
    |at, random| {
        // Frequent and large, next door.
        at.delay_ms = between(random, 0.3, 1.0);
        frequent_and_large(at, random);
        at.seconds = 1.0;
    },
    // HTTP over a connection that lasts.
    requests,
    |at, random| {
        // A balancer that does not end connections; it answers echoes itself, so it is near.
        at.middle = Some(Middle {
            kind: "l4",
            keys: "",
            delay_ms: between(random, 0.02, 0.08),
        });
    },
    |at, random| at.think_ms = one_of(random, &[0.03, 0.06, 0.1]),
    |at, _| {
        // A path for echoes that is as long as the messages'.
        let echoes = ExtraPath {
            only: Some("icmp"),
            ..extra_path(at.delay_ms)
        };
        at.extra_paths = vec![extra_path(at.delay_ms), echoes];
    },
];
