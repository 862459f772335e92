//! The causes that a random lab can have, and how each is put in: so that it matters clearly, by at
//! least 1 ms and a twelfth of the response.
//!
//! Not among them: a starved client, because a prober in a lab has real-time priority, which a busy
//! service at its core does not take away (a `cpu_share` would, and is not drawn); and a clock step, because a
//! namespace has no clock of its own to be stepped.

use neph_stats::Random;

use crate::draw::{random_between, random_choice};
use crate::endpoint::{Balancer, Bulk, Endpoint, ExtraPath, PeriodicStop, Uplink};

/// A cause by its rule's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause {
    pub(crate) rule: &'static str,
    pub(crate) inject: fn(&mut Endpoint, &mut Random),
}

/// All of them. Those that say how an endpoint is asked stand before those that take it as it is.
pub(crate) const CAUSES: [Cause; 11] = [
    cause("ecmp-imbalance", ecmp),
    cause("slow-start-after-idle", idle),
    cause("serialisation", serialisation),
    cause("bufferbloat", bufferbloat),
    cause("head-of-line", head_of_line),
    cause("random-loss", random_loss),
    cause("connection-setup", connection_setup),
    cause("l7-proxy", proxy),
    cause("slow-server", slow_server),
    cause("icmp-differs", icmp),
    cause("stalled-peer", stalled_peer),
];

/// Causes that one endpoint can have together. Of all others one takes away what the other is seen
/// by, so they are put into different endpoints: a connection per message has no window to forget,
/// none that others wait for and no port that lasts; a queue, a slow link and a slow server make
/// messages wait longer than paths differ; large messages do not fit what shows a proxy; what waits
/// behind others never idles; and a loss closes the window that idling or the path closed before.
const COMPATIBLE: [(&str, &str); 13] = [
    ("ecmp-imbalance", "icmp-differs"),
    ("ecmp-imbalance", "slow-server"),
    ("slow-start-after-idle", "icmp-differs"),
    ("slow-start-after-idle", "slow-server"),
    ("serialisation", "icmp-differs"),
    ("serialisation", "slow-server"),
    ("bufferbloat", "icmp-differs"),
    ("head-of-line", "icmp-differs"),
    ("connection-setup", "l7-proxy"),
    ("connection-setup", "icmp-differs"),
    ("connection-setup", "slow-server"),
    ("l7-proxy", "icmp-differs"),
    ("l7-proxy", "slow-server"),
];

/// Whether one endpoint can have both.
pub(crate) fn can_share_endpoint(cause: &Cause, other: &Cause) -> bool {
    let (first_rule, other) = (cause.rule, other.rule);
    COMPATIBLE.contains(&(first_rule, other)) || COMPATIBLE.contains(&(other, first_rule))
}

const fn cause(rule: &'static str, inject: fn(&mut Endpoint, &mut Random)) -> Cause {
    Cause { rule, inject }
}

/// Two or three paths; eight ports, which all take the same one in one lab of 128.
fn ecmp(endpoint: &mut Endpoint, random: &mut Random) {
    endpoint.delay_ms = random_between(random, 2.0, 30.0);
    let step = (endpoint.round_trip_ms() * random_between(random, 0.25, 0.8)).max(2.0);
    for number in 0..2 + random.below(2) {
        let longer = step * f64::from(u8::try_from(number).expect("three"));
        endpoint
            .extra_paths
            .push(extra_path(endpoint.delay_ms + longer));
    }
    endpoint.ports = ports(random);
    (endpoint.interval_ms, endpoint.seconds) = (20, 0.4);
}

pub(crate) fn extra_path(delay_ms: f64) -> ExtraPath {
    ExtraPath {
        delay_ms,
        protocol: None,
        loss_percent: 0.0,
    }
}

pub(crate) fn ports(random: &mut Random) -> Vec<u16> {
    let first = 40_000 + u16::try_from(random.below(5_000)).expect("few");
    (first..first + 8).collect()
}

/// The client's sysctl is the lab's.
fn idle(endpoint: &mut Endpoint, random: &mut Random) {
    endpoint.delay_ms = random_between(random, 8.0, 40.0);
    rare_and_large(endpoint, random);
}

/// Messages of many segments, farther apart than the retransmission timeout.
pub(crate) fn rare_and_large(endpoint: &mut Endpoint, random: &mut Random) {
    endpoint.loss_percent = 0.0;
    endpoint.sizes = vec![40_000 + 1_000 * random.below(80) as u64];
    endpoint.interval_ms = 350 + 50 * random.below(3) as u64 + rounded(5.0 * endpoint.delay_ms);
    endpoint.seconds = seconds(6 * endpoint.interval_ms);
}

fn serialisation(endpoint: &mut Endpoint, random: &mut Random) {
    let mbit = random_between(random, 1.0, 8.0);
    endpoint.delay_ms = endpoint.delay_ms.min(40.0);
    let uplink = Uplink {
        mbit,
        queue_kib: random_between(random, 64.0, 256.0).round(),
        discipline: "drop-tail",
    };
    endpoint.uplink = Some(uplink);
    // The larger takes at least 8 ms more, and a sixth of the path.
    let min_bytes = (mbit * 1e3 * endpoint.round_trip_ms() / 6.0 / 8.0).max(mbit * 1e3);
    let large = min_bytes.max(4_000.0) * random_between(random, 1.0, 1.5);
    endpoint.sizes = vec![random_choice(random, &[64, 256, 500]), rounded(large)];
    endpoint.interval_ms = 100 + rounded(2.0 * uplink.millis(large));
    endpoint.seconds = seconds(9 * endpoint.interval_ms);
}

/// A queue that takes long to fill up and to drain, beside the path.
fn bufferbloat(endpoint: &mut Endpoint, random: &mut Random) {
    endpoint.delay_ms = random_between(random, 3.0, 25.0);
    let mbit = random_between(random, 4.0, 20.0);
    let queue_ms = random_between(random, 60.0, 200.0) + endpoint.round_trip_ms();
    bulk_on_an_uplink(endpoint, random);
    endpoint.uplink = Some(Uplink {
        mbit,
        queue_kib: (mbit * 1e3 * queue_ms / 8.0 / 1024.0).round(),
        discipline: "drop-tail",
    });
}

/// An upload, and messages so small that the link's rate is none of their business.
pub(crate) fn bulk_on_an_uplink(endpoint: &mut Endpoint, random: &mut Random) {
    let start = random_between(random, 0.6, 0.9);
    let until = start + random_between(random, 1.2, 1.5);
    endpoint.bulk = Some(Bulk { at: start, until });
    endpoint.sizes = vec![random_choice(random, &[64, 100, 150])];
    endpoint.loss_percent = 0.0;
    (endpoint.interval_ms, endpoint.seconds) = (random_choice(random, &[30, 40, 50]), 3.4);
}

/// Over so long a path that TCP's window takes half of an experiment to become large enough.
fn head_of_line(endpoint: &mut Endpoint, random: &mut Random) {
    endpoint.delay_ms = random_between(random, 60.0, 110.0);
    frequent_and_large(endpoint, random);
}

pub(crate) fn frequent_and_large(endpoint: &mut Endpoint, random: &mut Random) {
    endpoint.loss_percent = 0.0;
    endpoint.sizes = vec![80_000 + 1_000 * random.below(40) as u64];
    endpoint.interval_ms = random_choice(random, &[16, 20, 25]);
    endpoint.seconds = 2.0;
}

/// Damaged segments or datagrams, or datagrams that overtake others: ten and more are expected in one
/// experiment, for the rule wants five. Messages of one segment, a few under way at a time: losses
/// leave a window of six or so, and more would truly wait in the sender.
fn random_loss(endpoint: &mut Endpoint, random: &mut Random) {
    endpoint.delay_ms = random_between(random, 3.0, 12.0);
    (endpoint.interval_ms, endpoint.seconds) = (10, 2.5);
    match random.below(3) {
        0 => endpoint.corrupt_percent = random_between(random, 4.0, 6.0),
        1 => {
            endpoint.scheme = "udp";
            endpoint.corrupt_percent = random_between(random, 6.0, 12.0);
        }
        _ => {
            endpoint.scheme = "udp";
            endpoint.delay_ms += 10.0;
            endpoint.reorder_percent = random_between(random, 6.0, 12.0);
        }
    }
}

fn connection_setup(endpoint: &mut Endpoint, random: &mut Random) {
    endpoint.new_connection = true;
    requests(endpoint, random);
}

/// HTTP, with a version of TLS or without.
pub(crate) fn requests(endpoint: &mut Endpoint, random: &mut Random) {
    let version = random_choice(random, &["", "1.2", "1.3"]);
    endpoint.tls = version;
    endpoint.scheme = if version.is_empty() { "http" } else { "https" };
    endpoint.interval_ms = endpoint.interval_ms.max(40);
}

/// Small messages: a proxy that acknowledges with the reply is distinguished from a slow link only by how
/// little bytes a message has.
fn proxy(endpoint: &mut Endpoint, random: &mut Random) {
    endpoint.sizes = vec![random_choice(random, &[64, 100, 150])];
    endpoint.reply = random_choice(random, &[64, 100]);
    let delay_ms = (endpoint.delay_ms / 10.0).max(2.0) * random_between(random, 1.0, 3.0);
    let (kind, keys) = random_choice(
        random,
        &[
            ("haproxy", "mode = \"http\""),
            ("haproxy", "mode = \"tcp\""),
            ("nginx", ""),
        ],
    );
    endpoint.balancer = Some(Balancer {
        kind,
        keys,
        delay_ms,
    });
    // It would have to have the certificate; without TLS it is the same.
    if endpoint.scheme == "https" {
        endpoint.scheme = "http";
    }
}

fn slow_server(endpoint: &mut Endpoint, random: &mut Random) {
    endpoint.delay_ms = endpoint.delay_ms.min(25.0);
    endpoint.processing_ms = endpoint.round_trip_ms() * random_between(random, 1.0, 2.5) + 2.0;
    // One after the other: what comes faster would wait for those before.
    endpoint.interval_ms = endpoint
        .interval_ms
        .max(rounded(1.5 * endpoint.processing_ms));
    endpoint.seconds = endpoint.seconds.max(seconds(10 * endpoint.interval_ms));
}

/// Another path, one that loses what others do not, or a balancer that answers in the server's
/// stead.
fn icmp(endpoint: &mut Endpoint, random: &mut Random) {
    if endpoint.balancer.is_none() && random.below(4) == 0 {
        endpoint.balancer = Some(Balancer {
            kind: "l4",
            keys: "",
            delay_ms: endpoint.delay_ms * random_between(random, 0.2, 0.8) + 1.0,
        });
        return;
    }
    if endpoint.extra_paths.is_empty() {
        endpoint.extra_paths.push(extra_path(endpoint.delay_ms));
    }
    let shift = (endpoint.round_trip_ms() * random_between(random, 0.2, 0.8)).max(1.5);
    let mut echoes = ExtraPath {
        protocol: Some("icmp"),
        ..extra_path(endpoint.delay_ms)
    };
    // Losses take longer to be seen than so many flows have.
    match random.below(3) {
        0 if endpoint.ports.is_empty() => {
            echoes.loss_percent = random_between(random, 40.0, 70.0);
            endpoint.seconds = endpoint.seconds.max(2.0);
        }
        1 if endpoint.delay_ms > shift => echoes.delay_ms -= shift,
        _ => echoes.delay_ms += shift,
    }
    endpoint.extra_paths.push(echoes);
}

/// The server's process stands still for 0.3 to 0.9 of a period.
fn stalled_peer(endpoint: &mut Endpoint, random: &mut Random) {
    endpoint.delay_ms = endpoint.delay_ms.min(25.0);
    match random.below(3) {
        0 => {}
        1 => endpoint.scheme = "udp",
        _ => requests(endpoint, random),
    }
    endpoint.interval_ms = random_choice(random, &[10, 20]);
    let period = random_between(random, 0.4, 0.8);
    let stopped_s = period * random_between(random, 0.3, 0.9);
    endpoint.periodic_stop = Some(PeriodicStop {
        stopped_s,
        running_s: period - stopped_s,
    });
    endpoint.seconds = 2.6;
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small positive numbers"
)]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

fn seconds(millis: u64) -> f64 {
    f64::from(u32::try_from(millis).expect("seconds")) / 1e3
}
