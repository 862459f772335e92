//! What looks like a cause and is none: an endpoint without a cause is given one of them.

use neph_stats::Random;

use crate::causes::{
    bulk_on_an_uplink, extra_path, frequent_and_large, ports, rare_and_large, requests,
};
use crate::draw::{random_between, random_choice};
use crate::endpoint::{Balancer, Endpoint, ExtraPath, Uplink};

/// All of them.
pub(crate) const DECOYS: [fn(&mut Endpoint, &mut Random); 10] = [
    |_, _| {},
    |endpoint, random| {
        // Equal paths of equal length.
        endpoint.extra_paths = vec![extra_path(endpoint.delay_ms), extra_path(endpoint.delay_ms)];
        endpoint.ports = ports(random)[..4].to_vec();
        (endpoint.interval_ms, endpoint.seconds) = (20, 0.4);
    },
    // Rare and large, from a client that keeps its window.
    rare_and_large,
    |endpoint, random| {
        // Sizes on a link that is not slow.
        endpoint.uplink = Some(Uplink {
            mbit: random_between(random, 200.0, 900.0),
            queue_kib: 1024.0,
            discipline: "drop-tail",
        });
        endpoint.sizes = vec![200, 10_000];
    },
    |endpoint, random| {
        // An upload behind CoDel.
        endpoint.delay_ms = random_between(random, 15.0, 25.0);
        bulk_on_an_uplink(endpoint, random);
        endpoint.uplink = Some(Uplink {
            mbit: random_between(random, 8.0, 20.0),
            queue_kib: 512.0,
            discipline: "codel",
        });
    },
    |endpoint, random| {
        // Frequent and large, next door.
        endpoint.delay_ms = random_between(random, 0.3, 1.0);
        frequent_and_large(endpoint, random);
        endpoint.seconds = 1.0;
    },
    // HTTP over a connection that lasts.
    requests,
    |endpoint, random| {
        // A balancer that does not end connections; it answers echoes itself, so it is near.
        endpoint.balancer = Some(Balancer {
            kind: "l4",
            keys: "",
            delay_ms: random_between(random, 0.02, 0.08),
        });
    },
    |endpoint, random| endpoint.processing_ms = random_choice(random, &[0.03, 0.06, 0.1]),
    |endpoint, _| {
        // A path for echoes that is as long as the messages'.
        let echoes = ExtraPath {
            protocol: Some("icmp"),
            ..extra_path(endpoint.delay_ms)
        };
        endpoint.extra_paths = vec![extra_path(endpoint.delay_ms), echoes];
    },
];
