//! The colours of fleets: a scale from few flows to many, classes, and curves of many pairs.

use crate::palette;
use crate::scene::{Colour, Stroke};

/// From few to many: lighter is fewer, also in grey print. After `ColorBrewer`'s `YlGnBu` (Brewer
/// and Harrower), without its palest colour, which is not seen on paper.
const SEQUENCE: [u32; 10] = [
    0x00c4_e7b6,
    0x009f_d8b9,
    0x0075_c8bc,
    0x004f_b8c1,
    0x0036_a3c2,
    0x0025_89be,
    0x001f_6cae,
    0x0023_509d,
    0x0021_3a87,
    0x0008_1d58,
];

/// Above this number, pairs are not distinguished by colour.
pub(super) const MAX_DISTINGUISHED: usize = 7;

/// How many flows a cell's colour stands for: classes of counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CountScale {
    /// The least count of each class, ascending from 1.
    pub(super) from: Vec<u32>,
    /// The greatest count that there is.
    pub(super) max: u32,
}

impl CountScale {
    /// One class for each count while these are few, then 1-2-5 steps, then decades and their
    /// halves; ten classes at most.
    pub(super) fn up_to(max: u32) -> Self {
        let max = max.max(1);
        let series = |factors: &[u32]| {
            let mut steps = Vec::new();
            let mut power = 1_u32;
            while power <= max {
                steps.extend(factors.iter().map(|f| f * power).filter(|s| *s <= max));
                match power.checked_mul(10) {
                    Some(next) => power = next,
                    None => break,
                }
            }
            steps
        };
        let every: Vec<u32> = (1..=max.min(10)).collect();
        let candidates = [
            if max <= 9 { every } else { Vec::new() },
            series(&[1, 2, 5]),
            series(&[1, 3]),
            series(&[1]),
        ];
        let fitting = candidates
            .into_iter()
            .find(|steps| (1..=SEQUENCE.len()).contains(&steps.len()));
        Self {
            from: fitting.unwrap_or_else(|| vec![1]),
            max,
        }
    }

    /// The class of a count of 1 or more.
    pub(super) fn class(&self, count: u32) -> usize {
        self.from.partition_point(|from| *from <= count).max(1) - 1
    }

    /// The colour of a class. Few classes do not take the ends of the scale.
    pub(super) fn colour(&self, class: usize) -> Colour {
        let (first, last) = match self.from.len() {
            1 => (5, 5),
            2..=4 => (1, SEQUENCE.len() - 2),
            _ => (0, SEQUENCE.len() - 1),
        };
        let steps = self.from.len().max(2) - 1;
        Colour::hex(SEQUENCE[(first + class * (last - first) / steps).min(last)])
    }
}

/// The line of the n-th of `count` curves: coloured where they are few, faint where they are many.
pub(super) fn curve_stroke(index: usize, count: usize) -> Stroke {
    if count <= MAX_DISTINGUISHED {
        distinguished_stroke(index)
    } else {
        Stroke::solid(FAINT, 0.8)
    }
}

/// The line of the n-th distinguished curve: by colour, and in grey print by its dashes.
pub(super) fn distinguished_stroke(index: usize) -> Stroke {
    let stroke = Stroke::solid(palette::line_colour(index), 1.8);
    match index % 3 {
        0 => stroke,
        1 => stroke.dashed(7.0, 2.0),
        _ => stroke.dashed(2.2, 1.6),
    }
}

/// The colour of the n-th class of a pair, or path of a diamond; grey beyond the distinct colours.
pub(super) fn class_colour(index: usize) -> Colour {
    let own_colour = (index < MAX_DISTINGUISHED).then(|| palette::line_colour(index));
    match own_colour {
        // A class next to a queue must not look like one.
        Some(CONGESTION) => YELLOW,
        Some(colour) => colour,
        None => FAINT,
    }
}

/// Okabe and Ito's yellow: good for areas, too pale for lines.
const YELLOW: Colour = Colour::hex(0x00f0_e442);
/// One of many.
pub(super) const FAINT: Colour = Colour::hex(0x00b9_c0ca);
/// What a queue adds to the base latency.
pub(super) const CONGESTION: Colour = Colour::hex(0x00e6_9f00);
/// The base latency.
pub(super) const BASE: Colour = Colour::hex(0x0000_4d80);
/// A single message.
pub(super) const SAMPLE: Colour = Colour::hex(0x0056_b4e9);
/// A reordered message.
pub(super) const REORDERED: Colour = Colour::hex(0x0077_5fae);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_flows_are_counted_one_by_one_and_many_by_decades() {
        assert_eq!(CountScale::up_to(3).from, [1, 2, 3]);
        assert_eq!(CountScale::up_to(40).from, [1, 2, 5, 10, 20]);
        assert_eq!(
            CountScale::up_to(512).from,
            [1, 2, 5, 10, 20, 50, 100, 200, 500]
        );
        let many = CountScale::up_to(50_000);
        let halves = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000];
        assert_eq!(many.from, halves);
        assert_eq!(
            (many.class(1), many.class(29), many.class(40_000)),
            (0, 2, 9)
        );
    }

    #[test]
    fn no_class_looks_like_another_or_like_a_queue() {
        let colours: Vec<Colour> = (0..MAX_DISTINGUISHED).map(class_colour).collect();
        for (index, colour) in colours.iter().enumerate() {
            assert!(!colours[index + 1..].contains(colour), "class {index}");
            assert_ne!(*colour, CONGESTION, "class {index}");
        }
    }

    #[test]
    fn curves_of_the_same_pattern_differ_in_grey_print() {
        let curves: Vec<Stroke> = (0..MAX_DISTINGUISHED).map(distinguished_stroke).collect();
        for (index, curve) in curves.iter().enumerate() {
            for other in &curves[index + 1..] {
                let difference = curve.colour.lightness() - other.colour.lightness();
                assert!(
                    curve.dash != other.dash || difference.abs() > 0.08,
                    "{curve:?}, {other:?}"
                );
            }
        }
    }

    #[test]
    fn more_flows_are_darker() {
        for max in [2, 9, 512, 50_000] {
            let scale = CountScale::up_to(max);
            let light: Vec<f64> = (0..scale.from.len())
                .map(|class| scale.colour(class).lightness())
                .collect();
            assert!(
                light.windows(2).all(|pair| pair[0] > pair[1] + 0.03),
                "{light:?}"
            );
        }
    }
}
