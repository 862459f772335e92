//! What a message is reduced to for live lines and the summary: a few spans, in fixed columns.

use neph_model::{Message, Span};

/// One column of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// From `intended` to the reply: what a user waits.
    Response,
    /// From the first act to the reply.
    Service,
    /// From leaving to acknowledged.
    Tcp,
    /// Both directions of the network, where they are known apart from the peer.
    Network,
    /// The network and the peer, where the peer gives no timestamps.
    NetworkAndPeer,
}

impl Column {
    /// Every column, in the order of the summary.
    pub(super) const ALL: [Self; 5] = [
        Self::Response,
        Self::Service,
        Self::Tcp,
        Self::Network,
        Self::NetworkAndPeer,
    ];

    /// The value of a message that was replied to.
    pub(super) fn of(self, message: &Message) -> Option<Span> {
        let ledger = message.ledger()?;
        match self {
            Self::Response => Some(ledger.response_time()),
            Self::Service => Some(ledger.service_time()),
            Self::Tcp => message.marks.tcp_round_trip(),
            Self::Network => message.marks.network_round_trip(),
            Self::NetworkAndPeer => message.marks.network_and_peer_round_trip(),
        }
    }
}
