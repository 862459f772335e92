//! The values of a message in live lines and in the summary, in fixed columns.

use neph_model::{Message, Span};

/// One column of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// From the scheduled send time to the reply.
    Response,
    /// From dialling or sending to the reply.
    Service,
    /// From departure to acknowledgement.
    Tcp,
    /// The network without the peer, in both directions; known with the peer's timestamps only.
    Network,
    /// The network and the peer, if the peer gives no timestamps.
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
    pub(super) fn value_of(self, message: &Message) -> Option<Span> {
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
