//! Cross traffic on TCP: bulk, or request and reply in turn, on several connections.

use std::net::SocketAddr;
use std::thread;

use neph_model::{BitRate, Permit, Span, Stop};
use neph_wire::echo::{REPLY_MIN, REQUEST_MIN};

use crate::beginning::Beginning;
use crate::conversation::{Carried, Subject, converse};

/// A message of bulk is what goes in this time, within bounds: small enough for an even rate.
const MOMENT_MS: u64 = 20;
const PIECES: (u64, u64) = (1 << 10, 64 << 10);

/// Bulk of so many flows together.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    /// The most that all flows send together; as fast as TCP goes if absent.
    pub rate: Option<BitRate>,
    /// How many connections; at least 1.
    pub flows: u16,
}

impl Bulk {
    /// What each connection may send.
    pub fn each(&self) -> Option<BitRate> {
        let flows = u64::from(self.flows).max(1);
        let rate = self.rate?.bits_per_second();
        Some(BitRate((rate / flows).max(1)))
    }

    /// What each connection carries, to a reflector at `address`.
    pub fn subject(&self, address: SocketAddr, duration: Span) -> Subject {
        let rate = self.each();
        let piece = rate.map_or(PIECES.1, |rate| {
            (rate.bits_per_second() / 8 * MOMENT_MS / 1_000).clamp(PIECES.0, PIECES.1)
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
    /// Bytes of each request and of each reply, raised to what the protocol needs.
    pub sizes: (usize, usize),
    /// As of bulk; requests and replies count.
    pub bulk: Bulk,
}

impl Turns {
    /// What each connection carries, to a reflector at `address`.
    pub fn subject(&self, address: SocketAddr, duration: Span) -> Subject {
        Subject {
            request: self.sizes.0.max(REQUEST_MIN),
            reply: self.sizes.1.max(REPLY_MIN),
            in_turn: true,
            ..self.bulk.subject(address, duration)
        }
    }
}

/// Carries the same on so many connections until the time is over or `stop` is set: what each carried, or
/// why it was refused.
pub fn converse_all(
    subject: &Subject,
    flows: usize,
    beginning: &Beginning<'_>,
    stop: &Stop,
) -> Vec<Result<Carried, String>> {
    thread::scope(|scope| {
        let begun: Vec<_> = (0..flows)
            .map(|_| scope.spawn(move || converse(subject, beginning, stop)))
            .collect();
        let ended = begun.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ended.collect()
    })
}
