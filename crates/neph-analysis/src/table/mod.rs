//! Tables: numbers per scenario and layer, throughput checks and routes, with the same content in every
//! format. Owns their content; `neph-stats` calculates it.

mod advice;
mod cells;
mod circuits;
mod compared;
mod directions;
mod fleets;
mod grouped;
mod layers;
mod loads;
mod routes;
mod summary;
mod throughput;
mod transfers;
mod transfers_and_traces;

pub use cells::{Cell, Column, Table};
pub use fleets::FLEET_PREFIX;
pub use grouped::Unit;
pub use summary::{LossCell, QuantileCell, SummaryRow, summary};
pub use summary::{QUANTILES, notes};

use crate::findings::{LevelVersusFirst, Statements};
use crate::{CampaignData, PlotSettings};

/// Every table of a report, in its order. Empty tables are left out.
pub fn tables(data: &CampaignData, settings: &PlotSettings) -> Vec<Table> {
    tables_with(data, settings, &Statements::of(data, settings).fleets)
}

/// The same, with an existing comparison of fleets.
pub fn tables_with(
    data: &CampaignData,
    settings: &PlotSettings,
    fleets_compared: &[LevelVersusFirst],
) -> Vec<Table> {
    let rows = summary(data, settings);
    [
        summary::table(&rows),
        directions::table(data, settings),
        circuits::table(data, settings),
        transfers::table(data, settings),
        loads::table(data, settings),
        throughput::table(data, settings),
        routes::table(data, settings),
        compared::table(fleets_compared),
    ]
    .into_iter()
    .chain(fleets::tables(data, settings))
    .filter(|table| !table.rows.is_empty())
    .collect()
}
