//! Marks to PNG, with tiny-skia. Text is drawn from the glyphs' outlines, so that no font needs to
//! be installed.

#![expect(
    clippy::cast_possible_truncation,
    reason = "tiny-skia draws in f32; a figure's pixels are far below its limits"
)]

use tiny_skia::{
    FillRule, LineJoin, Mask, Paint, PathBuilder, Pixmap, Stroke as SkiaStroke, StrokeDash,
    Transform,
};
use ttf_parser::OutlineBuilder;

use super::font::{advance, glyph};
use super::{Anchor, Colour, Fill, Mark, Point, Rect, Scene, Stroke, Text, TextDirection};

/// Why a scene could not become a PNG.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The scene is empty or larger than an image can be.
    #[error("cannot draw an image of {width} x {height} pixels")]
    Size {
        /// Width in pixels.
        width: f64,
        /// Height in pixels.
        height: f64,
    },
    /// The encoder refused.
    #[error("cannot encode the image as PNG: {0}")]
    Encode(String),
}

/// The scene as a PNG file, `scale` pixels per CSS pixel (2 is 192 dots per inch).
pub fn png(scene: &Scene, scale: f64) -> Result<Vec<u8>, PngError> {
    let (width, height) = ((scene.width * scale).ceil(), (scene.height * scale).ceil());
    let size_error = || PngError::Size { width, height };
    if !(1.0..=30_000.0).contains(&width) || !(1.0..=30_000.0).contains(&height) {
        return Err(size_error());
    }
    #[expect(clippy::cast_sign_loss, reason = "at least 1, as just checked")]
    let mut pixmap = Pixmap::new(width as u32, height as u32).ok_or_else(size_error)?;
    pixmap.fill(tiny_skia::Color::WHITE);
    let mut canvas = Canvas {
        pixmap,
        transform: Transform::from_scale(scale as f32, scale as f32),
        mask: None,
    };
    for mark in &scene.marks {
        canvas.mark(mark);
    }
    canvas
        .pixmap
        .encode_png()
        .map_err(|error| PngError::Encode(error.to_string()))
}

struct Canvas {
    pixmap: Pixmap,
    transform: Transform,
    mask: Option<Mask>,
}

impl Canvas {
    fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::Line { points, stroke } => self.stroke(trace(points), stroke),
            Mark::Area { points, fill } => self.fill(closed(points), fill),
            Mark::Rect { rect, fill, stroke } => {
                if let Some(fill) = fill {
                    self.fill(closed(&rect.corners()), fill);
                }
                if let Some(stroke) = stroke {
                    self.stroke(closed(&rect.corners()), stroke);
                }
            }
            Mark::Cells { rects, fill } => self.cells(rects, fill),
            Mark::Disc {
                centre,
                radius,
                fill,
            } => {
                let mut path = PathBuilder::new();
                path.push_circle(centre.x as f32, centre.y as f32, *radius as f32);
                self.fill(path, fill);
            }
            Mark::Text(text) => self.text(text),
            Mark::Clip { within, marks } => self.clip(within, marks),
        }
    }

    fn fill(&mut self, path: PathBuilder, fill: &Fill) {
        let Some(path) = path.finish() else { return };
        let paint = paint(fill.colour, fill.opacity);
        let mask = self.mask.as_ref();
        self.pixmap
            .fill_path(&path, &paint, FillRule::Winding, self.transform, mask);
    }

    /// Without smoothing, so that neighbours leave no light seam between them.
    fn cells(&mut self, rects: &[Rect], fill: &Fill) {
        let mut path = PathBuilder::new();
        for rect in rects {
            let (x, y) = (rect.x as f32, rect.y as f32);
            let bounds = tiny_skia::Rect::from_xywh(x, y, rect.width as f32, rect.height as f32);
            if let Some(rect) = bounds {
                path.push_rect(rect);
            }
        }
        let Some(path) = path.finish() else { return };
        let mut paint = paint(fill.colour, fill.opacity);
        paint.anti_alias = false;
        let mask = self.mask.as_ref();
        self.pixmap
            .fill_path(&path, &paint, FillRule::Winding, self.transform, mask);
    }

    fn stroke(&mut self, path: PathBuilder, stroke: &Stroke) {
        let Some(path) = path.finish() else { return };
        let style = SkiaStroke {
            width: stroke.width as f32,
            line_join: LineJoin::Round,
            dash: stroke
                .dash
                .and_then(|(dash, gap)| StrokeDash::new(vec![dash as f32, gap as f32], 0.0)),
            ..SkiaStroke::default()
        };
        let mask = self.mask.as_ref();
        let paint = paint(stroke.colour, 1.0);
        self.pixmap
            .stroke_path(&path, &paint, &style, self.transform, mask);
    }

    fn clip(&mut self, within: &[Point], marks: &[Mark]) {
        let outer_mask = self.mask.clone();
        let Some(path) = closed(within).finish() else {
            return;
        };
        match &mut self.mask {
            Some(mask) => mask.intersect_path(&path, FillRule::Winding, true, self.transform),
            no_mask => {
                let mut mask = Mask::new(self.pixmap.width(), self.pixmap.height());
                if let Some(mask) = &mut mask {
                    mask.fill_path(&path, FillRule::Winding, true, self.transform);
                }
                *no_mask = mask;
            }
        }
        for mark in marks {
            self.mark(mark);
        }
        self.mask = outer_mask;
    }

    fn text(&mut self, text: &Text) {
        let face = text.weight.face();
        let scale = text.size / f64::from(face.units_per_em());
        let anchor_offset = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => text.width() / 2.0,
            Anchor::End => text.width(),
        };
        let mut pen = Pen {
            path: PathBuilder::new(),
            along_baseline: -anchor_offset,
            scale,
            position: text.position,
            direction: text.direction,
        };
        for character in text.text.chars() {
            let id = glyph(face, character);
            let _ = face.outline_glyph(id, &mut pen);
            pen.along_baseline += advance(face, id) * text.size;
        }
        self.fill(pen.path, &Fill::solid(text.colour));
    }
}

fn paint(colour: Colour, opacity: f64) -> Paint<'static> {
    let mut paint = Paint::default();
    #[expect(clippy::cast_sign_loss, reason = "an opacity is 0 to 1")]
    let alpha = (opacity * 255.0).round() as u8;
    paint.set_color_rgba8(colour.red, colour.green, colour.blue, alpha);
    paint.anti_alias = true;
    paint
}

fn trace(points: &[Point]) -> PathBuilder {
    let mut path = PathBuilder::new();
    for (index, point) in points.iter().enumerate() {
        let (x, y) = (point.x as f32, point.y as f32);
        if index == 0 {
            path.move_to(x, y);
        } else {
            path.line_to(x, y);
        }
    }
    path
}

fn closed(points: &[Point]) -> PathBuilder {
    let mut path = trace(points);
    path.close();
    path
}

/// Puts a glyph's outline, which counts upwards in font units, where the text wants it.
struct Pen {
    path: PathBuilder,
    along_baseline: f64,
    scale: f64,
    position: Point,
    direction: TextDirection,
}

impl Pen {
    fn map(&self, x: f32, y: f32) -> (f32, f32) {
        let along_baseline = self.along_baseline + f64::from(x) * self.scale;
        let up = f64::from(y) * self.scale;
        let (x, y) = match self.direction {
            TextDirection::Horizontal => (self.position.x + along_baseline, self.position.y - up),
            TextDirection::Vertical => (self.position.x - up, self.position.y - along_baseline),
        };
        (x as f32, y as f32)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.map(x, y);
        self.path.move_to(x, y);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.map(x, y);
        self.path.line_to(x, y);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.map(x1, y1), self.map(x, y));
        self.path.quad_to(x1, y1, x, y);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.map(x1, y1), self.map(x2, y2), self.map(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }
    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Rect;

    #[test]
    fn marks_land_on_their_pixels() {
        let mut scene = Scene::new(20.0, 10.0);
        let red = Colour::hex(0x00ff_0000);
        scene.marks.push(Mark::Clip {
            within: Rect::new(0.0, 0.0, 10.0, 10.0).corners(),
            marks: vec![Mark::filled(Rect::new(5.0, 0.0, 15.0, 10.0), red)],
        });
        let file = png(&scene, 2.0).unwrap();
        let image = Pixmap::decode_png(&file).unwrap();
        let at = |x, y| image.pixel(x, y).map(|p| (p.red(), p.green())).unwrap();
        assert_eq!((image.width(), image.height()), (40, 20));
        assert_eq!(
            [at(4, 4), at(15, 4), at(30, 4)],
            [(255, 255), (255, 0), (255, 255)]
        );
    }

    #[test]
    fn an_empty_scene_is_refused() {
        assert!(matches!(
            png(&Scene::new(0.0, 5.0), 1.0),
            Err(PngError::Size { .. })
        ));
    }
}
