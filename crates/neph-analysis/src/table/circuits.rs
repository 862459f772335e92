//! Circuits in numbers: a row for each quantity of each circuit over each network.

use neph_stats::Level;

use super::cells::{Cell, Column, Table};
use super::transfers::unit;
use crate::circuits;
use crate::{CampaignData, PlotSettings};

pub(crate) fn table(data: &CampaignData, settings: &PlotSettings) -> Table {
    let columns = [
        "measured",
        "quantity",
        "unit",
        "circuit",
        "network",
        "experiments",
        "median",
        "median_low",
        "median_high",
        "against_first_percent",
    ];
    let circuits = circuits::of(data, settings);
    let rows = circuits.rows.iter().flat_map(|row| {
        let (unit, per_unit) = unit(row.quantity);
        let cell = move |level: Level| match level {
            Level::At(value) => Cell::Real(value / per_unit),
            Level::Censored => Cell::Censored("lost"),
        };
        let first = row.cells.first().and_then(Option::as_ref);
        let first = first.and_then(|course| course.summary()?.median.number());
        let cells = row.cells.iter().zip(&circuits.networks).enumerate();
        cells.filter_map(move |(index, (course, network))| {
            let summary = course.as_ref()?.summary()?;
            let end = |level: Option<Level>| level.map_or(Cell::Absent, cell);
            let against = summary.median.number().zip(first);
            let against = against.filter(|(_, first)| index > 0 && *first > 0.0);
            Some(vec![
                Cell::Text(row.measurement.clone()),
                Cell::Text(row.quantity.properties().title.to_owned()),
                Cell::Text(unit.to_owned()),
                Cell::Text(row.circuit.clone()),
                Cell::Text(network.clone()),
                Cell::Integer(summary.experiments as u64),
                cell(summary.median),
                end(summary.interval.map(|(low, _)| low)),
                end(summary.interval.map(|(_, high)| high)),
                Cell::real(against.map(|(summary, first)| summary / first * 100.0)),
            ])
        })
    });
    Table {
        name: "circuits",
        title: "Circuits over each network",
        columns: columns.map(Column).to_vec(),
        rows: rows.collect(),
        notes: vec![
            "Medians over experiments; the 95 % confidence interval needs six experiments. \
             against_first_percent is the median of a circuit as a share of its median over the first network. \
             The findings have the verdicts. Jitter of messages is the mean difference between consecutive \
             response times."
                .to_owned(),
        ],
    }
}
