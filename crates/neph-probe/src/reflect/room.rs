//! Memory that peers make a reflector hold: incomplete requests, and replies that were not read yet.
//!
//! Every connection has a small part, so that small messages always succeed. Memory beyond that comes from
//! one shared room, of which one IPv4 address or /56 gets a quarter. It counts the capacity of buffers,
//! including all copies of a message.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of requests, and of replies, that a connection may hold without the shared room.
pub(crate) const OWN: usize = 64 << 10;
/// One IPv4 address, or a /56, gets this part of the room.
pub(super) const SHARE: u64 = 4;

/// Heads, headers, and incomplete TLS records.
pub(crate) const SLACK: u64 = 32 << 10;

/// The limit of held bytes, and the held bytes.
#[derive(Debug)]
pub(crate) struct Room {
    size: u64,
    used: AtomicU64,
}

impl Room {
    pub(crate) const fn new(size: u64) -> Self {
        let used = AtomicU64::new(0);
        Self { size, used }
    }

    /// Takes `bytes`, if at most `limit` are held then.
    fn take(&self, bytes: u64, limit: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        let taken = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
    }
}

/// The capacity of a buffer that has grown to `bytes`: a little more, so that it need not grow for each
/// packet.
pub(crate) const fn grown(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 8).saturating_add(SLACK)
}

/// Most memory of a reply of `bytes`: as built, and with its head and TLS records as sent.
pub(crate) const fn both_copies(bytes: u64) -> u64 {
    bytes
        .saturating_mul(2)
        .saturating_add(bytes / 128)
        .saturating_add(2 * SLACK)
}

/// The largest request that fits a room of that size.
pub(super) const fn largest_request(room: u64) -> u64 {
    room.saturating_sub(SLACK) / 9 * 8
}

/// The largest reply that fits a room of that size.
pub(super) const fn largest_reply(room: u64) -> u64 {
    room.saturating_sub(2 * SLACK) / 257 * 128
}

/// Memory of one kind that one connection holds; given back when dropped.
#[derive(Debug)]
pub(crate) struct MemoryGuard {
    total_room: Arc<Room>,
    peer: Arc<Room>,
    bytes: u64,
}

/// How full the rooms may get.
#[derive(Clone, Copy)]
enum RoomLimit {
    Full,
    Half,
}

impl MemoryGuard {
    /// Empty.
    pub(crate) const fn new(total_room: Arc<Room>, peer: Arc<Room>) -> Self {
        let bytes = 0;
        Self {
            total_room,
            peer,
            bytes,
        }
    }

    /// Holds `bytes` in all from here on. Without room for them, as many as before.
    pub(crate) fn hold(&mut self, bytes: u64) -> bool {
        self.change(bytes, RoomLimit::Full)
    }

    /// Keeps `bytes` that are not needed at the moment, for speed. Nothing if the rooms are half full, as
    /// needed memory has priority.
    pub(crate) fn keep(&mut self, bytes: u64) -> bool {
        self.give_back();
        self.change(bytes, RoomLimit::Half)
    }

    /// Holds nothing from here on.
    pub(crate) fn give_back(&mut self) {
        let charged = charged(self.bytes);
        if charged > 0 {
            self.peer.give_back(charged);
            self.total_room.give_back(charged);
        }
        self.bytes = 0;
    }

    fn change(&mut self, bytes: u64, up_to: RoomLimit) -> bool {
        let limit = |room: &Room| match up_to {
            RoomLimit::Full => room.size,
            RoomLimit::Half => room.size / 2,
        };
        let (old_charge, new_charge) = (charged(self.bytes), charged(bytes));
        if let Some(more) = new_charge.checked_sub(old_charge).filter(|more| *more > 0) {
            if !self.peer.take(more, limit(&self.peer)) {
                return false;
            }
            if !self.total_room.take(more, limit(&self.total_room)) {
                self.peer.give_back(more);
                return false;
            }
        } else if old_charge > new_charge {
            self.peer.give_back(old_charge - new_charge);
            self.total_room.give_back(old_charge - new_charge);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// The part from the shared room, without the connection's own.
const fn charged(bytes: u64) -> u64 {
    bytes.saturating_sub(OWN as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_ITS_OWN: u64 = OWN as u64;

    fn rooms(total_bytes: u64, peer: u64) -> (Arc<Room>, Arc<Room>) {
        (Arc::new(Room::new(total_bytes)), Arc::new(Room::new(peer)))
    }

    #[test]
    fn a_peer_at_its_memory_limit_leaves_the_remainder_to_others() {
        let (total, peer) = rooms(100, 60);
        let other = Arc::new(Room::new(60));
        let guard_of = |peer: &Arc<Room>| MemoryGuard::new(Arc::clone(&total), Arc::clone(peer));
        let (mut first, mut second, mut neighbour) =
            (guard_of(&peer), guard_of(&peer), guard_of(&other));
        assert!(first.hold(OF_ITS_OWN + 50));
        assert!(!second.hold(OF_ITS_OWN + 11), "its address has 60");
        assert!(second.hold(OF_ITS_OWN + 10));
        assert!(!neighbour.hold(OF_ITS_OWN + 41), "there are 100");
        assert!(neighbour.hold(OF_ITS_OWN + 40));
        drop(first);
        assert!(neighbour.hold(OF_ITS_OWN + 60));
        assert!(!neighbour.hold(u64::MAX));
        neighbour.give_back();
        drop((second, neighbour));
        assert!(guard_of(&peer).hold(OF_ITS_OWN + 60));
    }

    #[test]
    fn small_messages_need_no_reserved_memory() {
        let (total, peer) = rooms(0, 0);
        let mut guard = MemoryGuard::new(total, peer);
        assert!(guard.hold(OF_ITS_OWN));
        assert!(!guard.hold(OF_ITS_OWN + 1));
        assert_eq!(guard.bytes, OF_ITS_OWN);
    }

    #[test]
    fn idle_buffers_use_at_most_half_of_the_memory() {
        let (total, peer) = rooms(100, 100);
        let guard_of = || MemoryGuard::new(Arc::clone(&total), Arc::clone(&peer));
        let (mut idle, mut also_idle, mut busy) = (guard_of(), guard_of(), guard_of());
        assert!(idle.keep(OF_ITS_OWN + 50));
        assert!(!also_idle.keep(OF_ITS_OWN + 1));
        assert!(busy.hold(OF_ITS_OWN + 50));
        assert!(!idle.keep(OF_ITS_OWN + 50), "the room is needed");
        assert!(busy.hold(OF_ITS_OWN + 100));
    }
}
