//! A long time series thinned for drawing, without hiding an extreme or closing a gap. Owns the choice of
//! points; draws nothing.
//!
//! Each bucket of time keeps its first, lowest, highest and last point (M4: Jugel et al., VLDB 2014). So a
//! line through the kept points covers the same pixels as a line through all.

use crate::casts::{to_usize, usize_to_f64};
use crate::error::StatsError;

/// One value of a series; `v` is absent where the message was lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// When, in any unit.
    pub t: f64,
    /// The value, if there is one.
    pub v: Option<f64>,
}

/// A kept point, one of the readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// When.
    pub t: f64,
    /// The value.
    pub v: f64,
}

/// The resolution of the result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    /// Number of buckets over the whole time, at least 1: the pixels of the figure's width.
    pub buckets: usize,
    /// Neighbours farther apart than this are not joined, in the unit of `t`; may be infinite.
    pub longest_gap: f64,
}

/// The lines to draw, one per run, and the missing messages per bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// Points to be joined by a line, ascending; runs are separated by gaps. At most four points per bucket
    /// and, where a gap ends inside a bucket, four more.
    pub runs: Vec<Vec<Point>>,
    /// Lost messages per bucket, however short the gap they leave.
    pub missing: Vec<usize>,
    /// Time of the first bucket's start.
    pub start: f64,
    /// Width of a bucket, 0 if all readings have one time.
    pub width: f64,
}

/// Thins `readings`, which ascend in time.
///
/// A lost message, or a pause above `grid.longest_gap`, cuts the line if the gap is at least one bucket wide.
/// A narrower gap would not be visible and is only counted in `missing`.
///
/// # Errors
/// [`StatsError::TooFew`] without readings or buckets; [`StatsError::NotFinite`],
/// [`StatsError::NotAscending`] with the place.
pub fn envelope(readings: &[Reading], grid: Grid) -> Result<Envelope, StatsError> {
    refuse_disorder(readings, grid)?;
    let start = readings[0].t;
    let width = (readings[readings.len() - 1].t - start) / usize_to_f64(grid.buckets);
    let mut pen = Pen::default();
    let mut missing = vec![0; grid.buckets];
    let mut after_loss = false;
    for reading in readings {
        let bucket = if width > 0.0 {
            to_usize((reading.t - start) / width)
        } else {
            0
        };
        let bucket = bucket.min(grid.buckets - 1);
        let Some(v) = reading.v else {
            missing[bucket] += 1;
            after_loss = true;
            continue;
        };
        let point = Point { t: reading.t, v };
        let pause = pen.cell.as_ref().map_or(0.0, |cell| point.t - cell.last.t);
        if (after_loss || pause > grid.longest_gap) && pause >= width {
            pen.lift();
        }
        after_loss = false;
        pen.draw(bucket, point);
    }
    pen.lift();
    Ok(Envelope {
        runs: pen.runs,
        missing,
        start,
        width,
    })
}

fn refuse_disorder(readings: &[Reading], grid: Grid) -> Result<(), StatsError> {
    let subject = "time series";
    if readings.is_empty() || grid.buckets == 0 {
        return Err(StatsError::TooFew {
            subject,
            need: 1,
            have: 0,
        });
    }
    let is_invalid = |r: &Reading| !r.t.is_finite() || r.v.is_some_and(|v| !v.is_finite());
    if let Some(index) = readings.iter().position(is_invalid) {
        return Err(StatsError::NotFinite { subject, index });
    }
    match readings.windows(2).position(|w| w[1].t < w[0].t) {
        Some(before) => Err(StatsError::NotAscending {
            subject,
            index: before + 1,
        }),
        None => Ok(()),
    }
}

/// The points of one bucket that are kept.
#[derive(Debug)]
struct Cell {
    bucket: usize,
    first: Point,
    low: (usize, Point),
    high: (usize, Point),
    last: Point,
    count: usize,
}

impl Cell {
    fn new(bucket: usize, point: Point) -> Self {
        Self {
            bucket,
            first: point,
            low: (0, point),
            high: (0, point),
            last: point,
            count: 1,
        }
    }

    fn add(&mut self, point: Point) {
        if point.v < self.low.1.v {
            self.low = (self.count, point);
        }
        if point.v > self.high.1.v {
            self.high = (self.count, point);
        }
        self.last = point;
        self.count += 1;
    }

    /// Its points in time order, none twice.
    fn points(&self) -> impl Iterator<Item = Point> + use<> {
        let last = (self.count - 1, self.last);
        let mut points = [(0, self.first), self.low, self.high, last];
        points.sort_by_key(|&(bucket, _)| bucket);
        let mut points_by_bucket = points.to_vec();
        points_by_bucket.dedup_by_key(|&mut (bucket, _)| bucket);
        points_by_bucket.into_iter().map(|(_, point)| point)
    }
}

/// Collects cells into runs.
#[derive(Debug, Default)]
struct Pen {
    runs: Vec<Vec<Point>>,
    run: Vec<Point>,
    cell: Option<Cell>,
}

impl Pen {
    fn draw(&mut self, bucket: usize, point: Point) {
        match &mut self.cell {
            Some(cell) if cell.bucket == bucket => cell.add(point),
            full => {
                let full = full.replace(Cell::new(bucket, point));
                self.run.extend(full.iter().flat_map(Cell::points));
            }
        }
    }

    fn lift(&mut self) {
        let cell = self.cell.take();
        self.run.extend(cell.iter().flat_map(Cell::points));
        if !self.run.is_empty() {
            self.runs.push(std::mem::take(&mut self.run));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const JOINED: f64 = f64::INFINITY;

    fn series(values: &[Option<f64>]) -> Vec<Reading> {
        values
            .iter()
            .enumerate()
            .map(|(i, &v)| Reading {
                t: usize_to_f64(i),
                v,
            })
            .collect()
    }

    #[test]
    fn a_single_peak_among_a_million_is_kept() {
        let mut values = vec![Some(1.0); 1_000_000];
        values[777_777] = Some(9000.0);
        values[123_456] = Some(-3.0);
        let e = envelope(
            &series(&values),
            Grid {
                buckets: 800,
                longest_gap: JOINED,
            },
        )
        .unwrap();
        assert_eq!(e.runs.len(), 1);
        assert!(e.runs[0].contains(&Point {
            t: 777_777.0,
            v: 9000.0
        }));
        assert!(e.runs[0].contains(&Point {
            t: 123_456.0,
            v: -3.0
        }));
        assert!(e.runs[0].len() <= 3200, "{}", e.runs[0].len());
    }

    #[test]
    fn long_gaps_cut_the_line_and_every_gap_is_counted() {
        let mut values = vec![Some(1.0); 1000];
        values[500..600].fill(None);
        values[800] = None;
        let e = envelope(
            &series(&values),
            Grid {
                buckets: 100,
                longest_gap: JOINED,
            },
        )
        .unwrap();
        assert_eq!(e.runs.len(), 2);
        assert!(e.runs[0].iter().all(|p| p.t < 500.0) && e.runs[1][0].t >= 600.0);
        assert_eq!(e.missing.iter().sum::<usize>(), 101);
        assert_eq!(e.missing[80], 1);
    }

    #[test]
    fn a_pause_without_loss_also_interrupts_the_line() {
        let readings = [0.0, 1.0, 2.0, 50.0, 51.0].map(|t| Reading { t, v: Some(t) });
        let cut = envelope(
            &readings,
            Grid {
                buckets: 200,
                longest_gap: 3.0,
            },
        )
        .unwrap();
        let joined = envelope(
            &readings,
            Grid {
                buckets: 200,
                longest_gap: JOINED,
            },
        )
        .unwrap();
        assert_eq!((cut.runs.len(), joined.runs.len()), (2, 1));
    }

    proptest! {
        #[test]
        fn the_envelope_keeps_extremes_order_and_count(
            values in prop::collection::vec(prop::option::weighted(0.9, -1e6..1e6_f64), 1..400),
            buckets in 1..50_usize,
        ) {
            let readings = series(&values);
            let e = envelope(&readings, Grid { buckets, longest_gap: JOINED }).unwrap();
            let drawn: Vec<Point> = e.runs.concat();
            prop_assert!(drawn.windows(2).all(|w| w[0].t < w[1].t));
            prop_assert!(drawn.len() <= 8 * buckets);
            let taken = |p: &Point| readings.contains(&Reading { t: p.t, v: Some(p.v) });
            prop_assert!(drawn.iter().all(taken));
            let lost = values.iter().filter(|v| v.is_none()).count();
            prop_assert_eq!(e.missing.iter().sum::<usize>(), lost);
            let ends = |all: &mut dyn Iterator<Item = f64>| all
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (v.min(l), v.max(h)));
            prop_assert_eq!(
                ends(&mut drawn.iter().map(|p| p.v)), ends(&mut values.iter().flatten().copied()),
            );
        }
    }
}
