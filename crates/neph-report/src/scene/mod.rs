//! Marks: the shapes of a figure, independent of pixels and paper.
//!
//! Owns the shapes and their places, in CSS pixels (1/96 inch), y downwards. Knows no data and no
//! file format: the backends turn the same marks into SVG, PNG and PDF.

mod colour;
mod font;
mod mark;
pub(crate) mod pdf;
pub(crate) mod png;
pub(crate) mod svg;

pub use colour::Colour;
pub use font::{FONT_FAMILY, Weight};
pub(crate) use font::{REGULAR, SEMIBOLD};
pub(crate) use font::{fit, fit_among, text_width};
pub use mark::{Anchor, Fill, Mark, Point, Rect, Stroke, Text, TextDirection};
pub use pdf::pdf;
pub use png::{PngError, png};
pub use svg::svg;

/// A drawing of a certain size.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Width in CSS pixels.
    pub width: f64,
    /// Height in CSS pixels.
    pub height: f64,
    /// What to draw, the first below the next.
    pub marks: Vec<Mark>,
}

impl Scene {
    /// An empty drawing on white.
    pub const fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            marks: Vec::new(),
        }
    }
}
