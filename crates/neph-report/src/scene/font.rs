//! The one font of all figures, and how wide its text is.
//!
//! Inter, cut down to Latin, Greek and Cyrillic (see `fonts/make.py`). The width of a label is known
//! before it is drawn, and is the same in every backend and on every machine.

use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId};

/// The font's name in SVG and CSS.
pub const FONT_FAMILY: &str = "Inter";
/// The regular weight, a TrueType file.
pub(crate) const REGULAR: &[u8] = include_bytes!("../../fonts/Inter-Regular.ttf");
/// The semibold weight, a TrueType file.
pub(crate) const SEMIBOLD: &[u8] = include_bytes!("../../fonts/Inter-SemiBold.ttf");

static REGULAR_FACE: LazyLock<Face<'static>> = LazyLock::new(|| parse(REGULAR));
static SEMIBOLD_FACE: LazyLock<Face<'static>> = LazyLock::new(|| parse(SEMIBOLD));

fn parse(file: &'static [u8]) -> Face<'static> {
    Face::parse(file, 0).expect("the font is part of this program and a test parses it")
}

/// How bold a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// 400.
    Regular,
    /// 600.
    SemiBold,
}

impl Weight {
    /// The weight's font.
    pub(crate) fn face(self) -> &'static Face<'static> {
        match self {
            Self::Regular => &REGULAR_FACE,
            Self::SemiBold => &SEMIBOLD_FACE,
        }
    }
}

/// The glyph of a character; the font's empty box where it has none.
pub(crate) fn glyph(face: &Face<'_>, character: char) -> GlyphId {
    face.glyph_index(character).unwrap_or(GlyphId(0))
}

/// A glyph's width at font size 1.
pub(crate) fn advance(face: &Face<'_>, glyph: GlyphId) -> f64 {
    f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) / f64::from(face.units_per_em())
}

/// The width of a text in CSS pixels. Without kerning, which every backend switches off.
pub(crate) fn text_width(text: &str, size: f64, weight: Weight) -> f64 {
    let face = weight.face();
    text.chars()
        .map(|character| advance(face, glyph(face, character)))
        .sum::<f64>()
        * size
}

/// The text, or as much of its two ends as fits with an ellipsis between them into `room` pixels.
pub(crate) fn fit(text: &str, size: f64, max_width: f64) -> String {
    crate::shorten::shorten(text, |short| {
        text_width(short, size, Weight::Regular) <= max_width
    })
}

/// As [`fit`], and different from the other texts of `among`.
pub(crate) fn fit_among(text: &str, among: &[String], size: f64, max_width: f64) -> String {
    let fits = |short: &str| text_width(short, size, Weight::Regular) <= max_width;
    crate::shorten::shorten_among(text, among, fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The font itself is a thousandth off in one figure.
    #[test]
    fn digits_are_equally_wide_and_special_characters_exist() {
        for weight in [Weight::Regular, Weight::SemiBold] {
            let digit_width = text_width("1", 10.0, weight);
            assert!(
                "0123456789"
                    .chars()
                    .all(|c| (text_width(&c.to_string(), 10.0, weight) - digit_width).abs() < 0.02)
            );
            assert!(
                "µ·…–→↑↓≤≥×−°äéñжΩ"
                    .chars()
                    .all(|c| weight.face().glyph_index(c).is_some())
            );
        }
    }

    #[test]
    fn a_long_text_is_cut_to_its_room() {
        assert_eq!(fit("home", 10.0, 100.0), "home");
        let cut = fit("a very long endpoint name", 10.0, 60.0);
        assert!(cut.contains('…') && text_width(&cut, 10.0, Weight::Regular) <= 60.0);
    }
}
