//! Labels next to what they name, moved so that none touches another.

use crate::axis::Style;
use crate::scene::{Anchor, Colour, Mark, Point, Rect, Stroke, Text};

/// A label that wants to stand at a height.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub(super) y: f64,
    pub(super) text: String,
    /// Of the chip before the text.
    pub(super) colour: Colour,
}

/// From one base line to the next.
pub(super) const LINE_HEIGHT: f64 = 12.5;

/// Heights as near as can be to those wanted (ascending), at least `gap` apart, from `top` to
/// `bottom`.
pub(super) fn spread_heights(preferred: &[f64], gap: f64, (top, bottom): (f64, f64)) -> Vec<f64> {
    // Labels that touch become a block around the mean of what they want.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    let centre_of = |sum: f64, count: usize| {
        let count = neph_analysis::text::to_f64(count);
        let half = gap * (count - 1.0) / 2.0;
        (sum / count).clamp(top + half, (bottom - half).max(top + half))
    };
    for y in preferred {
        let mut block = (centre_of(*y, 1), *y, 1);
        while let Some((centre, sum, count)) = blocks.pop() {
            let min_distance = gap * neph_analysis::text::to_f64(count + block.2) / 2.0;
            if block.0 - centre >= min_distance {
                blocks.push((centre, sum, count));
                break;
            }
            let (sum, count) = (sum + block.1, count + block.2);
            block = (centre_of(sum, count), sum, count);
        }
        blocks.push(block);
    }
    let mut heights = Vec::with_capacity(preferred.len());
    for (centre, _, count) in blocks {
        let half = gap * neph_analysis::text::to_f64(count - 1) / 2.0;
        heights.extend((0..count).map(|i| centre - half + gap * neph_analysis::text::to_f64(i)));
    }
    heights
}

/// Labels to the right of `x`, each with a thin line from the height that it names.
pub(super) fn place_labels(labels: &mut [Label], x: f64, ends: (f64, f64)) -> Vec<Mark> {
    labels.sort_by(|a, b| a.y.total_cmp(&b.y));
    let preferred: Vec<f64> = labels.iter().map(|label| label.y).collect();
    let mut marks = Vec::new();
    for (label, y) in labels
        .iter()
        .zip(spread_heights(&preferred, LINE_HEIGHT, ends))
    {
        let points = vec![
            Point::new(x + 2.0, label.y),
            Point::new(x + 6.0, label.y),
            Point::new(x + 13.0, y),
            Point::new(x + 16.0, y),
        ];
        let stroke = Stroke::solid(Colour::AXIS, 0.8);
        marks.push(Mark::Line { points, stroke });
        let chip = Rect::new(x + 18.0, y - 4.0, 8.0, 8.0);
        marks.push(Mark::filled(chip, label.colour));
        let at = Point::new(x + 30.0, y + 3.5);
        marks.push(Mark::Text(Text::new(
            at,
            Anchor::Start,
            Style::TICK,
            label.text.clone(),
        )));
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_moved_only_as_far_as_they_must() {
        let ends = (0.0, 100.0);
        assert_eq!(spread_heights(&[10.0, 50.0], 10.0, ends), [10.0, 50.0]);
        assert_eq!(spread_heights(&[50.0, 52.0], 10.0, ends), [46.0, 56.0]);
        assert_eq!(
            spread_heights(&[1.0, 1.0, 99.0], 10.0, ends),
            [0.0, 10.0, 99.0]
        );
        assert_eq!(spread_heights(&[98.0, 99.0], 10.0, ends), [90.0, 100.0]);
    }

    #[test]
    fn labels_never_touch() {
        for count in 1..=8_u32 {
            let preferred: Vec<f64> = (0..count).map(|i| f64::from(i * i % 7)).collect();
            let mut sorted = preferred;
            sorted.sort_by(f64::total_cmp);
            let heights = spread_heights(&sorted, 10.0, (0.0, 90.0));
            assert!(
                heights.windows(2).all(|pair| pair[1] - pair[0] > 9.999),
                "{heights:?}"
            );
            assert!(
                heights.iter().all(|y| (-1e-9..=90.001).contains(y)),
                "{heights:?}"
            );
        }
    }
}
