//! Latency inflation: how much longer the slowest path is than the fastest, over pairs.

use super::inks;
use super::pair::{Pair, pairs};
use super::percents::{LEFT, percents};
use super::pooled::Pooled;
use crate::axis::{Plot, Scale, Style};
use crate::figure::legend::Swatch;
use crate::figure::sheet::{Note, Sheet};
use crate::figure::{Figure, flags};
use crate::findings::{plural, real};
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text, fit_among};
use crate::{CampaignData, PlotSettings};

/// Up to so many pairs are named at the axis.
const NAMED: usize = 24;
/// What the third source found: 5 % of the 120 pairs of AWS above 32 %.
const SOURCE: (f64, f64, usize) = (32.0, 0.95, 120);
/// What the pairs' names and numbers take at the left of the plot.
const NAMES: f64 = 190.0;
/// With fewer pairs, the source's twentieth of them says nothing.
const COMPARED: usize = 20;

/// Pairs that were measured alike, with their inflation in percent, the least first.
struct Set<'a> {
    pairs: Vec<(f64, &'a Pair<'a>)>,
}

impl<'a> Set<'a> {
    /// One set for each way of measuring; a pair in two seasons is no distribution over pairs.
    fn all(apart: &[Pooled<'a>]) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for one in apart {
            let Some(inflation) = one.inflation else {
                continue;
            };
            let known = found
                .iter_mut()
                .find(|set| set.pairs[0].1.setting == one.pair.setting);
            let pair = (inflation * 100.0, one.pair);
            match known {
                Some(set) => set.pairs.push(pair),
                None => found.push(Self { pairs: vec![pair] }),
            }
        }
        found.retain(|set| set.pairs.len() > 1);
        for set in &mut found {
            set.pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        found
    }

    /// The share of pairs up to the one at this index.
    fn share(&self, index: usize) -> f64 {
        real(index + 1) / real(self.pairs.len())
    }

    /// Whether the source's twentieth of the pairs says anything beside it.
    fn compared(&self) -> bool {
        self.pairs.len() >= COMPARED
    }
}

/// One figure over all pairs; a single pair has no distribution.
pub(in crate::figure) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let found = pairs(data, settings);
    let apart = Pooled::all(&found);
    let sets = Set::all(&apart);
    let many = match sets.as_slice() {
        [] => return Vec::new(),
        [one] => plural(one.pairs.len(), "pair"),
        several => format!("Pairs measured in {} ways", several.len()),
    };
    let subtitle = format!("{many}: highest base latency of a class over the lowest, less one");
    let mut sheet = Sheet::new("Latency inflation".to_owned(), &subtitle);
    if sets.len() > 1 {
        let named = sets.iter().enumerate().map(|(index, set)| {
            let pairs = plural(set.pairs.len(), "pair");
            let text = format!("{}: {pairs}", set.pairs[0].1.setting);
            (Swatch::Line(inks::curve(index, sets.len())), text)
        });
        sheet.legend(&named.collect::<Vec<_>>());
    }
    draw_on(&mut sheet, &sets);
    let blocks = apart.iter().map(|one| one.blocks).max().unwrap_or(0);
    let mut scenarios: Vec<usize> = found.iter().map(|pair| pair.scenario).collect();
    scenarios.dedup();
    let mut notes = vec![Note::plain(caption(&sets, blocks))];
    notes.extend(flags::notes(data, scenarios, settings));
    vec![sheet.finish("flow-inflation", "flow-inflation".to_owned(), &notes)]
}

fn caption(sets: &[Set<'_>], blocks: usize) -> String {
    let mut text = "Each dot is a pair; at its height, the share of pairs whose inflation is not greater. A dot at 20 % means that a flow on that pair's slowest path takes a fifth longer than one on its fastest, whatever the load.".to_owned();
    if sets.iter().any(Set::compared) {
        text.push_str(" The cross is what the third source found between the regions of AWS: more than 32 % for 5 % of 120 pairs.");
    }
    if blocks > 1 {
        text.push_str(&format!(
            " Of a pair the median over its blocks ({blocks} at most)."
        ));
    }
    text
}

fn draw_on(sheet: &mut Sheet, sets: &[Set<'_>]) {
    let most_pairs = sets.iter().map(|set| set.pairs.len()).max().unwrap_or(0);
    let named = sets.len() == 1 && most_pairs <= NAMED;
    let height = if named {
        (real(most_pairs) * 15.0).max(90.0)
    } else {
        260.0
    };
    let (left, right) = if named { (NAMES, 58.0) } else { (LEFT, 10.0) };
    let place = sheet.take(height + 16.0 + Style::BELOW);
    let compared = sets.iter().any(Set::compared);
    let greatest = sets.iter().filter_map(|set| set.pairs.last());
    let least = if compared { SOURCE.0 } else { 0.5 };
    let most = greatest.fold(least, |most, (percent, _)| most.max(*percent));
    let plot = Plot {
        area: Rect::new(
            place.x + left,
            place.y + 12.0,
            place.width - left - right,
            height,
        ),
        x: Scale::linear(0.0, most * 1.06),
        y: Scale::linear(0.0, 1.0),
    };
    let mut marks = Vec::new();
    plot.x_axis(&mut marks, "inflation, %");
    if named {
        marks.extend(names(&sets[0].pairs, &plot));
    } else {
        percents(&mut marks, &plot, "share of pairs");
    }
    for (index, set) in sets.iter().enumerate() {
        let (width, radius) = if named { (1.0, 3.2) } else { (1.8, 1.8) };
        let stroke = Stroke {
            width,
            ..inks::curve(index, sets.len())
        };
        marks.extend(distribution(set, &plot, stroke, radius));
    }
    if compared {
        marks.extend(source(&plot));
    }
    sheet.draw(marks);
}

/// Steps with a dot at each pair.
fn distribution(set: &Set<'_>, plot: &Plot, stroke: Stroke, radius: f64) -> Vec<Mark> {
    let mut points = vec![Point::new(plot.area.x, plot.area.bottom())];
    let mut dots = Vec::new();
    for (index, (percent, _)) in set.pairs.iter().enumerate() {
        let (x, last) = (plot.px(*percent), points[points.len() - 1].y);
        let centre = Point::new(x, plot.py(set.share(index)));
        points.extend([Point::new(x, last), centre]);
        dots.push(Mark::Disc {
            centre,
            radius,
            fill: Fill::solid(stroke.colour),
        });
    }
    points.push(Point::new(plot.area.right(), plot.py(1.0)));
    let mut marks = vec![Mark::Line { points, stroke }];
    marks.extend(dots);
    marks
}

/// The pairs' names at the left, each at its dot's height, and the shares at the right.
fn names(inflated: &[(f64, &Pair<'_>)], plot: &Plot) -> Vec<Mark> {
    let mut marks = Vec::new();
    let all: Vec<String> = inflated.iter().map(|(_, pair)| pair.name.clone()).collect();
    for (index, (percent, pair)) in inflated.iter().enumerate() {
        let y = plot.py(real(index + 1) / real(inflated.len()));
        let grid = Stroke::solid(Colour::GRID, 1.0);
        let (from, to) = (Point::new(plot.area.x, y), Point::new(plot.area.right(), y));
        marks.push(Mark::line(from, to, grid));
        let number = format!("{percent:.1} %");
        let at = Point::new(plot.area.x - 6.0, y + 3.6);
        let number = Text::new(at, Anchor::End, Style::TICK, number).coloured(Colour::FAINT_INK);
        let name = fit_among(&pair.name, &all, Style::TICK, NAMES - 50.0);
        let at = Point::new(plot.area.x - NAMES, y + 3.6);
        marks.push(Mark::Text(Text::new(at, Anchor::Start, Style::TICK, name)));
        marks.push(Mark::Text(number));
    }
    for tenth in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let at = Point::new(plot.area.right() + 6.0, plot.py(tenth) + 3.6);
        let text = format!("{:.0} %", tenth * 100.0);
        let text = Text::new(at, Anchor::Start, Style::TICK, text);
        marks.push(Mark::Text(text.coloured(Colour::FAINT_INK)));
    }
    let middle = plot.area.y + plot.area.height / 2.0;
    let at = Point::new(plot.area.right() + 54.0, middle);
    let title = Text::new(at, Anchor::Middle, Style::LABEL, "share of pairs");
    marks.push(Mark::Text(title.upright()));
    marks
}

/// A small cross where the source's pairs were, and its words where nothing else stands: right
/// below, under the distribution.
fn source(plot: &Plot) -> Vec<Mark> {
    let (percent, share, _) = SOURCE;
    let (x, y) = (plot.px(percent), plot.py(share));
    let faint = Stroke::solid(Colour::FAINT_INK, 1.2);
    let arm = |dx: f64, dy: f64| {
        Mark::line(
            Point::new(x - dx, y - dy),
            Point::new(x + dx, y + dy),
            faint,
        )
    };
    let words = "the source, over AWS";
    let text = Text::new(
        Point::new(x + 7.0, y + 15.0),
        Anchor::Start,
        Style::NOTE,
        words,
    );
    let fits = text.at.x + text.width() <= plot.area.right();
    let text = if fits {
        text
    } else {
        Text::new(
            Point::new(x - 7.0, y + 15.0),
            Anchor::End,
            Style::NOTE,
            words,
        )
    };
    vec![
        arm(4.0, 4.0),
        arm(4.0, -4.0),
        Mark::Text(text.coloured(Colour::FAINT_INK)),
    ]
}
