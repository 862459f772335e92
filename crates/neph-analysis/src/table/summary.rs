//! The summary: every layer of every scenario in numbers, with intervals.

use neph_model::Unanswered;
use neph_stats::{
    ConfidenceInterval, GroupedQuantile, Level, QuantileInterval, Sorted, describe, quantile_needs,
    rough_level,
};

use super::cells::{Cell, Column, Table};
use super::grouped::{Grouped, Unit};
use super::layers::{destinations, entries};
use crate::Layer;
use crate::text::to_f64;
use crate::{CampaignData, PlotSettings};

/// The quantiles of the summary.
pub const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// The index of the median in `QUANTILES`.
const MEDIAN: usize = 0;

/// A share of lost messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossCell {
    /// The share, 0 to 1.
    pub share: f64,
    /// Its 95 % confidence interval; `None` if the correlation of losses is unknown.
    pub interval: Option<ConfidenceInterval>,
}

/// A quantile in milliseconds, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QuantileCell {
    /// The value; [`Level::Censored`] if messages without a reply decide it.
    Known {
        /// The estimate.
        value: Level,
        /// Its 95 % confidence interval; `None` with too few independent values.
        interval: Option<QuantileInterval>,
    },
    /// Too few messages.
    Refused {
        /// The minimum number of messages.
        need: usize,
    },
}

/// One layer of one scenario, over all blocks shown.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRow {
    /// Index of the scenario.
    pub scenario: usize,
    /// The label of the scenario.
    pub label: String,
    /// The layer.
    pub layer: Layer,
    /// Number of experiments.
    pub experiments: usize,
    /// Number of messages: those with a value, and those without a reply if they count.
    pub n: usize,
    /// Number of lost messages; `None` for layers that do not count loss.
    pub lost: Option<usize>,
    /// Number of messages with an unexpected reply; `None` for layers that do not count loss.
    pub errors: Option<usize>,
    /// Number of messages that could not be sent; `None` for layers that do not begin with the schedule.
    pub not_sent: Option<usize>,
    /// The share of sent messages that were lost; `None` for layers that do not count loss.
    pub loss: Option<LossCell>,
    /// Mean of the values in milliseconds.
    pub mean: Option<f64>,
    /// Their standard deviation in milliseconds.
    pub sd: Option<f64>,
    /// p50, p90 and p99.
    pub quantiles: [QuantileCell; 3],
    /// The unit that the intervals are calculated from.
    pub unit: Unit,
    /// Number of independent messages that give the same accuracy of the median; `None` without an interval.
    pub effective: Option<f64>,
    /// Whether any of its experiments is flagged.
    pub flagged: bool,
}

impl SummaryRow {
    /// Its messages without a value, as far as they count in this layer.
    pub fn unanswered(&self) -> Unanswered {
        let count = |known: Option<usize>| known.unwrap_or(0) as u64;
        Unanswered {
            errors: count(self.errors),
            lost: count(self.lost),
            not_sent: count(self.not_sent),
        }
    }
}

/// Every layer of every measured scenario. A layer without values is left out.
pub fn summary(data: &CampaignData, settings: &PlotSettings) -> Vec<SummaryRow> {
    let mut rows = Vec::new();
    for scenario in data.measured(settings) {
        let mut layers = Layer::FIRST.to_vec();
        layers.extend(destinations(data.experiments_of(scenario, settings)));
        layers.extend(entries(data.main_flows(scenario, settings)));
        let layer_rows = layers
            .into_iter()
            .filter_map(|layer| summary_row(data, settings, scenario, layer));
        rows.extend(layer_rows);
    }
    rows
}

fn summary_row(
    data: &CampaignData,
    settings: &PlotSettings,
    scenario: usize,
    layer: Layer,
) -> Option<SummaryRow> {
    let flows: Vec<_> = data
        .experiments_of(scenario, settings)
        .filter_map(|experiment| layer.flow(experiment))
        .collect();
    let grouped = Grouped::of(&flows, &layer, data);
    let mut values = grouped.values();
    let lost: Option<usize> = layer
        .counts_loss(data)
        .then(|| flows.iter().map(|flow| flow.lost()).sum());
    let errors: Option<usize> = layer
        .counts_loss(data)
        .then(|| flows.iter().map(|flow| flow.errors()).sum());
    let not_sent = layer
        .counts_failures(data)
        .then(|| flows.iter().map(|flow| flow.failed()).sum());
    let answered = values.len() + errors.unwrap_or(0);
    let sent = answered + lost.unwrap_or(0);
    let unanswered = sent - values.len() + not_sent.unwrap_or(0);
    let n = values.len() + unanswered;
    if n == 0 {
        return None;
    }
    let sample = Sorted::sort(&mut values).expect("times are finite");
    let numbers = describe(sample).ok();
    let quantiles = grouped.quantiles(sample, QUANTILES);
    Some(SummaryRow {
        scenario,
        label: data.label(scenario),
        layer,
        experiments: flows.len(),
        n,
        lost,
        errors,
        not_sent,
        loss: lost.filter(|_| sent > 0).map(|lost| LossCell {
            share: to_f64(lost) / to_f64(sent),
            interval: grouped.loss().map(|share| share.interval),
        }),
        mean: numbers.as_ref().map(|numbers| numbers.mean),
        sd: numbers.as_ref().and_then(|numbers| numbers.sd),
        quantiles: std::array::from_fn(|index| {
            quantile_cell(sample, unanswered, QUANTILES[index], quantiles[index])
        }),
        unit: grouped.unit,
        effective: quantiles[MEDIAN].map(|quantile| quantile.effective),
        flagged: !data.flags(scenario, settings).is_empty(),
    })
}

fn quantile_cell(
    sample: Sorted<'_>,
    unanswered: usize,
    p: f64,
    grouped: Option<GroupedQuantile>,
) -> QuantileCell {
    let need = quantile_needs(p).unwrap_or(usize::MAX);
    match rough_level(sample, unanswered, p) {
        Ok(value) if sample.len() + unanswered >= need => QuantileCell::Known {
            value,
            interval: grouped.map(|quantile| quantile.interval),
        },
        _ => QuantileCell::Refused { need },
    }
}

/// The summary for files.
pub(crate) fn table(rows: &[SummaryRow]) -> Table {
    let columns = [
        "scenario",
        "layer",
        "experiments",
        "n",
        "lost",
        "loss",
        "loss_low",
        "loss_high",
        "not_sent",
        "mean_ms",
        "sd_ms",
        "p50_ms",
        "p50_low_ms",
        "p50_high_ms",
        "p90_ms",
        "p90_low_ms",
        "p90_high_ms",
        "p99_ms",
        "p99_low_ms",
        "p99_high_ms",
        "flagged",
        // New columns come last, so that columns of older versions keep their places.
        "errors",
        "intervals_from",
        "effective_n",
    ];
    Table {
        name: "summary",
        title: "Summary",
        columns: columns.map(Column).to_vec(),
        rows: rows.iter().map(cells).collect(),
        notes: notes(rows),
    }
}

fn cells(row: &SummaryRow) -> Vec<Cell> {
    let count = |value: usize| Cell::Integer(value as u64);
    let loss = row.loss.and_then(|loss| loss.interval);
    let mut cells = vec![
        Cell::Text(row.label.clone()),
        Cell::Text(row.layer.name()),
        count(row.experiments),
        count(row.n),
        row.lost.map_or(Cell::Absent, count),
        Cell::real(row.loss.map(|loss| loss.share)),
        Cell::real(loss.map(|interval| interval.low)),
        Cell::real(loss.map(|interval| interval.high)),
        row.not_sent.map_or(Cell::Absent, count),
        Cell::real(row.mean),
        Cell::real(row.sd),
    ];
    for quantile in &row.quantiles {
        cells.extend(match quantile {
            QuantileCell::Known { value, interval } => {
                let bound_cell = |bound: Level| level_cell(bound, row.unanswered());
                let end = |bound: Option<Level>| bound.map_or(Cell::Absent, bound_cell);
                let low = interval.map(|interval| interval.low);
                let high = interval.and_then(|interval| interval.high);
                [bound_cell(*value), end(low), end(high)]
            }
            QuantileCell::Refused { .. } => [Cell::Absent, Cell::Absent, Cell::Absent],
        });
    }
    cells.push(Cell::Text(
        if row.flagged { "yes" } else { "no" }.to_owned(),
    ));
    cells.push(row.errors.map_or(Cell::Absent, count));
    cells.push(Cell::Text(row.unit.name().to_owned()));
    cells.push(Cell::real(row.effective.map(f64::round)));
    cells
}

const fn level_cell(level: Level, unanswered: Unanswered) -> Cell {
    match level {
        Level::At(value) => Cell::Real(value),
        Level::Censored => Cell::Censored(unanswered.word()),
    }
}

/// Notes on the summary, including the number of messages that refused quantiles need.
pub fn notes(rows: &[SummaryRow]) -> Vec<String> {
    let mut notes = vec![
        "All times in milliseconds. The response time begins at the scheduled send time, the service time at the actual one.".to_owned(),
        "Intervals have a confidence of 95 %. They come from the differences between experiments (at least 6), or between ten parts of a single experiment. Two to five experiments have no interval. If an interval has no upper end, the percentile can be above all measured values. If no message was lost, the loss has no interval.".to_owned(),
        "effective_n (in csv and json only) is the number of independent messages that would give the median the same precision.".to_owned(),
        "Lost messages and errors (answers that were not expected) count as slower than every reply in response time, service time and ICMP echo. All other rows, and imported replies, cover only the messages whose value was measured.".to_owned(),
    ];
    if rows.iter().any(|row| row.not_sent.is_some_and(|n| n > 0)) {
        notes.push("Messages that could not be sent count as slower than every reply in response time, which begins with the schedule; loss is the share of those that were sent.".to_owned());
    }
    for (index, p) in QUANTILES.iter().enumerate() {
        let need = rows.iter().find_map(|row| match row.quantiles[index] {
            QuantileCell::Refused { need } => Some(need),
            QuantileCell::Known { .. } => None,
        });
        if let Some(need) = need {
            notes.push(format!("–: p{:.0} needs {need} messages.", p * 100.0));
        }
    }
    if rows.iter().any(|row| row.flagged) {
        notes.push("Flagged scenarios rest on experiments with warnings, listed above.".to_owned());
    }
    notes
}
