//! A spectrum's cells on a plot: as many as can be distinguished, for any number of flows.

use std::collections::BTreeMap;

use neph_flows::Spectrum;
use neph_model::Span;

use super::colours::CountScale;
use crate::axis::Plot;
use crate::scene::{Fill, Mark, Rect};

/// The least size of a cell in pixels: less is not seen.
const MIN_CELL_WIDTH: f64 = 2.0;
const MIN_CELL_HEIGHT: f64 = 3.0;

/// A spectrum in cells that can be seen: flows by (row, column), a row being `rows` of the
/// spectrum's and a column `columns` of its.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CoarseCells {
    columns: u32,
    rows: u32,
    cells: BTreeMap<(u32, u32), u32>,
}

impl CoarseCells {
    /// Joins what is smaller than a cell that can be seen. Within a column's time the mean number
    /// of flows counts, at least one; over latencies they add up.
    pub(super) fn of(spectrum: &Spectrum, (cell_width, cell_height): (f64, f64)) -> Self {
        let columns = to_u32(MIN_CELL_WIDTH / cell_width);
        let rows = to_u32(MIN_CELL_HEIGHT / cell_height);
        let mut sums: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for bin in &spectrum.bins {
            let cell = (bin.row / rows, bin.column / columns);
            *sums.entry(cell).or_default() += u64::from(bin.flows);
        }
        let mean = |sum: u64| u32::try_from(sum.div_ceil(u64::from(columns))).unwrap_or(u32::MAX);
        Self {
            columns,
            rows,
            cells: sums
                .into_iter()
                .map(|(cell, sum)| (cell, mean(sum)))
                .collect(),
        }
    }

    /// The most flows in a cell.
    pub(super) fn max_flows(&self) -> u32 {
        self.cells.values().copied().max().unwrap_or(1)
    }

    /// The cells, one mark for each class of counts, neighbours in time joined. `x` returns the start of a
    /// column, `y` that of a row.
    pub(super) fn marks(
        &self,
        counts: &CountScale,
        x: &dyn Fn(u32) -> f64,
        y: &dyn Fn(u32) -> f64,
    ) -> Vec<Mark> {
        let mut rects_by_class: BTreeMap<usize, Vec<Rect>> = BTreeMap::new();
        let mut open_run: Option<(usize, u32, u32, u32)> = None;
        let mut close = |run: Option<(usize, u32, u32, u32)>| {
            let Some((class, row, from, until)) = run else {
                return;
            };
            let (left, right) = (x(from * self.columns), x((until + 1) * self.columns));
            let (top, base) = (y((row + 1) * self.rows), y(row * self.rows));
            let rect = Rect::new(left, top, right - left, (base - top).max(MIN_CELL_HEIGHT));
            rects_by_class.entry(class).or_default().push(rect);
        };
        for ((row, column), flows) in &self.cells {
            let class = counts.class(*flows);
            open_run = match open_run {
                Some((run_class, run_row, from, until))
                    if (run_class, run_row, until + 1) == (class, *row, *column) =>
                {
                    Some((run_class, run_row, from, *column))
                }
                other => {
                    close(other);
                    Some((class, *row, *column, *column))
                }
            };
        }
        close(open_run);
        let cells = rects_by_class
            .into_iter()
            .map(|(class, rects)| Mark::Cells {
                rects,
                fill: Fill::solid(counts.colour(class)),
            });
        cells.collect()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at least 1, and no plot has four thousand million pixels"
)]
fn to_u32(number: f64) -> u32 {
    number.ceil().clamp(1.0, 1e9) as u32
}

/// The size of a spectrum's cells in pixels. `step` and `height` are in the units of the axes.
pub(super) fn cell_size(plot: &Plot, step: f64, height: f64) -> (f64, f64) {
    let column = step / (plot.x.high - plot.x.low) * plot.area.width;
    let row = height / (plot.y.high - plot.y.low) * plot.area.height;
    (column.max(1e-6), row.max(1e-6))
}

/// `count` times a span: from the first row or column to another one.
pub(super) fn offset(count: u32, span: Span) -> Span {
    span.times(i64::from(count))
}

#[cfg(test)]
mod tests {
    use neph_flows::SpectrumBin;
    use neph_model::Instant;

    use super::*;

    fn spectrum(bins: &[(u32, u32, u32)]) -> Spectrum {
        let bin = |(column, row, flows): &(u32, u32, u32)| SpectrumBin {
            column: *column,
            row: *row,
            flows: *flows,
        };
        Spectrum {
            from: Instant::from_nanos(0),
            step: Span::from_secs(1),
            lowest: Span::from_millis(80),
            row: Span::from_micros(100),
            bins: bins.iter().map(bin).collect(),
        }
    }

    #[test]
    fn cells_smaller_than_a_pixel_are_merged() {
        let fine = spectrum(&[(0, 0, 4), (0, 1, 2), (1, 0, 4), (2, 5, 1)]);
        let coarse = CoarseCells::of(&fine, (1.0, 1.5));
        // Two columns of one pixel, two rows of one and a half: ten flows over two columns.
        assert_eq!(coarse.cells, [((0, 0), 5), ((2, 1), 1)].into());
        assert_eq!(coarse.max_flows(), 5);
    }

    #[test]
    fn neighbours_in_time_become_one_rectangle() {
        let row: Vec<(u32, u32, u32)> = (0..100).map(|column| (column, 3, 7)).collect();
        let coarse = CoarseCells::of(&spectrum(&row), (5.0, 5.0));
        let x = |column: u32| f64::from(column) * 5.0;
        let y = |row: u32| 500.0 - f64::from(row) * 5.0;
        let marks = coarse.marks(&CountScale::up_to(7), &x, &y);
        let expected = Rect::new(0.0, 480.0, 500.0, 5.0);
        assert!(matches!(&marks[..], [Mark::Cells { rects, .. }] if rects[..] == [expected]));
    }
}
