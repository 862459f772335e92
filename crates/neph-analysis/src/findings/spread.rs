//! How much experiments of one scenario differ, for the planning of the next campaign.

use std::collections::BTreeMap;

use super::compare::Medians;
use crate::text::to_f64;
use crate::{CampaignData, PlotSettings};

/// The relative standard deviation of the experiments' medians, without the effects of scenarios and blocks.
/// Calculated from the logarithms. `None` below two scenarios or two blocks with medians of all of them.
pub fn spread(data: &CampaignData, settings: &PlotSettings) -> Option<f64> {
    let scenarios = data.measured(settings);
    let medians: Vec<BTreeMap<u32, f64>> = scenarios
        .iter()
        .map(|scenario| Medians::of(data, settings, *scenario).logarithms())
        .filter(|medians| !medians.is_empty())
        .collect();
    let first = medians.first()?;
    let row = |block: &u32| -> Option<Vec<f64>> {
        medians
            .iter()
            .map(|median| median.get(block).copied())
            .collect()
    };
    let rows: Vec<Vec<f64>> = first.keys().filter_map(row).collect();
    let (blocks, columns) = (rows.len(), medians.len());
    if blocks < 2 || columns < 2 {
        return None;
    }
    let mean =
        |values: &mut dyn Iterator<Item = f64>, count: usize| values.sum::<f64>() / to_f64(count);
    let block_means: Vec<f64> = rows
        .iter()
        .map(|row| mean(&mut row.iter().copied(), columns))
        .collect();
    let scenario_means: Vec<f64> = (0..columns)
        .map(|column| mean(&mut rows.iter().map(|row| row[column]), blocks))
        .collect();
    let overall = mean(&mut block_means.iter().copied(), blocks);
    let squares: f64 = rows
        .iter()
        .zip(&block_means)
        .flat_map(|(row, block)| {
            let columns = row.iter().zip(&scenario_means);
            columns.map(move |(value, column)| (value - block - column + overall).powi(2))
        })
        .sum();
    Some((squares / to_f64((blocks - 1) * (columns - 1))).sqrt())
}
