//! What a message is reduced to for live lines and the summary: a few spans, in fixed columns.

use neph_model::{Message, Span, Stage};

/// One column of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// From `intended` to the reply: what a user waits.
    Response,
    /// From the first act to the reply.
    Service,
    /// From leaving to acknowledged.
    Tcp,
    /// Between the kernels.
    Network,
    /// One stage of the ledger, where it stands alone.
    Stage(Stage),
    /// The entry of the ledger that holds the network, where it is merged with others.
    Merged,
}

impl Column {
    /// Every column, in the order of the summary.
    pub(super) const ALL: [Self; 16] = [
        Self::Response,
        Self::Service,
        Self::Tcp,
        Self::Network,
        Self::Stage(Stage::Lateness),
        Self::Stage(Stage::Connect),
        Self::Stage(Stage::Handshake),
        Self::Stage(Stage::Compose),
        Self::Stage(Stage::SendWindow),
        Self::Stage(Stage::SendQueue),
        Self::Stage(Stage::Network),
        Self::Stage(Stage::PeerKernel),
        Self::Stage(Stage::PeerApp),
        Self::Stage(Stage::PeerSend),
        Self::Stage(Stage::OwnKernel),
        Self::Merged,
    ];

    /// The value of a message that was replied to.
    pub(super) fn of(self, message: &Message) -> Option<Span> {
        let ledger = message.ledger()?;
        match self {
            Self::Response => Some(ledger.response_time()),
            Self::Service => Some(ledger.service_time()),
            Self::Tcp => message.marks.tcp_round_trip(),
            Self::Network => message.marks.network_round_trip(),
            Self::Stage(stage) => ledger.stage(stage),
            Self::Merged => ledger
                .entries()
                .iter()
                .find(|entry| entry.stages.is_merged())
                .map(|entry| entry.time),
        }
    }
}
