//! What figures call points, segments and directions.

use super::{Direction, HopsDelay, HopsDrawing};
use neph_analysis::numbers::millis;
use neph_analysis::text::capital;

/// `Forward`, `Reverse`: before a panel's points.
pub(super) fn direction_title(direction: Direction) -> String {
    capital(direction.name())
}

/// Towards the last point is to the right.
pub(super) const fn arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "→",
        Direction::Reverse => "←",
    }
}

impl HopsDrawing<'_> {
    /// `client – host`: a segment, whichever way.
    pub(super) fn segment_name(&self, segment: usize) -> String {
        format!("{} – {}", self.points[segment], self.points[segment + 1])
    }

    /// `host → client`: a segment as it was passed.
    pub(super) fn passage_name(&self, direction: Direction, segment: usize) -> String {
        let (start, end) = (&self.points[segment], &self.points[segment + 1]);
        match direction {
            Direction::Forward => format!("{start} → {end}"),
            Direction::Reverse => format!("{end} → {start}"),
        }
    }

    /// All points as they are passed there.
    pub(super) fn path_text(&self) -> String {
        self.points.join(" → ")
    }

    /// What a bound is, at the end of every caption; nothing where no delay is known.
    pub(super) fn bound_text(&self) -> &'static str {
        let is_known = |delay: &HopsDelay| matches!(delay, HopsDelay::Known { .. });
        let mut packets = self.packets.iter();
        if self.max_bounds().iter().any(|bound| *bound > 0.0) {
            " ± is the error bound of a delay, by timestamps and clocks. With two clocks the fastest packets of both directions limit the offset. If one direction is too large by some time, the other is too small by the same time."
        } else if packets.any(|packet| packet.segments.iter().any(is_known)) {
            " All points read one clock: no delay is off by an offset."
        } else {
            ""
        }
    }
}

/// `± 8.0 µs`, of a bound above 0: no less than it is.
pub(super) fn plus_minus(bound: f64) -> String {
    // The last digit that is shown.
    let step = match bound {
        b if b < 0.1 => 1e-4,
        b if b < 1.0 => 1e-3,
        b if b < 100.0 => 1e-2,
        _ => 10.0,
    };
    format!("± {}", millis((bound / step - 1e-6).ceil() * step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_bounds_are_rounded_up() {
        let texts = [0.000_25, 0.008, 0.008_01, 0.1234, 2.0, 2.001, 1234.0].map(plus_minus);
        let expected = "± 0.3 µs|± 8.0 µs|± 8.1 µs|± 124 µs|± 2.00 ms|± 2.01 ms|± 1.24 s";
        assert_eq!(texts.join("|"), expected);
    }
}
