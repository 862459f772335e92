//! Division of memory by the caps of a reflector.

use neph_model::{ByteSize, ReflectorCaps};

use super::room::{Room, SHARE, both_copies, grown, largest_reply, largest_request};

/// Most memory of a connection without a large message. It consists of its read buffer (32 KiB), a small
/// request and a small reply ([`super::room::OWN`] each), awaited timestamps, TLS, and the used part of the
/// stack.
pub(super) const CONNECTION: u64 = 256 << 10;
/// Memory of a peer in the tables: its budget, its STAMP session, and their places in the order.
const PEER: u64 = 1 << 10;
/// Most peers that are remembered.
const MAX_PEERS: u64 = 1 << 16;
/// One part in so many of the memory is for remembered peers.
const PEERS_SHARE: u64 = 8;

/// These caps with connections and message sizes reduced to what their memory allows. Connections get at most
/// half of it, and the largest message always fits into the rest.
#[must_use]
pub fn fitting_caps(mut caps: ReflectorCaps) -> ReflectorCaps {
    let connections = (caps.memory.bytes() / 2 / CONNECTION).max(1);
    caps.connections = caps
        .connections
        .min(u32::try_from(connections).unwrap_or(u32::MAX));
    let room = caps.room();
    caps.request_size = caps.request_size.min(ByteSize(largest_request(room)));
    caps.reply_size = caps.reply_size.min(ByteSize(largest_reply(room)));
    caps
}

/// How caps divide the memory.
pub(crate) trait Division {
    /// The room of all peers together.
    fn room_of_all(&self) -> Room;
    /// The part of one IPv4 address or /56. The largest message always fits an empty one.
    fn room_of_peer(&self) -> Room;
    /// Memory for large messages: the rest after connections and the tables of peers.
    fn room(&self) -> u64;
    /// Connections that were ended for others and whose threads may still run.
    fn leaving(&self) -> u32;
    /// Peers that are remembered.
    fn peers(&self) -> usize;
}

impl Division for ReflectorCaps {
    fn room_of_all(&self) -> Room {
        Room::new(self.room())
    }

    fn room_of_peer(&self) -> Room {
        let largest = grown(self.request_size.bytes()).max(both_copies(self.reply_size.bytes()));
        Room::new((self.room() / SHARE).max(largest))
    }

    fn room(&self) -> u64 {
        let places = self.connections + self.leaving();
        let connections = u64::from(places) * CONNECTION;
        let peers = self.peers() as u64 * PEER;
        self.memory.bytes().saturating_sub(connections + peers)
    }

    fn leaving(&self) -> u32 {
        self.connections.div_ceil(4)
    }

    fn peers(&self) -> usize {
        let peers = self.memory.bytes() / PEERS_SHARE / PEER;
        usize::try_from(peers.clamp(1, MAX_PEERS)).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::reflect::room::MemoryGuard;

    #[test]
    fn the_default_memory_limit_fits_the_other_default_caps() {
        let caps = ReflectorCaps::default();
        assert_eq!(fitting_caps(caps), caps);
    }

    #[test]
    fn a_low_memory_limit_reduces_connections_and_message_size() {
        let caps = ReflectorCaps {
            memory: ByteSize(16 << 20),
            ..ReflectorCaps::default()
        };
        let fitting = fitting_caps(caps);
        assert_eq!(fitting.connections, 32);
        let room = (16 << 20) - 40 * CONNECTION - (2 << 20);
        assert_eq!(fitting.room(), room);
        assert_eq!(fitting.request_size, ByteSize(largest_request(room)));
        assert_eq!(fitting.reply_size, ByteSize(largest_reply(room)));
        assert!(fitting.reply_size < fitting.request_size);
    }

    #[test]
    fn the_largest_message_fits_a_small_memory_limit() {
        let caps = fitting_caps(ReflectorCaps {
            memory: ByteSize(4 << 20),
            ..ReflectorCaps::default()
        });
        for largest in [
            grown(caps.request_size.bytes()),
            both_copies(caps.reply_size.bytes()),
        ] {
            let mut guard =
                MemoryGuard::new(Arc::new(caps.room_of_all()), Arc::new(caps.room_of_peer()));
            assert!(guard.hold(largest), "{largest} of {}", caps.room());
        }
    }
}
