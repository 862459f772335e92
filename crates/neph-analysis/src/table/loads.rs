//! Generated traffic in numbers: a row for each end of each load of each scenario.

use std::collections::BTreeMap;

use neph_stats::Level;

use super::cells::{Cell, Column, Table};
use crate::quantities::summary_of;
use crate::{CampaignData, PlotSettings};

/// Bits in a megabit.
const MEGA: f64 = 1e6;

pub(crate) fn table(data: &CampaignData, settings: &PlotSettings) -> Table {
    let columns = [
        "scenario",
        "load",
        "end",
        "experiments",
        "median_mbit_s",
        "median_low_mbit_s",
        "median_high_mbit_s",
        "least_mbit_s",
        "most_mbit_s",
        "guest_cpu_percent",
        "host_cpu_percent",
    ];
    let labels = data.labels();
    let rows = (0..data.scenarios.len()).flat_map(|scenario| {
        let cpu = median(&data.cpu_by_block(scenario, settings));
        let label = labels[scenario].clone();
        let courses = data.load_courses(scenario, settings);
        courses.into_iter().filter_map(move |course| {
            let summary = course.summary()?;
            let rate_cell = |level: Level| Cell::real(level.number().map(|rate| rate / MEGA));
            let end = |level: Option<Level>| level.map_or(Cell::Absent, rate_cell);
            Some(vec![
                Cell::Text(label.clone()),
                Cell::Text(course.load.clone()),
                Cell::Text(course.end.word().to_owned()),
                Cell::Integer(summary.experiments as u64),
                rate_cell(summary.median),
                end(summary.interval.map(|(low, _)| low)),
                end(summary.interval.map(|(_, high)| high)),
                rate_cell(summary.min),
                rate_cell(summary.max),
                median(&course.cpu_by_block),
                cpu.clone(),
            ])
        })
    });
    Table {
        name: "loads",
        title: "Generated traffic",
        columns: columns.map(Column).to_vec(),
        rows: rows.collect(),
        notes: vec![
            "Rates are payload; an experiment's is the mean over the whole seconds within it. Sent is without \
             retransmissions, received is what the receiver reported. Medians over experiments; the interval \
             (95 %) needs six of them. The CPU of a guest is that of the one at that end, all its processors together; \
             that of the host includes all that runs on the machine."
                .to_owned(),
        ],
    }
}

fn median(by_block: &BTreeMap<u32, Level>) -> Cell {
    let summary = summary_of(by_block);
    Cell::real(summary.and_then(|summary| summary.median.number()))
}
