//! What a reflector bears: the side that would suffer decides.

use neph_model::{BitRate, ByteSize, Span};

/// Caps on everything a peer could ask too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Largest reply payload that is granted.
    pub reply_size: ByteSize,
    /// Largest request payload that is read.
    pub request_size: ByteSize,
    /// Memory for requests that are not whole and replies that are not read yet, of all peers
    /// together; one peer address gets a quarter. Small messages need none of it.
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
    /// Connections at the same time, of one peer address.
    pub connections_per_peer: u32,
    /// A connection that says nothing for this long is closed.
    pub idle: Span,
    /// A connection that has not opened its protocol by then is closed.
    pub handshake: Span,
    /// Longest bulk transfer.
    pub bulk: Span,
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
