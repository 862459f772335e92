//! Marks to SVG. Text stays text: it can be searched, copied and read aloud.

use std::fmt::Write;

use super::{
    Anchor, FONT_FAMILY, Fill, Mark, Point, Rect, Scene, Stroke, Text, TextDirection, Weight,
};

/// The scene as an SVG document. `id_prefix` makes ids unique where one page has several, and
/// `title` is the text for screen readers.
pub fn svg(scene: &Scene, id_prefix: &str, title: &str) -> String {
    let mut writer = Writer {
        out: String::new(),
        id_prefix,
        clips: 0,
    };
    let (width, height) = (number(scene.width), number(scene.height));
    writer.out.push_str(&format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\" \
         font-family=\"{FONT_FAMILY}, 'Helvetica Neue', Arial, sans-serif\" \
         style=\"font-kerning:none;background:#fff\">\n",
        escape(title)
    ));
    for mark in &scene.marks {
        writer.mark(mark);
    }
    writer.out.push_str("</svg>\n");
    writer.out
}

struct Writer<'a> {
    out: String,
    id_prefix: &'a str,
    clips: usize,
}

impl Writer<'_> {
    fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::Line { points, stroke } => self.put(format_args!(
                "<path fill=\"none\"{} d=\"{}\"/>",
                line_style(stroke),
                path(points)
            )),
            Mark::Area { points, fill } => {
                self.put(format_args!(
                    "<path{} d=\"{}Z\"/>",
                    fill_style(fill),
                    path(points)
                ));
            }
            Mark::Rect { rect, fill, stroke } => {
                let inside = fill
                    .as_ref()
                    .map_or_else(|| " fill=\"none\"".into(), fill_style);
                let outline = stroke.as_ref().map(line_style).unwrap_or_default();
                self.put(format_args!(
                    "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{inside}{outline}/>",
                    number(rect.x),
                    number(rect.y),
                    number(rect.width),
                    number(rect.height)
                ));
            }
            Mark::Cells { rects, fill } => {
                let cells: String = rects.iter().map(cell).collect();
                // Without smoothing, neighbours leave no light seam between them.
                self.put(format_args!(
                    "<path shape-rendering=\"crispEdges\"{} d=\"{cells}\"/>",
                    fill_style(fill)
                ));
            }
            Mark::Disc {
                centre,
                radius,
                fill,
            } => self.put(format_args!(
                "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>",
                number(centre.x),
                number(centre.y),
                number(*radius),
                fill_style(fill)
            )),
            Mark::Text(text) => self.text(text),
            Mark::Clip { within, marks } => self.clip(within, marks),
        }
    }

    fn put(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.out, "{line}").expect("writing to a string cannot fail");
    }

    fn text(&mut self, text: &Text) {
        let anchor = match text.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = match text.weight {
            Weight::Regular => "",
            Weight::SemiBold => " font-weight=\"600\"",
        };
        let (x, y) = (number(text.position.x), number(text.position.y));
        let rotation = match text.direction {
            TextDirection::Horizontal => String::new(),
            TextDirection::Vertical => format!(" transform=\"rotate(-90 {x} {y})\""),
        };
        // A viewer without the font squeezes its own to the width that was reserved.
        self.put(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\"{anchor}{weight}{rotation} \
             textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>",
            number(text.size),
            text.colour.css(),
            number(text.width()),
            protect_indent(&escape(&text.text))
        ));
    }

    fn clip(&mut self, within: &[Point], marks: &[Mark]) {
        self.clips += 1;
        let id = format!("{}-{}", self.id_prefix, self.clips);
        self.put(format_args!(
            "<clipPath id=\"{id}\"><path d=\"{}Z\"/></clipPath><g clip-path=\"url(#{id})\">",
            path(within)
        ));
        for mark in marks {
            self.mark(mark);
        }
        self.put(format_args!("</g>"));
    }
}

fn line_style(stroke: &Stroke) -> String {
    let dash = stroke.dash.map_or_else(String::new, |(dash, gap)| {
        format!(" stroke-dasharray=\"{} {}\"", number(dash), number(gap))
    });
    format!(
        " stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{dash}",
        stroke.colour.css(),
        number(stroke.width)
    )
}

fn fill_style(fill: &Fill) -> String {
    let opacity = if fill.opacity < 1.0 {
        format!(" fill-opacity=\"{}\"", number(fill.opacity))
    } else {
        String::new()
    };
    format!(" fill=\"{}\"{opacity}", fill.colour.css())
}

fn path(points: &[Point]) -> String {
    let mut out = String::with_capacity(points.len() * 12);
    for (index, point) in points.iter().enumerate() {
        out.push(if index == 0 { 'M' } else { 'L' });
        out.push_str(&tenths(point.x));
        out.push(' ');
        out.push_str(&tenths(point.y));
    }
    out
}

/// A rectangle as a part of a path.
fn cell(rect: &Rect) -> String {
    format!(
        "M{} {}h{}v{}h-{}Z",
        tenths(rect.x),
        tenths(rect.y),
        tenths(rect.width),
        tenths(rect.height),
        tenths(rect.width)
    )
}

/// One decimal: a long line is most of a page's bytes, and a tenth of a pixel is not seen.
fn tenths(value: f64) -> String {
    trimmed(&format!("{value:.1}"))
}

/// Two decimals at most: a hundredth of a pixel is finer than any print.
fn number(value: f64) -> String {
    trimmed(&format!("{value:.2}"))
}

fn trimmed(text: &str) -> String {
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".into()
    } else {
        text.into()
    }
}

/// No-break spaces at the beginning: viewers drop others, and the text would cover its flag.
fn protect_indent(text: &str) -> String {
    let trimmed = text.trim_start_matches(' ');
    "\u{a0}".repeat(text.len() - trimmed.len()) + trimmed
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Colour;

    #[test]
    fn spaces_at_the_beginning_of_a_text_stay() {
        assert_eq!(protect_indent("  a  b"), "\u{a0}\u{a0}a  b");
    }

    #[test]
    fn a_small_scene_reads_as_expected() {
        let mut scene = Scene::new(120.0, 40.0);
        let stroke = Stroke::solid(Colour::INK, 1.0).dashed(2.0, 1.5);
        scene.marks.push(Mark::Clip {
            within: Rect::new(0.0, 0.0, 60.0, 40.0).corners(),
            marks: vec![Mark::line(
                Point::new(0.0, 0.125),
                Point::new(90.0, 30.0),
                stroke,
            )],
        });
        scene.marks.push(Mark::Cells {
            rects: vec![Rect::new(1.0, 2.0, 3.5, 4.0), Rect::new(4.5, 2.0, 3.0, 4.0)],
            fill: Fill::solid(Colour::GRID),
        });
        let label = Text::new(
            Point::new(60.0, 30.0),
            Anchor::Middle,
            11.0,
            "a < b & \"c\"",
        );
        scene.marks.push(Mark::Text(label.semibold()));
        insta::assert_snapshot!(svg(&scene, "small", "A \"small\" one"));
    }
}
