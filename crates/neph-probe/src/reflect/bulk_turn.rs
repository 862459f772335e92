//! The turn of a bulk transfer: one at a time, so that two never share a bottleneck.
//!
//! Owns the holder, the queue, and when the holder loses its turn because others wait. Reads no clock. While
//! no other transfer waits, the holder keeps its turn to its end.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use neph_model::{Instant, Local, Span};

use super::counters::Counted;
use super::network;

/// The holder loses its turn after this time without a byte, while others wait. A lost segment costs TCP 0.2
/// to 0.8 s.
pub(crate) const SILENCE: Span = Span::from_millis(1_500);
/// Least mean bytes per second over [`PACE_WINDOW`], while others wait: half of a line with 64 kbit/s.
const MIN_BYTES_PER_SECOND: u64 = 4_000;
const PACE_WINDOW: Span = Span::from_secs(2);
/// The longest turn while others wait: twice the duration of a plan's throughput check.
pub(crate) const SHARE: Span = Span::from_secs(10);
/// How long a connection waits for its turn: the share of one other, and what it takes to end it.
pub(crate) const MAX_WAIT: Span = Span::from_secs(12);
/// Connections that wait, of all addresses; beyond, they are refused at once.
const MAX_WAITING: usize = 32;
/// Transfers of one /56 that run or wait: its 256 networks (/64) must not take all places.
const MAX_OF_A_SITE: usize = 4;
/// Addresses whose last turn is remembered.
const MAX_REMEMBERED_PEERS: usize = 256;

/// Gives the turn to one connection at a time.
#[derive(Debug, Default)]
pub(crate) struct BulkGate(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    holder: Option<Holder>,
    /// In the order in which they asked.
    waiting: VecDeque<BulkConnection>,
    /// Addresses that had a turn, the latest last.
    served: VecDeque<IpAddr>,
    next: u64,
}

/// A connection that has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BulkConnection {
    number: u64,
    source: IpAddr,
}

/// What the holder has done so far.
#[derive(Clone, Copy, Debug)]
struct Holder {
    connection: BulkConnection,
    since: Instant<Local>,
    /// When bytes came last, and how many had come by then.
    received: Instant<Local>,
    bytes: u64,
    /// The window for its mean rate.
    window: (Instant<Local>, u64),
}

/// A connection's place in the queue or its turn; given back when dropped.
#[derive(Debug)]
pub(crate) struct BulkTurn {
    gate: Arc<BulkGate>,
    connection: BulkConnection,
}

/// A peer gets no place in the queue: too many wait already, or another transfer of the same address, or
/// several of its /56, run or wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoPlace;

impl BulkGate {
    /// A place in the queue; the first place is the turn.
    pub(super) fn ask(
        self: &Arc<Self>,
        peer: IpAddr,
        now: Instant<Local>,
    ) -> Result<BulkTurn, NoPlace> {
        let source = network::host(peer);
        let mut queue = self.queue();
        let has_one = queue
            .connections()
            .any(|bulk_connection| bulk_connection.source == source);
        let site = network::site(peer);
        let neighbours = queue
            .connections()
            .filter(|bulk_connection| network::site(bulk_connection.source) == site);
        if has_one || neighbours.count() >= MAX_OF_A_SITE || queue.waiting.len() >= MAX_WAITING {
            return Err(NoPlace);
        }
        let connection = BulkConnection {
            number: queue.next,
            source,
        };
        queue.next += 1;
        queue.waiting.push_back(connection);
        queue.advance(now);
        Ok(BulkTurn {
            gate: Arc::clone(self),
            connection,
        })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No update is left half-done: nothing in here panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn connections(&self) -> impl Iterator<Item = BulkConnection> {
        let holder = self.holder.map(|holder| holder.connection);
        holder.into_iter().chain(self.waiting.iter().copied())
    }

    /// Gives a free turn to a waiting connection: first to addresses without a turn, then to the one with the
    /// oldest turn; among equals in the order of requests.
    fn advance(&mut self, now: Instant<Local>) {
        if self.holder.is_some() {
            return;
        }
        let turn_ago = |connection: &BulkConnection| {
            self.served
                .iter()
                .position(|address| *address == connection.source)
        };
        let next = self
            .waiting
            .iter()
            .enumerate()
            .min_by_key(|(_, bulk_connection)| turn_ago(bulk_connection).map_or(0, |at| at + 1));
        let Some(connection) = next
            .map(|(at, _)| at)
            .and_then(|at| self.waiting.remove(at))
        else {
            return;
        };
        self.served.retain(|address| *address != connection.source);
        self.served.push_back(connection.source);
        if self.served.len() > MAX_REMEMBERED_PEERS {
            self.served.pop_front();
        }
        self.holder = Some(Holder {
            connection,
            since: now,
            received: now,
            bytes: 0,
            window: (now, 0),
        });
    }
}

impl Holder {
    /// Why it loses the turn, as others wait; `bytes` have come by now.
    fn lost(&mut self, bytes: u64, now: Instant<Local>) -> Option<Counted> {
        if now - self.since >= SHARE {
            return Some(Counted::BulkShared);
        }
        if now - self.received >= SILENCE {
            return Some(Counted::BulkStalled);
        }
        let (since, from) = self.window;
        if now - since < PACE_WINDOW {
            return None;
        }
        self.window = (now, bytes);
        // The silence of a longer window is checked above.
        let seconds = PACE_WINDOW.nanos().cast_unsigned() / 1_000_000_000;
        let min = MIN_BYTES_PER_SECOND * seconds;
        (bytes - from < min).then_some(Counted::BulkStalled)
    }
}

impl BulkTurn {
    /// Whether the turn has come.
    pub(super) fn has_come(&self, now: Instant<Local>) -> bool {
        let mut queue = self.gate.queue();
        queue.advance(now);
        queue
            .holder
            .is_some_and(|holder| holder.connection == self.connection)
    }

    /// Records that `bytes` have come so far. Returns why the turn is lost, if it is.
    pub(crate) fn progress(&self, bytes: u64, now: Instant<Local>) -> Option<Counted> {
        let mut queue = self.gate.queue();
        let others_wait = !queue.waiting.is_empty();
        let holder = queue.holder.as_mut()?;
        if bytes > holder.bytes {
            (holder.received, holder.bytes) = (now, bytes);
        }
        if !others_wait {
            // Its rate counts from when another one waits.
            holder.window = (now, bytes);
            return None;
        }
        holder.lost(bytes, now)
    }
}

impl Drop for BulkTurn {
    fn drop(&mut self) {
        let mut queue = self.gate.queue();
        let connection = self.connection;
        queue
            .waiting
            .retain(|bulk_connection| *bulk_connection != connection);
        if queue
            .holder
            .is_some_and(|holder| holder.connection == connection)
        {
            queue.holder = None;
        }
    }
}

#[cfg(test)]
mod tests;
