//! Transfers in numbers: a row for each quantity of each scenario.

use neph_model::{Quantity, QuantityUnit};
use neph_stats::Level;

use super::cells::{Cell, Column, Table};
use crate::{CampaignData, PlotSettings};

/// A quantity's unit in tables, and its size in the quantity's own unit.
pub(super) const fn unit(quantity: Quantity) -> (&'static str, f64) {
    match quantity.properties().unit {
        QuantityUnit::BitsPerSecond => ("Mbit/s", 1e6),
        QuantityUnit::Nanoseconds => ("ms", 1e6),
        QuantityUnit::Percent => ("%", 1.0),
        QuantityUnit::PerSecond => ("1/s", 1.0),
        QuantityUnit::Count | QuantityUnit::Score => ("", 1.0),
    }
}

pub(crate) fn table(data: &CampaignData, settings: &PlotSettings) -> Table {
    let columns = [
        "scenario",
        "quantity",
        "unit",
        "experiments",
        "median",
        "median_low",
        "median_high",
        "least",
        "most",
    ];
    let indices = data.transfers(settings);
    let labels = data.labels();
    let rows = indices.iter().flat_map(|scenario| {
        let courses = data.courses(*scenario, settings);
        let label = labels[*scenario].clone();
        courses.into_iter().filter_map(move |course| {
            let summary = course.summary()?;
            let (unit, per_unit) = unit(course.quantity);
            let level_cell = |level: Level| match level {
                Level::At(value) => Cell::Real(value / per_unit),
                Level::Censored => Cell::Censored("lost"),
            };
            let end = |level: Option<Level>| level.map_or(Cell::Absent, level_cell);
            Some(vec![
                Cell::Text(label.clone()),
                Cell::Text(course.quantity.properties().title.to_owned()),
                Cell::Text(unit.to_owned()),
                Cell::Integer(summary.experiments as u64),
                level_cell(summary.median),
                end(summary.interval.map(|(low, _)| low)),
                end(summary.interval.map(|(_, high)| high)),
                level_cell(summary.min),
                level_cell(summary.max),
            ])
        })
    });
    let limits = indices.iter().filter_map(|scenario| {
        let (limit, count) = data.usual_limit(*scenario, settings)?;
        let total: usize = data
            .quantities(*scenario, settings)
            .map(|(_, quantities)| quantities.limits.len())
            .sum();
        Some(format!(
            "{}: {limit} ({count} of {total}).",
            labels[*scenario]
        ))
    });
    Table {
        name: "transfers",
        title: "Transfers",
        columns: columns.map(Column).to_vec(),
        rows: rows.collect(),
        notes: std::iter::once(
            "Medians over experiments; the 95 % confidence interval needs six experiments. Rates count payload: goodput is received, sent is what the kernel accepted. Each end counts over its own seconds, so goodput can exceed sent slightly."
                .to_owned(),
        )
        .chain(limits)
        .collect(),
    }
}
