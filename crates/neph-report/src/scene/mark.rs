//! The shapes that a scene is made of.

use super::{Colour, Weight};

/// A place, in CSS pixels from the upper left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Downwards.
    pub y: f64,
}

impl Point {
    /// The point `x` to the right and `y` below the upper left corner.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }
}

/// An upright rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width, 0 or more.
    pub width: f64,
    /// Height, 0 or more.
    pub height: f64,
}

impl Rect {
    /// The rectangle of that size whose upper left corner is there.
    pub const fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }
    /// Its right edge.
    pub fn right(&self) -> f64 {
        self.x + self.width
    }
    /// Its lower edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }
    /// Its corners, clockwise.
    pub fn corners(&self) -> Vec<Point> {
        vec![
            Point::new(self.x, self.y),
            Point::new(self.right(), self.y),
            Point::new(self.right(), self.bottom()),
            Point::new(self.x, self.bottom()),
        ]
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    /// Its colour.
    pub colour: Colour,
    /// Its width in CSS pixels.
    pub width: f64,
    /// Length of dash and of gap; `None` for an unbroken line.
    pub dash: Option<(f64, f64)>,
}

impl Stroke {
    /// An unbroken line.
    pub const fn solid(colour: Colour, width: f64) -> Self {
        Self {
            colour,
            width,
            dash: None,
        }
    }
    /// The same line, broken.
    #[must_use]
    pub const fn dashed(self, dash: f64, gap: f64) -> Self {
        Self {
            dash: Some((dash, gap)),
            ..self
        }
    }
}

/// How an area is filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// Its colour.
    pub colour: Colour,
    /// 0 (nothing to be seen) to 1.
    pub opacity: f64,
}

impl Fill {
    /// Lets through what is below.
    pub const fn translucent(colour: Colour) -> Self {
        Self {
            colour,
            opacity: 0.3,
        }
    }

    /// Covers what is below.
    pub const fn solid(colour: Colour) -> Self {
        Self {
            colour,
            opacity: 1.0,
        }
    }
}

/// Which part of a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its first letter.
    Start,
    /// Its middle.
    Middle,
    /// Its last letter.
    End,
}

/// Whether a text lies or stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextDirection {
    /// From left to right.
    Horizontal,
    /// From bottom to top.
    Vertical,
}

/// A line of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Where its anchor stands, on its base line.
    pub position: Point,
    /// Its text.
    pub text: String,
    /// Which part of it stands at `position`.
    pub anchor: Anchor,
    /// Font size in CSS pixels.
    pub size: f64,
    /// Font weight.
    pub weight: Weight,
    /// Its colour.
    pub colour: Colour,
    /// Whether it lies or stands.
    pub direction: TextDirection,
}

impl Text {
    /// A lying text in regular ink.
    pub fn new(position: Point, anchor: Anchor, size: f64, text: impl Into<String>) -> Self {
        Self {
            position,
            text: text.into(),
            anchor,
            size,
            weight: Weight::Regular,
            colour: Colour::INK,
            direction: TextDirection::Horizontal,
        }
    }
    /// The same in semibold.
    #[must_use]
    pub fn semibold(mut self) -> Self {
        self.weight = Weight::SemiBold;
        self
    }
    /// The same in another colour.
    #[must_use]
    pub fn coloured(mut self, colour: Colour) -> Self {
        self.colour = colour;
        self
    }
    /// The same from bottom to top.
    #[must_use]
    pub fn vertical(mut self) -> Self {
        self.direction = TextDirection::Vertical;
        self
    }
    /// How wide it is, along its base line.
    pub fn width(&self) -> f64 {
        super::text_width(&self.text, self.size, self.weight)
    }
}

/// One shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A straight or broken line through two or more points.
    Line {
        /// Its points.
        points: Vec<Point>,
        /// How it is drawn.
        stroke: Stroke,
    },
    /// A filled polygon.
    Area {
        /// Its corners.
        points: Vec<Point>,
        /// How it is filled.
        fill: Fill,
    },
    /// A rectangle: filled, outlined, or both.
    Rect {
        /// Where.
        rect: Rect,
        /// How it is filled, if it is.
        fill: Option<Fill>,
        /// How it is outlined, if it is.
        stroke: Option<Stroke>,
    },
    /// Many filled rectangles of one colour, such as the cells of a grid, written as one shape.
    Cells {
        /// Where.
        rects: Vec<Rect>,
        /// How they are filled.
        fill: Fill,
    },
    /// A filled disc.
    Disc {
        /// Its middle.
        centre: Point,
        /// Its radius.
        radius: f64,
        /// How it is filled.
        fill: Fill,
    },
    /// A line of text.
    Text(Text),
    /// Marks of which only what lies within a polygon is shown.
    Clip {
        /// The polygon's corners.
        within: Vec<Point>,
        /// The marks.
        marks: Vec<Mark>,
    },
}

impl Mark {
    /// A straight line.
    pub fn line(from: Point, to: Point, stroke: Stroke) -> Self {
        Self::Line {
            points: vec![from, to],
            stroke,
        }
    }
    /// A filled rectangle.
    pub const fn filled(rect: Rect, colour: Colour) -> Self {
        Self::Rect {
            rect,
            fill: Some(Fill::solid(colour)),
            stroke: None,
        }
    }
}
