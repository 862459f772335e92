//! The timestamps that a reflector puts into its replies.

use neph_model::{Instant, Local};
use neph_wire::marks::{PeerMarks, PreviousTx};

/// Times of a received request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// When the kernel received its last byte, if the timestamp belongs to it.
    pub(crate) rx: Option<Instant<Local>>,
    /// When the program had read it.
    pub(crate) app_rx: Instant<Local>,
}

/// The timestamps of a reply that is written at `app_tx`.
pub(super) fn build_reply_timestamps(
    arrived: Arrived,
    app_tx: Instant<Local>,
    wall_offset: i64,
    previous: Option<PreviousTx>,
) -> PeerMarks {
    PeerMarks {
        rx: arrived.rx.map(Instant::nanos),
        app_rx: Some(arrived.app_rx.nanos()),
        app_tx: Some(app_tx.nanos()),
        wall_offset,
        previous,
    }
}
