//! The causes that a random lab can have, and how each is put in: so that it matters clearly, by at
//! least 1 ms and a twelfth of the response.
//!
//! Not among them: a starved client, because a prober in a lab has real-time priority, which a busy
//! service at its core does not take away (a `cpu_share` would, and is not drawn); and a clock step, because a
//! namespace has no clock of its own to be stepped.

use neph_stats::Random;

use crate::draw::{between, one_of};
use crate::endpoint::{Bulk, Endpoint, ExtraPath, Middle, Stops, Uplink};

/// A cause by its rule's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause {
    pub(crate) rule: &'static str,
    pub(crate) put_in: fn(&mut Endpoint, &mut Random),
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
const TOGETHER: [(&str, &str); 13] = [
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
pub(crate) fn go_together(cause: &Cause, other: &Cause) -> bool {
    let (first_rule, other) = (cause.rule, other.rule);
    TOGETHER.contains(&(first_rule, other)) || TOGETHER.contains(&(other, first_rule))
}

const fn cause(rule: &'static str, put_in: fn(&mut Endpoint, &mut Random)) -> Cause {
    Cause { rule, put_in }
}

/// Two or three paths; eight ports, which all take the same one in one lab of 128.
fn ecmp(at: &mut Endpoint, random: &mut Random) {
    at.delay_ms = between(random, 2.0, 30.0);
    let step = (at.round_trip_ms() * between(random, 0.25, 0.8)).max(2.0);
    for number in 0..2 + random.below(2) {
        let longer = step * f64::from(u8::try_from(number).expect("three"));
        at.extra_paths.push(extra_path(at.delay_ms + longer));
    }
    at.ports = ports(random);
    (at.interval_ms, at.seconds) = (20, 0.4);
}

pub(crate) fn extra_path(delay_ms: f64) -> ExtraPath {
    ExtraPath {
        delay_ms,
        only: None,
        loss_percent: 0.0,
    }
}

pub(crate) fn ports(random: &mut Random) -> Vec<u16> {
    let first = 40_000 + u16::try_from(random.below(5_000)).expect("few");
    (first..first + 8).collect()
}

/// The client's sysctl is the lab's.
fn idle(at: &mut Endpoint, random: &mut Random) {
    at.delay_ms = between(random, 8.0, 40.0);
    rare_and_large(at, random);
}

/// Messages of many segments, farther apart than the retransmission timeout.
pub(crate) fn rare_and_large(at: &mut Endpoint, random: &mut Random) {
    at.loss_percent = 0.0;
    at.sizes = vec![40_000 + 1_000 * random.below(80) as u64];
    at.interval_ms = 350 + 50 * random.below(3) as u64 + rounded(5.0 * at.delay_ms);
    at.seconds = seconds(6 * at.interval_ms);
}

fn serialisation(at: &mut Endpoint, random: &mut Random) {
    let mbit = between(random, 1.0, 8.0);
    at.delay_ms = at.delay_ms.min(40.0);
    let uplink = Uplink {
        mbit,
        queue_kib: between(random, 64.0, 256.0).round(),
        discipline: "drop-tail",
    };
    at.uplink = Some(uplink);
    // The larger takes at least 8 ms more, and a sixth of the path.
    let min_bytes = (mbit * 1e3 * at.round_trip_ms() / 6.0 / 8.0).max(mbit * 1e3);
    let large = min_bytes.max(4_000.0) * between(random, 1.0, 1.5);
    at.sizes = vec![one_of(random, &[64, 256, 500]), rounded(large)];
    at.interval_ms = 100 + rounded(2.0 * uplink.millis(large));
    at.seconds = seconds(9 * at.interval_ms);
}

/// A queue that takes long to fill up and to drain, beside the path.
fn bufferbloat(at: &mut Endpoint, random: &mut Random) {
    at.delay_ms = between(random, 3.0, 25.0);
    let mbit = between(random, 4.0, 20.0);
    let queue_ms = between(random, 60.0, 200.0) + at.round_trip_ms();
    bulk_on_an_uplink(at, random);
    at.uplink = Some(Uplink {
        mbit,
        queue_kib: (mbit * 1e3 * queue_ms / 8.0 / 1024.0).round(),
        discipline: "drop-tail",
    });
}

/// An upload, and messages so small that the link's rate is none of their business.
pub(crate) fn bulk_on_an_uplink(at: &mut Endpoint, random: &mut Random) {
    let start = between(random, 0.6, 0.9);
    let until = start + between(random, 1.2, 1.5);
    at.bulk = Some(Bulk { at: start, until });
    at.sizes = vec![one_of(random, &[64, 100, 150])];
    at.loss_percent = 0.0;
    (at.interval_ms, at.seconds) = (one_of(random, &[30, 40, 50]), 3.4);
}

/// Over so long a path that TCP's window takes half of an experiment to become large enough.
fn head_of_line(at: &mut Endpoint, random: &mut Random) {
    at.delay_ms = between(random, 60.0, 110.0);
    frequent_and_large(at, random);
}

pub(crate) fn frequent_and_large(at: &mut Endpoint, random: &mut Random) {
    at.loss_percent = 0.0;
    at.sizes = vec![80_000 + 1_000 * random.below(40) as u64];
    at.interval_ms = one_of(random, &[16, 20, 25]);
    at.seconds = 2.0;
}

/// Damaged segments or datagrams, or datagrams that overtake others: ten and more are expected in one
/// experiment, for the rule wants five. Messages of one segment, a few under way at a time: losses
/// leave a window of six or so, and more would truly wait in the sender.
fn random_loss(at: &mut Endpoint, random: &mut Random) {
    at.delay_ms = between(random, 3.0, 12.0);
    (at.interval_ms, at.seconds) = (10, 2.5);
    match random.below(3) {
        0 => at.corrupt_percent = between(random, 4.0, 6.0),
        1 => {
            at.scheme = "udp";
            at.corrupt_percent = between(random, 6.0, 12.0);
        }
        _ => {
            at.scheme = "udp";
            at.delay_ms += 10.0;
            at.reorder_percent = between(random, 6.0, 12.0);
        }
    }
}

fn connection_setup(at: &mut Endpoint, random: &mut Random) {
    at.new_connection = true;
    requests(at, random);
}

/// HTTP, with a version of TLS or without.
pub(crate) fn requests(at: &mut Endpoint, random: &mut Random) {
    let version = one_of(random, &["", "1.2", "1.3"]);
    at.tls = version;
    at.scheme = if version.is_empty() { "http" } else { "https" };
    at.interval_ms = at.interval_ms.max(40);
}

/// Small messages: a proxy that acknowledges with the reply is distinguished from a slow link only by how
/// little bytes a message has.
fn proxy(at: &mut Endpoint, random: &mut Random) {
    at.sizes = vec![one_of(random, &[64, 100, 150])];
    at.reply = one_of(random, &[64, 100]);
    let delay_ms = (at.delay_ms / 10.0).max(2.0) * between(random, 1.0, 3.0);
    let (kind, keys) = one_of(
        random,
        &[
            ("haproxy", "mode = \"http\""),
            ("haproxy", "mode = \"tcp\""),
            ("nginx", ""),
        ],
    );
    at.middle = Some(Middle {
        kind,
        keys,
        delay_ms,
    });
    // It would have to have the certificate; without TLS it is the same.
    if at.scheme == "https" {
        at.scheme = "http";
    }
}

fn slow_server(at: &mut Endpoint, random: &mut Random) {
    at.delay_ms = at.delay_ms.min(25.0);
    at.think_ms = at.round_trip_ms() * between(random, 1.0, 2.5) + 2.0;
    // One after the other: what comes faster would wait for those before.
    at.interval_ms = at.interval_ms.max(rounded(1.5 * at.think_ms));
    at.seconds = at.seconds.max(seconds(10 * at.interval_ms));
}

/// Another path, one that loses what others do not, or a balancer that answers in the server's
/// stead.
fn icmp(at: &mut Endpoint, random: &mut Random) {
    if at.middle.is_none() && random.below(4) == 0 {
        at.middle = Some(Middle {
            kind: "l4",
            keys: "",
            delay_ms: at.delay_ms * between(random, 0.2, 0.8) + 1.0,
        });
        return;
    }
    if at.extra_paths.is_empty() {
        at.extra_paths.push(extra_path(at.delay_ms));
    }
    let shift = (at.round_trip_ms() * between(random, 0.2, 0.8)).max(1.5);
    let mut echoes = ExtraPath {
        only: Some("icmp"),
        ..extra_path(at.delay_ms)
    };
    // Losses take longer to be seen than so many flows have.
    match random.below(3) {
        0 if at.ports.is_empty() => {
            echoes.loss_percent = between(random, 40.0, 70.0);
            at.seconds = at.seconds.max(2.0);
        }
        1 if at.delay_ms > shift => echoes.delay_ms -= shift,
        _ => echoes.delay_ms += shift,
    }
    at.extra_paths.push(echoes);
}

/// The server's process stands still for 0.3 to 0.9 of a period.
fn stalled_peer(at: &mut Endpoint, random: &mut Random) {
    at.delay_ms = at.delay_ms.min(25.0);
    match random.below(3) {
        0 => {}
        1 => at.scheme = "udp",
        _ => requests(at, random),
    }
    at.interval_ms = one_of(random, &[10, 20]);
    let period = between(random, 0.4, 0.8);
    let still = period * between(random, 0.3, 0.9);
    at.stops = Some(Stops {
        still,
        awake: period - still,
    });
    at.seconds = 2.6;
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
