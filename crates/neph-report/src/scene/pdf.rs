//! Marks to PDF: vectors and searchable text, with the figures' font embedded.

#![expect(
    clippy::cast_possible_truncation,
    reason = "PDF counts in f32; a figure's coordinates are far below its limits"
)]

mod font;

use std::collections::BTreeMap;

use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::types::LineJoinStyle;
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect as PdfRect, Ref, Str, TextStr};

use super::font::glyph;
use super::{Anchor, Colour, Fill, Mark, Point, Scene, Stroke, Text, TextDirection, Weight};
use font::FontRefs;

/// PDF counts in points of 1/72 inch, a scene in CSS pixels of 1/96 inch.
const POINTS_PER_PIXEL: f32 = 0.75;
const COMPRESSION: u8 = 6;
/// How far a Bezier curve's handles reach to make a quarter circle.
const HANDLE: f64 = 0.552_284_75;

/// The scene as a PDF file of one page that is as large as the scene.
pub fn pdf(scene: &Scene, title: &str) -> Vec<u8> {
    let ids = [1, 2, 3, 4, 5].map(Ref::new);
    let [catalog, pages, page, contents, document_info] = ids;
    let fonts = [
        (Weight::Regular, FontRefs::from(10)),
        (Weight::SemiBold, FontRefs::from(20)),
    ];
    let mut writer = Writer {
        content: Content::new(),
        opacities: BTreeMap::new(),
    };
    let height = scene.height as f32 * POINTS_PER_PIXEL;
    let to_pdf_coordinates = [POINTS_PER_PIXEL, 0.0, 0.0, -POINTS_PER_PIXEL, 0.0, height];
    writer.content.transform(to_pdf_coordinates);
    for mark in &scene.marks {
        writer.mark(mark);
    }
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.document_info(document_info).title(TextStr(title));
    pdf.pages(pages).kids([page]).count(1);
    let mut page_writer = pdf.page(page);
    let width = scene.width as f32 * POINTS_PER_PIXEL;
    page_writer.media_box(PdfRect::new(0.0, 0.0, width, height));
    page_writer.parent(pages).contents(contents);
    let mut resources = page_writer.resources();
    let mut names = resources.fonts();
    for (weight, refs) in &fonts {
        names.pair(font::name(*weight), refs.composite);
    }
    names.finish();
    let mut states = resources.ext_g_states();
    for (percent, number) in &writer.opacities {
        let opacity = f32::from(*percent) / 100.0;
        let state_name = format!("A{number}");
        states
            .insert(Name(state_name.as_bytes()))
            .start::<pdf_writer::writers::ExtGraphicsState<'_>>()
            .non_stroking_alpha(opacity);
    }
    states.finish();
    resources.finish();
    page_writer.finish();
    let compressed_content = compress_to_vec_zlib(&writer.content.finish(), COMPRESSION);
    pdf.stream(contents, &compressed_content)
        .filter(Filter::FlateDecode);
    for (weight, refs) in fonts {
        font::embed(&mut pdf, weight, refs);
    }
    pdf.finish()
}

struct Writer {
    content: Content,
    /// Percent to the number of its graphics state.
    opacities: BTreeMap<u8, usize>,
}

impl Writer {
    fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::Line { points, stroke } => {
                self.trace(points);
                self.stroke(stroke);
            }
            Mark::Area { points, fill } => {
                self.trace(points);
                self.fill(fill);
            }
            Mark::Rect { rect, fill, stroke } => {
                if let Some(fill) = fill {
                    self.trace(&rect.corners());
                    self.fill(fill);
                }
                if let Some(stroke) = stroke {
                    self.trace(&rect.corners());
                    self.content.close_path();
                    self.stroke(stroke);
                }
            }
            Mark::Cells { rects, fill } => {
                for rect in rects {
                    let [x, y] = [rect.x, rect.y].map(hundredths);
                    let [width, height] = [rect.width, rect.height].map(hundredths);
                    self.content.rect(x, y, width, height);
                }
                self.fill(fill);
            }
            Mark::Disc {
                centre,
                radius,
                fill,
            } => {
                self.circle(*centre, *radius);
                self.fill(fill);
            }
            Mark::Text(text) => self.text(text),
            Mark::Clip { within, marks } => {
                self.content.save_state();
                self.trace(within);
                self.content.close_path().clip_nonzero().end_path();
                for mark in marks {
                    self.mark(mark);
                }
                self.content.restore_state();
            }
        }
    }

    fn trace(&mut self, points: &[Point]) {
        for (index, point) in points.iter().enumerate() {
            let (x, y) = (hundredths(point.x), hundredths(point.y));
            if index == 0 {
                self.content.move_to(x, y);
            } else {
                self.content.line_to(x, y);
            }
        }
    }

    fn circle(&mut self, centre: Point, radius: f64) {
        let at = |right: f64, down: f64| {
            (
                hundredths(centre.x + right * radius),
                hundredths(centre.y + down * radius),
            )
        };
        let (x, y) = at(1.0, 0.0);
        self.content.move_to(x, y);
        for (from, to) in [
            ((1.0, 0.0), (0.0, 1.0)),
            ((0.0, 1.0), (-1.0, 0.0)),
            ((-1.0, 0.0), (0.0, -1.0)),
            ((0.0, -1.0), (1.0, 0.0)),
        ] {
            let (x1, y1) = at(from.0 + HANDLE * to.0, from.1 + HANDLE * to.1);
            let (x2, y2) = at(to.0 + HANDLE * from.0, to.1 + HANDLE * from.1);
            let (x, y) = at(to.0, to.1);
            self.content.cubic_to(x1, y1, x2, y2, x, y);
        }
    }

    fn stroke(&mut self, stroke: &Stroke) {
        let [red, green, blue] = channels(stroke.colour);
        self.content
            .set_stroke_rgb(red, green, blue)
            .set_line_width(stroke.width as f32)
            .set_line_join(LineJoinStyle::RoundJoin);
        match stroke.dash {
            Some((dash, gap)) => self
                .content
                .set_dash_pattern([dash as f32, gap as f32], 0.0),
            None => self.content.set_dash_pattern([], 0.0),
        };
        self.content.stroke();
    }

    fn fill(&mut self, fill: &Fill) {
        let [red, green, blue] = channels(fill.colour);
        #[expect(clippy::cast_sign_loss, reason = "an opacity is 0 to 1")]
        let percent = (fill.opacity * 100.0).round() as u8;
        if percent < 100 {
            let next = self.opacities.len();
            let number = *self.opacities.entry(percent).or_insert(next);
            let state_name = format!("A{number}");
            self.content
                .save_state()
                .set_parameters(Name(state_name.as_bytes()));
        }
        self.content.set_fill_rgb(red, green, blue).fill_nonzero();
        if percent < 100 {
            self.content.restore_state();
        }
    }

    fn text(&mut self, text: &Text) {
        let face = text.weight.face();
        let glyphs: Vec<u8> = text
            .text
            .chars()
            .flat_map(|character| glyph(face, character).0.to_be_bytes())
            .collect();
        let anchor_offset = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => text.width() / 2.0,
            Anchor::End => text.width(),
        };
        let (x, y) = (text.position.x, text.position.y);
        // The page is flipped, so that the text has to be flipped back.
        let matrix = match text.direction {
            TextDirection::Horizontal => {
                let x = x - anchor_offset;
                [1.0, 0.0, 0.0, -1.0, hundredths(x), hundredths(y)]
            }
            TextDirection::Vertical => {
                let y = y + anchor_offset;
                [0.0, -1.0, -1.0, 0.0, hundredths(x), hundredths(y)]
            }
        };
        let [red, green, blue] = channels(text.colour);
        self.content
            .set_fill_rgb(red, green, blue)
            .begin_text()
            .set_font(font::name(text.weight), text.size as f32)
            .set_text_matrix(matrix)
            .show(Str(&glyphs))
            .end_text();
    }
}

fn channels(colour: Colour) -> [f32; 3] {
    [colour.red, colour.green, colour.blue].map(|channel| f32::from(channel) / 255.0)
}

/// Finer places only make the file longer.
fn hundredths(value: f64) -> f32 {
    ((value * 100.0).round() / 100.0) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pdf_page_has_the_size_of_its_scene_and_embeds_its_font() {
        let mut scene = Scene::new(400.0, 200.0);
        let at = Point::new(10.0, 20.0);
        scene
            .marks
            .push(Mark::Text(Text::new(at, Anchor::Start, 10.0, "µs")));
        let fill = Fill {
            colour: Colour::INK,
            opacity: 0.3,
        };
        scene.marks.push(Mark::Disc {
            centre: at,
            radius: 3.0,
            fill,
        });
        let bytes = pdf(&scene, "A title");
        let content = String::from_utf8_lossy(&bytes);
        assert!(content.starts_with("%PDF-1.") && content.trim_end().ends_with("%%EOF"));
        assert!(content.contains("/MediaBox [0 0 300 150]"));
        assert!(content.contains("/FontFile2") && content.contains("/ca 0.3"));
    }
}
