//! The colours of segments: those of lines, in an order in which neighbours differ in grey print too.

use crate::palette;
use crate::scene::{Colour, Fill, Stroke};

/// Dark and light take turns. Eight points have seven segments.
const ORDER: [usize; 7] = [0, 4, 2, 5, 1, 3, 6];

/// The colour of the n-th segment.
pub(super) fn segment_colour(segment: usize) -> Colour {
    palette::line_colour(ORDER[segment % ORDER.len()])
}

/// The line of the n-th segment; dashes distinguish it in grey print.
pub(super) fn segment_stroke(segment: usize) -> Stroke {
    let solid = Stroke::solid(segment_colour(segment), 1.7);
    match segment % 3 {
        0 => solid,
        1 => solid.dashed(7.0, 2.0),
        _ => solid.dashed(2.2, 1.6),
    }
}

/// The area of a segment whose error bounds are larger than its delays.
pub(super) fn pale_fill(segment: usize) -> Fill {
    Fill {
        colour: segment_colour(segment),
        opacity: 0.35,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_colours_are_unique_and_neighbours_differ_in_grey() {
        let colours: Vec<Colour> = (0..ORDER.len()).map(segment_colour).collect();
        for pair in colours.windows(2) {
            let difference = pair[0].lightness() - pair[1].lightness();
            assert!(difference.abs() > 0.12, "{pair:?}: {difference}");
        }
        for (index, colour) in colours.iter().enumerate() {
            assert!(!colours[index + 1..].contains(colour), "segment {index}");
            assert_ne!(*colour, Colour::ALARM, "loss has its own colour");
        }
    }
}
