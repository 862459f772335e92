//! Owns the range of send times by which messages are read.

use neph_model::{FleetMessage, Instant, Local};

/// A range of send times. The default is all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentWithin {
    /// Inclusive start; `None`: no limit.
    pub from: Option<Instant<Local>>,
    /// Exclusive end; `None`: no limit.
    pub until: Option<Instant<Local>>,
}

impl SentWithin {
    /// The whole experiment.
    pub const ALL: Self = Self {
        from: None,
        until: None,
    };

    pub(crate) fn contains(&self, message: &FleetMessage) -> bool {
        self.from.is_none_or(|from| message.sent >= from)
            && self.until.is_none_or(|until| message.sent < until)
    }

    /// Whether messages sent between `min` and `max` nanoseconds can be in this range.
    pub(crate) fn overlaps(&self, (min, max): (i64, i64)) -> bool {
        self.from.is_none_or(|from| max >= from.nanos())
            && self.until.is_none_or(|until| min < until.nanos())
    }
}
