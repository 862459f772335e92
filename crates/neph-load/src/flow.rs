//! Background load over TCP: bulk, or requests and replies in turn, on several connections.

use std::net::SocketAddr;
use std::thread;

use neph_model::{BitRate, Permit, Span, Stop};
use neph_wire::echo::{REPLY_MIN, REQUEST_MIN};

use crate::conversation::{Carried, Subject, converse};
use crate::start_counter::StartCounter;

/// A bulk message has the bytes of this time, within bounds: small enough for an even rate.
const PIECE_MILLIS: u64 = 20;
const PIECE_BYTES_RANGE: (u64, u64) = (1 << 10, 64 << 10);

/// Bulk traffic on several connections.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    /// Maximum rate of all connections together; absent: as fast as possible.
    pub rate: Option<BitRate>,
    /// Number of connections; at least 1.
    pub flows: u16,
}

impl Bulk {
    /// Maximum rate of each connection.
    pub fn each(&self) -> Option<BitRate> {
        let flows = u64::from(self.flows).max(1);
        let rate = self.rate?.bits_per_second();
        Some(BitRate((rate / flows).max(1)))
    }

    /// The traffic of each connection to a reflector at `address`.
    pub fn subject(&self, address: SocketAddr, duration: Span) -> Subject {
        let rate = self.each();
        let piece = rate.map_or(PIECE_BYTES_RANGE.1, |rate| {
            (rate.bits_per_second() / 8 * PIECE_MILLIS / 1_000)
                .clamp(PIECE_BYTES_RANGE.0, PIECE_BYTES_RANGE.1)
        });
        Subject {
            address,
            request: usize::try_from(piece).map_or(REQUEST_MIN, |piece| piece.max(REQUEST_MIN)),
            reply: REPLY_MIN,
            in_turn: false,
            rate,
            duration,
            permit: Permit::ANYTHING,
        }
    }
}

/// Requests and replies in turn.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// Bytes of each request and of each reply, raised to the protocol's minimum.
    pub sizes: (usize, usize),
    /// Rate and connections, as of bulk; the rate counts requests and replies.
    pub bulk: Bulk,
}

impl Turns {
    /// The traffic of each connection to a reflector at `address`.
    pub fn subject(&self, address: SocketAddr, duration: Span) -> Subject {
        Subject {
            request: self.sizes.0.max(REQUEST_MIN),
            reply: self.sizes.1.max(REPLY_MIN),
            in_turn: true,
            ..self.bulk.subject(address, duration)
        }
    }
}

/// Generates the traffic on `flows` connections until the time is over or `stop` is set. Returns
/// the counters of each, or why it was refused.
pub fn converse_all(
    subject: &Subject,
    flows: usize,
    start_counter: &StartCounter<'_>,
    stop: &Stop,
) -> Vec<Result<Carried, String>> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..flows)
            .map(|_| scope.spawn(move || converse(subject, start_counter, stop)))
            .collect();
        let ended = threads.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ended.collect()
    })
}
