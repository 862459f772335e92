//! Owns one stay of a flow, on a path or on a class.

use neph_model::{Instant, Local, Span};
use neph_stats::Lifetime;

/// How long one stay lasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stay {
    /// When it began.
    pub(crate) from: Instant<Local>,
    pub(crate) length: Span,
    /// Whether its end was seen.
    pub(crate) ended: bool,
}

impl Stay {
    pub(crate) fn lifetime(&self) -> Lifetime {
        #[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
        let length = self.length.nanos().max(0) as f64;
        if self.ended {
            Lifetime::Ended(length)
        } else {
            Lifetime::Lasting(length)
        }
    }
}
