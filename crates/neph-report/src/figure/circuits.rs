//! Circuits over networks: a matrix for each quantity, a row for each circuit, a column for each network.
//!
//! A cell has the median in words. Its colour is the difference to the same circuit's first network:
//! blue for better, orange for worse, white for the same.

use neph_analysis::circuits::{self, CircuitRow, Circuits};
use neph_analysis::numbers::quantity_text;
use neph_analysis::{CampaignData, PlotSettings};
use neph_model::{Better, Quantity};
use neph_stats::Level;

use super::legend::Swatch;
use super::sheet::{Note, Sheet, page_name, page_title};
use super::{Figure, flags};
use crate::axis::Style;
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text};
use crate::shorten::shorten_among;

const KIND: &str = "circuits";
/// What has a matrix; the others are in the table.
const SHOWN_QUANTITIES: [Quantity; 18] = [
    Quantity::MediaRate,
    Quantity::MediaRateLeast,
    Quantity::MediaRateMost,
    Quantity::MediaJitter,
    Quantity::MediaLoss,
    Quantity::Transactions,
    Quantity::RttP50,
    Quantity::RttP99,
    Quantity::RttJitter,
    Quantity::ResponseP50,
    Quantity::ResponseP99,
    Quantity::ResponseJitter,
    Quantity::UpGoodput,
    Quantity::DownGoodput,
    Quantity::UpLoss,
    Quantity::DownLoss,
    Quantity::UpJitter,
    Quantity::DownJitter,
];
const PER_PAGE: usize = 8;
const ROW_HEIGHT: f64 = 18.0;
const HEADER_HEIGHT: f64 = 40.0;
/// The names of circuits.
const NAME_WIDTH: f64 = 84.0;
/// Sides of the corner of a cell with warnings.
const CORNER: f64 = 6.0;
/// Twice as good or bad has the full colour.
const FULL_COLOUR_DOUBLINGS: f64 = 1.0;

/// Opacity of a cell with the full colour: its number must stay readable.
const FULL_OPACITY: f64 = 0.75;

const fn full_colour(colour: Colour) -> Fill {
    Fill {
        colour,
        opacity: FULL_OPACITY,
    }
}
const BETTER: Colour = Colour::hex(0x003b_7fb8);
const WORSE: Colour = Colour::hex(0x00d9_7a2b);

/// A matrix: the rows of one kind of measurement and quantity.
struct Matrix<'a> {
    title: String,
    quantity: Quantity,
    rows: Vec<&'a CircuitRow>,
}

/// Pages of matrices.
pub(super) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let circuits = circuits::of(data, settings);
    let matrices = matrices(&circuits);
    let total = matrices.len().div_ceil(PER_PAGE);
    let mut scenarios: Vec<usize> = data.measured(settings);
    scenarios.extend(data.transfers(settings));
    let pages = matrices.chunks(PER_PAGE).enumerate().map(|(page, page_matrices)| {
        let title = page_title("Circuits over each network", page, total);
        let first = circuits.networks.first().map_or("", String::as_str);
        let subtitle = "Medians over experiments, circuit by circuit";
        let mut sheet = Sheet::new(title, subtitle);
        sheet.legend(&[
            (Swatch::Area(full_colour(BETTER)), format!("better than {first}")),
            (Swatch::Area(full_colour(WORSE)), format!("worse than {first}")),
        ]);
        for pair in page_matrices.chunks(2) {
            let rows = pair.iter().map(|matrix| matrix.rows.len()).max().unwrap_or(0);
            let height = HEADER_HEIGHT + ROW_HEIGHT * count(rows) + 10.0;
            let frames = sheet.columns(2, height);
            for (matrix, frame) in pair.iter().zip(frames) {
                sheet.draw(draw_panel(matrix, &circuits.networks, frame));
            }
        }
        let caption = format!(
            "A cell has the full colour if its median is at least twice, or at most half, of that over \
             {first}. The verdicts are in the findings of the report; they use all blocks. A red corner: \
             warnings."
        );
        let mut notes = vec![Note::plain(caption)];
        notes.extend(flags::notes(data, scenarios.iter().copied(), settings));
        sheet.finish(KIND, page_name(KIND, page, total), &notes)
    });
    pages.collect()
}

fn matrices(circuits: &Circuits) -> Vec<Matrix<'_>> {
    let mut matrices: Vec<Matrix<'_>> = Vec::new();
    for row in circuits
        .rows
        .iter()
        .filter(|row| SHOWN_QUANTITIES.contains(&row.quantity))
    {
        let title = format!("{}: {}", row.measurement, row.quantity.properties().title);
        match matrices.iter_mut().find(|matrix| matrix.title == title) {
            Some(matrix) => matrix.rows.push(row),
            None => matrices.push(Matrix {
                title,
                quantity: row.quantity,
                rows: vec![row],
            }),
        }
    }
    matrices
}

#[expect(clippy::cast_precision_loss, reason = "a few rows")]
const fn count(rows: usize) -> f64 {
    rows as f64
}

/// The red corner of a cell with warnings: a flag would cover the number.
fn flagged_corner(cell: Rect) -> Mark {
    Mark::Area {
        points: vec![
            Point::new(cell.x, cell.y),
            Point::new(cell.x + CORNER, cell.y),
            Point::new(cell.x, cell.y + CORNER),
        ],
        fill: Fill::solid(Colour::ALARM),
    }
}

fn draw_panel(matrix: &Matrix<'_>, networks: &[String], frame: Rect) -> Vec<Mark> {
    let column_width = (frame.width - NAME_WIDTH) / count(networks.len().max(1));
    let heading = Point::new(frame.x, frame.y + 14.0);
    let heading = Text::new(heading, Anchor::Start, Style::LABEL, matrix.title.clone()).semibold();
    let mut marks = vec![Mark::Text(heading)];
    for (column, network) in networks.iter().enumerate() {
        let middle = frame.x + NAME_WIDTH + column_width * (count(column) + 0.5);
        let name = shorten_among(network, networks, |short| {
            crate::scene::text_width(short, Style::LABEL, crate::scene::Weight::Regular)
                <= column_width - 4.0
        });
        let at = Point::new(middle, frame.y + HEADER_HEIGHT - 6.0);
        let text = Text::new(at, Anchor::Middle, Style::LABEL, name).coloured(Colour::FAINT_INK);
        marks.push(Mark::Text(text));
    }
    for (line, row) in matrix.rows.iter().enumerate() {
        let top = frame.y + HEADER_HEIGHT + ROW_HEIGHT * count(line);
        let base = top + ROW_HEIGHT - 5.5;
        let at = Point::new(frame.x + NAME_WIDTH - 8.0, base);
        marks.push(Mark::Text(Text::new(
            at,
            Anchor::End,
            Style::LABEL,
            row.circuit.clone(),
        )));
        let medians: Vec<Option<Level>> = row
            .cells
            .iter()
            .map(|cell| Some(cell.as_ref()?.summary()?.median))
            .collect();
        for (column, (median, course)) in medians.iter().zip(&row.cells).enumerate() {
            let left = frame.x + NAME_WIDTH + column_width * count(column);
            let cell = Rect::new(left + 1.0, top + 1.0, column_width - 2.0, ROW_HEIGHT - 2.0);
            marks.push(Mark::Rect {
                rect: cell,
                fill: fill(matrix.quantity, *median, medians.first().copied().flatten()),
                stroke: Some(Stroke::solid(Colour::hex(0x00dd_dddd), 0.75)),
            });
            let text = match median {
                Some(Level::At(value)) => quantity_text(matrix.quantity, *value),
                Some(Level::Censored) => "lost".to_owned(),
                None => "–".to_owned(),
            };
            let at = Point::new(left + column_width / 2.0, base);
            marks.push(Mark::Text(Text::new(at, Anchor::Middle, Style::NOTE, text)));
            if course.as_ref().is_some_and(|course| course.is_flagged) {
                marks.push(flagged_corner(cell));
            }
        }
    }
    marks
}

/// The colour of a median, compared to the first network's.
fn fill(quantity: Quantity, value: Option<Level>, first: Option<Level>) -> Option<Fill> {
    let (value, first) = (value?, first?);
    let doublings = match (value, first) {
        (Level::At(value), Level::At(first)) if value > 0.0 && first > 0.0 => {
            (value / first).log2()
        }
        (Level::At(value), Level::At(first)) if value <= first && first <= value => 0.0,
        (Level::At(value), Level::At(first)) if value > first => FULL_COLOUR_DOUBLINGS,
        (Level::Censored, Level::At(_)) => FULL_COLOUR_DOUBLINGS,
        (Level::Censored, Level::Censored) => 0.0,
        _ => -FULL_COLOUR_DOUBLINGS,
    };
    let is_better = match quantity.properties().better {
        Better::Higher => doublings > 0.0,
        Better::Lower => doublings < 0.0,
    };
    let opacity = (doublings.abs() / FULL_COLOUR_DOUBLINGS).min(1.0) * FULL_OPACITY;
    let colour = if is_better { BETTER } else { WORSE };
    (opacity > 0.005).then_some(Fill { colour, opacity })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_coloured_by_direction_and_size_of_the_change() {
        let fill = |quantity, value: f64, first: f64| {
            fill(quantity, Some(Level::At(value)), Some(Level::At(first)))
        };
        let half = fill(Quantity::UpGoodput, 50.0, 100.0).expect("a colour");
        assert_eq!((half.colour, half.opacity), (WORSE, 0.75));
        let slower = fill(Quantity::ResponseP50, 110.0, 100.0).expect("a colour");
        assert!(slower.colour == WORSE && slower.opacity < 0.15);
        let faster = fill(Quantity::ResponseP50, 50.0, 100.0).expect("a colour");
        assert_eq!(faster.colour, BETTER);
        assert_eq!(fill(Quantity::UpLoss, 0.0, 0.0), None);
        let lossy = fill(Quantity::UpLoss, 1.0, 0.0).expect("a colour");
        assert_eq!(lossy.colour, WORSE);
    }
}
