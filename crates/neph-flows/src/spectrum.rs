//! The flow-latency spectrum: number of flows by base latency and time. The steps of the grid double until it
//! is small enough.

use neph_model::{Instant, Local, Span};

use crate::sweep::Sweep;
use crate::view::{FlowHistory, Spectrum, SpectrumBin};

/// Maximum number of columns, and minimum if flows have enough messages.
const MAX_COLUMNS: i64 = 1000;
const MIN_COLUMNS: i64 = 240;
/// Maximum number of rows.
const MAX_ROWS: i64 = 250;
/// Minimum height of a row: nearer latencies are one path, independent of timestamps.
const MIN_ROW_HEIGHT: Span = Span::from_micros(50);

/// Time and its division, which all grids of a view share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeGrid {
    /// When the first message was sent.
    pub(crate) from: Instant<Local>,
    /// When the last was.
    pub(crate) until: Instant<Local>,
    /// The bins in which flows are compared; above zero.
    pub(crate) bin: Span,
    /// Time between two messages of a flow; above zero.
    pub(crate) interval: Span,
}

impl TimeGrid {
    /// The step, and the number of columns. Starts with a bin; halves it while there are few columns and each
    /// half has a message per flow, or doubles it while there are too many.
    pub(crate) fn columns(self) -> (Span, i64) {
        let duration = (self.until - self.from).nanos().max(1);
        let mut step = self.bin.nanos();
        while duration / step < MIN_COLUMNS && step / 2 >= self.interval.nanos().max(1) {
            step /= 2;
        }
        while duration / step >= MAX_COLUMNS {
            step *= 2;
        }
        (Span::from_nanos(step), duration / step + 1)
    }

    /// The middle of each of the first `columns` steps; the last step may be short.
    pub(crate) fn middles(self, step: Span, columns: i64) -> impl Iterator<Item = Instant<Local>> {
        (0..columns).map(move |column| {
            let from = self.from + step.times(column);
            let until = (from + step).min(self.until);
            from + Span::from_nanos((until - from).nanos() / 2)
        })
    }
}

/// The spectrum of some flows; empty without a base latency.
pub(crate) fn spectrum(flows: &[&FlowHistory], time_grid: TimeGrid) -> Spectrum {
    let (step, columns) = time_grid.columns();
    let bases = || {
        let segments = flows.iter().flat_map(|flow| &flow.segments);
        segments.map(|segment| segment.base)
    };
    let (lowest, highest) = (
        bases().min().unwrap_or_default(),
        bases().max().unwrap_or_default(),
    );
    let mut row = MIN_ROW_HEIGHT;
    while (highest - lowest).nanos().div_euclid(row.nanos()) >= MAX_ROWS - 1 {
        row = row.times(2);
    }
    let sweep = Sweep::from_flows(flows.iter().copied(), row);
    let first = lowest.nanos().div_euclid(row.nanos());
    let levels_by_column = sweep.evaluate_at(time_grid.middles(step, columns), |levels| {
        levels
            .iter()
            .map(|(row, flows)| (*row - first, *flows))
            .collect::<Vec<_>>()
    });
    let bins = (0..).zip(levels_by_column).flat_map(|(column, levels)| {
        levels.into_iter().map(move |(row, flows)| SpectrumBin {
            column,
            row: u32::try_from(row).expect("no base latency is below the lowest"),
            flows,
        })
    });
    Spectrum {
        from: time_grid.from,
        step,
        lowest: row.times(first),
        row,
        bins: bins.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histories::history;

    /// Segments in seconds, base latencies in microseconds.
    fn flow(segments: &[(i64, i64, i64)]) -> FlowHistory {
        history(segments, (Span::from_secs(1), Span::from_micros(1)))
    }

    impl TimeGrid {
        fn with_interval(self, interval: Span) -> Self {
            Self { interval, ..self }
        }
    }

    fn time_grid(seconds: i64) -> TimeGrid {
        TimeGrid {
            from: Instant::from_nanos(0),
            until: Instant::from_nanos(seconds * 1_000_000_000),
            bin: Span::from_secs(20),
            interval: Span::from_secs(15),
        }
    }

    #[test]
    fn the_number_of_spectrum_columns_is_limited_by_messages_and_a_maximum() {
        let columns = |seconds: i64, interval| {
            let interval = Span::from_millis(interval);
            time_grid(seconds).with_interval(interval).columns()
        };
        let millis = |millis: i64| Span::from_millis(millis);
        assert_eq!(columns(60, 1000), (Span::from_micros(1_250_000), 49));
        assert_eq!(columns(60, 200), (Span::from_micros(312_500), 193));
        assert_eq!(columns(60, 5), (Span::from_micros(156_250), 385));
        assert_eq!(columns(600, 200), (millis(2_500), 241));
        assert_eq!(columns(7200, 200), (millis(20_000), 361));
        assert_eq!(columns(60, 30_000), (millis(20_000), 4));
        assert_eq!(columns(0, 1).1, 1);
        for seconds in 1..2000 {
            let (_, columns) = time_grid(seconds * 97).with_interval(millis(1)).columns();
            assert!((240..=1000).contains(&columns), "{seconds}: {columns}");
        }
    }

    #[test]
    fn spectrum_columns_contain_the_levels_at_their_middle() {
        let flows = [
            flow(&[(0, 35, 10_000), (35, 60, 12_000)]),
            flow(&[(0, 60, 10_010)]),
        ];
        let spectrum = spectrum(&[&flows[0], &flows[1]], time_grid(60));
        assert_eq!(spectrum.lowest, Span::from_millis(10));
        assert_eq!(spectrum.row, Span::from_micros(50));
        let cells: Vec<_> = spectrum
            .bins
            .iter()
            .map(|bin| (bin.column, bin.row, bin.flows))
            .collect();
        assert_eq!(cells, [(0, 0, 2), (1, 0, 2), (2, 0, 1), (2, 40, 1)]);
    }

    #[test]
    fn the_spectrum_of_a_week_and_a_wide_range_has_a_bounded_size() {
        let week = 7 * 86_400;
        let flows = [flow(&[(0, week, 1_000)]), flow(&[(0, week, 900_000)])];
        let spectrum = spectrum(&[&flows[0], &flows[1]], time_grid(week));
        assert_eq!(spectrum.step, Span::from_secs(640));
        assert!(
            spectrum
                .bins
                .iter()
                .all(|bin| bin.column <= 1000 && bin.row < 250)
        );
        assert_eq!(
            spectrum.bins.len(),
            2 * usize::try_from(week).unwrap() / 640
        );
    }

    #[test]
    fn without_a_flow_there_is_an_empty_grid() {
        assert!(spectrum(&[], time_grid(60)).bins.is_empty());
    }
}
