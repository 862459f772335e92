//! Periods on a plot that do not need their true width: as many marks as can be distinguished,
//! for any number of periods.

use neph_model::{Instant, Local};

use super::clock::Clock;
use crate::axis::Plot;
use crate::scene::Rect;

/// The least width in pixels: less is not seen.
const MIN_BAR_WIDTH: f64 = 1.5;

/// Bars of a height for periods in the order of time. One that begins in the pixel where the last
/// one ends is part of it, so that there are never more bars than pixels.
pub(super) fn merged_bars(
    periods: impl IntoIterator<Item = (Instant<Local>, Instant<Local>)>,
    plot: &Plot,
    clock: &Clock,
    (top, height): (f64, f64),
) -> Vec<Rect> {
    let x = |at| plot.area.x + clock.scale.clamped_share(clock.at(at)) * plot.area.width;
    let mut ends: Vec<(f64, f64)> = Vec::new();
    for (from, until) in periods {
        let left = x(from);
        let right = x(until).max(left + MIN_BAR_WIDTH);
        match ends.last_mut() {
            Some(last) if left.floor() <= last.1.floor() => last.1 = last.1.max(right),
            _ => ends.push((left, right)),
        }
    }
    let bar = |(left, right): (f64, f64)| Rect::new(left, top, right - left, height);
    ends.into_iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use neph_model::Span;

    use super::*;
    use crate::axis::Scale;

    fn at(milliseconds: i64) -> Instant<Local> {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    /// A hundred seconds over a hundred pixels.
    fn draw_bars(periods: &[(i64, i64)]) -> Vec<(f64, f64)> {
        let plot = Plot {
            area: Rect::new(10.0, 0.0, 100.0, 50.0),
            x: Scale::linear(0.0, 100.0),
            y: Scale::linear(0.0, 1.0),
        };
        let clock = Clock::between(at(0), at(0), at(0) + Span::from_secs(100));
        let periods = periods.iter().map(|(from, until)| (at(*from), at(*until)));
        let bars = merged_bars(periods, &plot, &clock, (4.0, 3.0));
        assert!(bars.iter().all(|bar| (bar.y, bar.height) == (4.0, 3.0)));
        bars.iter().map(|bar| (bar.x, bar.right())).collect()
    }

    #[test]
    fn distant_bars_keep_their_ends() {
        assert_eq!(
            draw_bars(&[(5_000, 10_000), (12_000, 20_500)]),
            [(15.0, 20.0), (22.0, 30.5)]
        );
    }

    #[test]
    fn bars_within_a_pixel_merge_and_short_bars_stay_visible() {
        assert_eq!(
            draw_bars(&[(5_000, 5_010), (6_900, 7_000), (9_000, 9_001)]),
            [(15.0, 18.4), (19.0, 20.5)]
        );
        assert_eq!(
            draw_bars(&[(5_000, 30_000), (6_000, 7_000)]),
            [(15.0, 40.0)]
        );
    }

    #[test]
    fn there_are_never_more_bars_than_pixels() {
        let short_periods: Vec<(i64, i64)> =
            (0..65_536).map(|i| (i * 3 / 2, i * 3 / 2 + 1)).collect();
        assert_eq!(draw_bars(&short_periods).len(), 1);
        let wide: Vec<(i64, i64)> = (0..1000).map(|i| (i * 2_600, i * 2_600 + 1)).collect();
        assert!(draw_bars(&wide).len() <= 100);
    }

    #[test]
    fn a_bar_that_begins_before_the_axis_starts_at_its_edge() {
        assert_eq!(draw_bars(&[(-9_000, 2_000)]), [(10.0, 12.0)]);
    }
}
