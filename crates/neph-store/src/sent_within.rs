//! Owns the time in which messages were sent, by which they are read.

use neph_model::{FleetMessage, Instant, Own};

/// A time in which messages were sent. The default is all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentWithin {
    /// Not before; `None`: from the start.
    pub from: Option<Instant<Own>>,
    /// Before; `None`: to the end.
    pub until: Option<Instant<Own>>,
}

impl SentWithin {
    /// The whole experiment.
    pub const ALL: Self = Self {
        from: None,
        until: None,
    };

    pub(crate) fn holds(&self, message: &FleetMessage) -> bool {
        self.from.is_none_or(|from| message.sent >= from)
            && self.until.is_none_or(|until| message.sent < until)
    }

    /// Whether messages sent between `least` and `most` nanoseconds can be within.
    pub(crate) fn meets(&self, (least, most): (i64, i64)) -> bool {
        self.from.is_none_or(|from| most >= from.nanos())
            && self.until.is_none_or(|until| least < until.nanos())
    }
}
