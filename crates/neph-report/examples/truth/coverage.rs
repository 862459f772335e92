//! Intervals of summaries: how often they hold the truth.

use neph_analysis::{Layer, PlotSettings, QuantileCell, SummaryRow, summary};
use neph_stats::{Level, normal_quantile};

use crate::outcome::{Row, Section, Target};
use crate::world::{Bursts, World};

/// Each end may miss in 2.5 %. An interval without an upper end misses at its lower end alone, and ranks
/// are whole numbers: more than 95 % is no broken promise. 1,000 reports settle it to 2.
const CLAIMED: Target = Target::AtLeast(93.0);
/// The quantiles of a summary, in its order.
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// How often an interval was given, and held the truth.
#[derive(Clone, Copy, Default)]
struct Count {
    contained: usize,
    intervals: usize,
    /// Those with an upper end.
    closed: usize,
}

impl Count {
    fn add(&mut self, interval: Option<(f64, f64)>, truth: f64) {
        if let Some((low, high)) = interval {
            self.intervals += 1;
            self.closed += usize::from(high.is_finite() || truth.is_infinite());
            self.contained += usize::from(low <= truth && truth <= high);
        }
    }

    fn row(self, world: &str, quantity: &str) -> Row {
        Row {
            world: world.to_owned(),
            quantity: quantity.to_owned(),
            hits: self.contained,
            cases: self.intervals,
            target: CLAIMED,
        }
    }

    /// How many of them have an upper end, where some have none.
    fn closed_row(self, world: &str, quantity: &str) -> Option<Row> {
        let row = Row {
            quantity: format!("{quantity} has an upper end"),
            hits: self.closed,
            target: Target::Shown,
            ..self.row(world, quantity)
        };
        (self.closed < self.intervals).then_some(row)
    }
}

fn ends(cell: QuantileCell) -> Option<(f64, f64)> {
    let number = |level: Level| level.number().unwrap_or(f64::INFINITY);
    match cell {
        QuantileCell::Known { interval, .. } => {
            let high = |high: Option<Level>| high.map_or(f64::INFINITY, number);
            interval.map(|ends| (number(ends.low), high(ends.high)))
        }
        QuantileCell::Refused { .. } => None,
    }
}

/// The true quantile over messages of all experiments that could have been made, lost ones above all, of
/// which there is this share.
fn truth(world: &World, lost: f64, p: f64) -> f64 {
    let spreads = [
        world.between_blocks,
        world.between_experiments,
        world.between_messages,
    ];
    let spread = spreads
        .iter()
        .map(|spread| spread * spread)
        .sum::<f64>()
        .sqrt();
    let of_replies = p / (1.0 - lost);
    if of_replies >= 1.0 {
        return f64::INFINITY;
    }
    world.endpoints[0].median_ms * (spread * normal_quantile(of_replies)).exp()
}

fn response(rows: &[SummaryRow]) -> Option<&SummaryRow> {
    rows.iter().find(|row| row.layer == Layer::Response)
}

/// The rows of a world: p50, p90, p99 and, where messages are lost, loss.
fn rows(title: &str, world: &World, reports: u64) -> Vec<Row> {
    let mut quantiles = [Count::default(); 3];
    let mut losses = Count::default();
    for seed in 0..reports {
        let rows = summary(&world.campaign(seed), &PlotSettings::default());
        let Some(row) = response(&rows) else { continue };
        let mut lost = world.loss.map_or(0.0, |bursts| bursts.share);
        if let (1, Some(loss)) = (world.blocks, row.loss) {
            // Intervals of a single experiment are about this one, with the losses that it had.
            lost = loss.share;
        }
        for (index, count) in quantiles.iter_mut().enumerate() {
            count.add(
                ends(row.quantiles[index]),
                truth(world, lost, QUANTILES[index]),
            );
        }
        if let Some((bursts, loss)) = world.loss.zip(row.loss) {
            losses.add(
                loss.interval.map(|interval| (interval.low, interval.high)),
                bursts.share,
            );
        }
    }
    let names = ["p50", "p90", "p99"];
    let mut rows: Vec<Row> = quantiles
        .iter()
        .zip(names)
        .flat_map(|(count, name)| [Some(count.row(title, name)), count.closed_row(title, name)])
        .flatten()
        .collect();
    rows.extend(world.loss.map(|_| losses.row(title, "loss")));
    rows
}

pub(crate) fn coverage_section(reports: u64) -> Section {
    let mut table_rows = Vec::new();
    for blocks in [1, 6, 12] {
        for autocorrelation in [0.0, 0.5, 0.8, 0.95] {
            for between_experiments in [0.0, 0.1] {
                if blocks == 1 && between_experiments > 0.0 {
                    // One experiment cannot know of others.
                    continue;
                }
                let mut world = single_endpoint(blocks);
                world.autocorrelation = autocorrelation;
                world.between_experiments = between_experiments;
                let title = format!(
                    "{blocks} x 1,000 messages, autocorrelation {autocorrelation}, levels spread by {:.0} %",
                    100.0 * between_experiments
                );
                table_rows.extend(rows(&title, &world, reports));
            }
        }
        for length in [1.0, 20.0] {
            let mut world = single_endpoint(blocks);
            world.loss = Some(Bursts {
                share: 0.02,
                length,
            });
            let title = format!("{blocks} x 1,000 messages, 2 % lost in bursts of {length}");
            table_rows.extend(rows(&title, &world, reports));
        }
    }
    Section {
        about: "How often the 95 % confidence intervals of a summary hold the truth: of the response time, over all \
                experiments that could have been made, and of loss. Those of a single experiment are held \
                against its own process, with the losses that it had. Where an interval has no upper end \
                it misses at its lower end alone, so more seldom than in 5 %; how many have one is in a \
                row of its own.",
        rows: table_rows,
    }
}

fn single_endpoint(blocks: u32) -> World {
    World {
        blocks,
        messages: 1000,
        between_blocks: 0.0,
        between_experiments: 0.0,
        ..World::with_equal_endpoints(1)
    }
}
