//! Time along the x axis: since the fleet's first message, in the unit that reads best.

use crate::axis::Scale;
use neph_analysis::fleet::Pair;
use neph_analysis::numbers::duration_unit;
use neph_model::{Instant, Local, Span};

/// A fleet's time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    zero: Instant<Local>,
    /// Seconds of the unit.
    unit_seconds: f64,
    /// The name of the unit on screen.
    pub(super) unit_name: &'static str,
    /// The time that is shown, in the unit.
    pub(super) scale: Scale,
}

impl Clock {
    /// From the first message of a pair's fleet to its last.
    pub(super) fn of(pair: &Pair<'_>) -> Self {
        Self::between(pair.view.from, pair.view.from, pair.view.until)
    }

    /// From `first` to `last`, counted from `zero`.
    pub(super) fn between(
        zero: Instant<Local>,
        first: Instant<Local>,
        last: Instant<Local>,
    ) -> Self {
        let duration = (last - first).secs_f64();
        let (unit_seconds, unit_name) = duration_unit(duration);
        let at = |moment: Instant<Local>| (moment - zero).secs_f64() / unit_seconds;
        // An axis that begins a moment after zero begins at zero.
        let first = if (first - zero).secs_f64() < duration * 0.05 {
            zero
        } else {
            first
        };
        Self {
            zero,
            unit_seconds,
            unit_name,
            scale: Scale::linear(at(first), at(last)),
        }
    }

    /// A moment in the unit.
    pub(super) fn at(&self, moment: Instant<Local>) -> f64 {
        (moment - self.zero).secs_f64() / self.unit_seconds
    }

    /// `time since the first message (14:05:03 UTC), min`.
    pub(super) fn title(&self, pair: &Pair<'_>) -> String {
        format!(
            "time since the first message ({}), {}",
            pair.start_text, self.unit_name
        )
    }
}

/// `10 s`, where a span is whole seconds; else as exact as it is.
pub(super) fn exact_text(span: Span) -> String {
    let seconds = span.nanos() / 1_000_000_000;
    if Span::from_secs(seconds) == span {
        format!("{seconds} s")
    } else {
        span.exact()
    }
}
