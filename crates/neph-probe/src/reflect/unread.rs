//! How much memory replies may take that peers have not read yet, of all peers together.
//!
//! Each peer's rate is capped elsewhere; this bounds what many slow readers can pile up at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A reflector's whole room for such replies.
const ROOM: u64 = 256 << 20;

#[derive(Debug)]
pub(crate) struct Unread {
    room: u64,
    held: AtomicU64,
}

/// One connection's part of it; given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    all: Arc<Unread>,
    mine: u64,
}

impl Unread {
    pub(crate) fn new() -> Arc<Self> {
        Self::with_room(ROOM)
    }

    fn with_room(room: u64) -> Arc<Self> {
        let held = AtomicU64::new(0);
        Arc::new(Self { room, held })
    }

    /// A part that holds nothing yet.
    pub(crate) fn part(self: &Arc<Self>) -> Held {
        Held {
            all: Arc::clone(self),
            mine: 0,
        }
    }
}

impl Held {
    /// Takes room for `bytes` more, if there is any.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        let room = self.all.room;
        let more = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= room);
        let held = &self.all.held;
        let taken = held.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        if taken.is_ok() {
            self.mine += bytes;
        }
        taken.is_ok()
    }

    /// Everything was read, or the connection is over.
    pub(crate) fn give_back(&mut self) {
        self.all.held.fetch_sub(self.mine, Ordering::AcqRel);
        self.mine = 0;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_the_room_and_give_it_back() {
        let all = Unread::with_room(100);
        let (mut first, mut second) = (all.part(), all.part());
        assert!(first.take(60));
        assert!(!second.take(41));
        assert!(second.take(40));
        assert!(!first.take(1));
        drop(second);
        assert!(first.take(40));
        first.give_back();
        assert!(first.take(100));
        assert!(!first.take(u64::MAX));
    }
}
