//! What a reflector bears: the side that would suffer decides.

use neph_model::{BitRate, ByteSize, Span};

use super::room::{Room, SHARE, both_copies, grown, largest_reply, largest_request};

/// Caps on everything a peer could ask too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Largest reply payload that is granted.
    pub reply_size: ByteSize,
    /// Largest request payload that is read.
    pub request_size: ByteSize,
    /// Memory for all that peers make the reflector hold, every copy counted: connections, messages that
    /// are not whole or not read yet, and what is remembered of peers. See [`Self::fitting`].
    pub memory: ByteSize,
    /// Messages a second from one peer address; a second's worth may come at once. By default more
    /// than the densest fleets ask for (50,000 flows a second apart, 512 with 200 messages a second
    /// each), so that a moment's delay refuses none. A reply is no larger than its request, so what
    /// the cap saves is a core's time, and STAMP has one thread.
    pub messages_per_second: u32,
    /// Reply payload to one peer address.
    pub reply_rate: BitRate,
    /// Connections at the same time, of all peers.
    pub connections: u32,
    /// Connections at the same time, of one peer address or of one /64 of IPv6. A /56 gets half as much
    /// more.
    pub connections_per_peer: u32,
    /// A connection that says nothing for this long is closed.
    pub idle: Span,
    /// A connection that has not opened its protocol by then is closed.
    pub handshake: Span,
    /// Longest bulk transfer.
    pub bulk: Span,
}

/// What a connection takes at most when it holds no large message: its read buffer (32 KiB), a small request
/// and a small reply ([`super::room::OWN`] each), stamps that are awaited, TLS, and the used part of its
/// thread's stack.
pub(super) const CONNECTION: u64 = 256 << 10;
/// What a peer takes in the tables: its budget, its STAMP session, and their places in the order.
const PEER: u64 = 1 << 10;
/// Peers that are remembered at most.
const MOST_PEERS: u64 = 1 << 16;
/// Part of the memory for what is remembered of peers.
const PEERS_SHARE: u64 = 8;

impl Caps {
    /// These caps with no more connections, and no larger messages, than the memory allows: connections get
    /// half of it at most, and the largest message always fits what is left.
    #[must_use]
    pub fn fitting(mut self) -> Self {
        let connections = (self.memory.bytes() / 2 / CONNECTION).max(1);
        self.connections = self
            .connections
            .min(u32::try_from(connections).unwrap_or(u32::MAX));
        let room = self.room();
        self.request_size = self.request_size.min(ByteSize(largest_request(room)));
        self.reply_size = self.reply_size.min(ByteSize(largest_reply(room)));
        self
    }

    /// The room of all peers together.
    pub(crate) fn room_of_all(&self) -> Room {
        Room::new(self.room())
    }

    /// The part of one IPv4 address or /56. The largest message always fits an empty one.
    pub(crate) fn room_of_peer(&self) -> Room {
        let largest = grown(self.request_size.bytes()).max(both_copies(self.reply_size.bytes()));
        Room::new((self.room() / SHARE).max(largest))
    }

    /// Memory for large messages: what connections and the tables of peers leave.
    pub(super) fn room(&self) -> u64 {
        let places = self.connections + self.leaving();
        let connections = u64::from(places) * CONNECTION;
        let peers = self.peers() as u64 * PEER;
        self.memory.bytes().saturating_sub(connections + peers)
    }

    /// Connections that were ended for others and whose threads may still run.
    pub(super) const fn leaving(&self) -> u32 {
        self.connections.div_ceil(4)
    }

    /// Peers of which anything is remembered.
    pub(super) fn peers(&self) -> usize {
        let peers = self.memory.bytes() / PEERS_SHARE / PEER;
        usize::try_from(peers.clamp(1, MOST_PEERS)).unwrap_or(usize::MAX)
    }
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            reply_size: ByteSize(16 << 20),
            request_size: ByteSize(64 << 20),
            memory: ByteSize(512 << 20),
            messages_per_second: 120_000,
            reply_rate: BitRate(1_000_000_000),
            connections: 1024,
            connections_per_peer: 512,
            idle: Span::from_secs(300),
            handshake: Span::from_secs(10),
            bulk: Span::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::reflect::room::Held;

    #[test]
    fn the_default_memory_allows_the_other_defaults() {
        assert_eq!(Caps::default().fitting(), Caps::default());
    }

    #[test]
    fn little_memory_allows_fewer_connections_and_smaller_messages() {
        let caps = Caps {
            memory: ByteSize(16 << 20),
            ..Caps::default()
        };
        let fitting = caps.fitting();
        assert_eq!(fitting.connections, 32);
        let room = (16 << 20) - 40 * CONNECTION - (2 << 20);
        assert_eq!(fitting.room(), room);
        assert_eq!(fitting.request_size, ByteSize(largest_request(room)));
        assert_eq!(fitting.reply_size, ByteSize(largest_reply(room)));
        assert!(fitting.reply_size < fitting.request_size);
    }

    #[test]
    fn the_largest_message_fits_even_a_small_room() {
        let caps = Caps {
            memory: ByteSize(4 << 20),
            ..Caps::default()
        }
        .fitting();
        for largest in [
            grown(caps.request_size.bytes()),
            both_copies(caps.reply_size.bytes()),
        ] {
            let mut held = Held::new(Arc::new(caps.room_of_all()), Arc::new(caps.room_of_peer()));
            assert!(held.hold(largest), "{largest} of {}", caps.room());
        }
    }
}
