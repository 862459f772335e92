//! A simulated, seeded network in virtual time. Sessions and the reflector's answerer run in it unchanged.
//! Its record of each packet is the truth for their timestamps.

mod datagram;
mod stream;
mod stream_tests;

use std::net::SocketAddr;

use neph_model::{ClockOffset, Instant, Local, Marks, Span, Target};

use crate::spec::{FlowSpec, Priority, Schedule, Trust};

/// Peer clock minus local clock: an arbitrary number that must not show in any result.
pub(super) const PEER_AHEAD: i64 = 7_777_777_777;

/// The offset limits from messages where both clocks have the same rate. No delay is negative, so each
/// request shows `offset <= peer.rx - nic_tx` and each reply `offset >= peer.nic_tx - nic_rx`.
pub(super) fn proved<'a>(messages: impl IntoIterator<Item = &'a Marks>) -> Option<ClockOffset> {
    let (mut low, mut high) = (i64::MIN, i64::MAX);
    for marks in messages {
        let (Some(sent), Some(arrived)) = (marks.nic_tx, marks.peer.rx) else {
            continue;
        };
        let (Some(answered), Some(returned)) = (marks.peer.nic_tx, marks.nic_rx) else {
            continue;
        };
        high = high.min(arrived.nanos() - sent.nanos());
        low = low.max(answered.nanos() - returned.nanos());
    }
    let half = (low <= high && low > i64::MIN).then(|| (high - low) / 2)?;
    Some(ClockOffset::new(
        Span::from_nanos(low + half),
        Span::from_nanos(high - low - half),
    ))
}

/// `SplitMix64`: the same seed gives the same network.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// From 0 to `max`, both included.
    pub(crate) fn up_to(&mut self, max: i64) -> i64 {
        let range = max.unsigned_abs() + 1;
        (self.next() % range).cast_signed()
    }

    pub(crate) fn chance(&mut self, permille: u64) -> bool {
        self.next() % 1000 < permille
    }
}

/// The behaviour of the network and the two hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Net {
    /// Delay of the forward path and of the reverse path, in nanoseconds.
    pub(crate) forward_delay: i64,
    pub(crate) reverse_delay: i64,
    /// Random addition to each delay, up to this.
    pub(crate) jitter: i64,
    /// Random delay of each kernel and of the sender's schedule, up to this.
    pub(crate) kernel: i64,
    /// Delay of the server application.
    pub(crate) think: i64,
    /// Of 1000 datagrams, this many are lost, and this many are duplicated.
    pub(crate) loss: u64,
    pub(crate) duplicates: u64,
    /// Of 1000 writes, this many are delayed by a lost segment, reset the connection, or are taken by the
    /// socket only in part.
    pub(crate) stalls: u64,
    pub(crate) resets: u64,
    pub(crate) partial: u64,
}

pub(crate) const fn at(nanos: i64) -> Instant<Local> {
    Instant::from_nanos(nanos)
}

/// A flow of `count` messages, one each `interval`.
pub(super) fn spec(url: &str, count: u64, interval: Span) -> FlowSpec {
    let target = Target::parse(url).expect("a target");
    let address = SocketAddr::from(([192, 0, 2, 1], 9));
    FlowSpec {
        schedule: Schedule {
            interval,
            count: Some(count),
            duration: None,
        },
        request_size: 200,
        response_size: 100,
        timeout: Span::from_secs(2),
        trust: Trust::AnyCertificate,
        priority: Priority::Normal,
        reflector: true,
        ..FlowSpec::plain(target, address)
    }
}
