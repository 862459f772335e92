//! What of a campaign lies in the blocks that the settings show.

use neph_model::{Throughput, Traceroute};

use super::{CampaignData, ExperimentData};
use crate::settings::PlotSettings;

impl CampaignData {
    /// The experiments.
    pub fn shown(&self, settings: &PlotSettings) -> impl Iterator<Item = &ExperimentData> + Clone {
        let is_shown =
            move |experiment: &&ExperimentData| settings.shows_block(experiment.experiment.block);
        self.experiments.iter().filter(is_shown)
    }

    /// The throughput checks, failed ones included.
    pub(crate) fn shown_checks(
        &self,
        settings: &PlotSettings,
    ) -> impl Iterator<Item = &Throughput> {
        let is_shown = move |check: &&Throughput| settings.shows_block(check.block);
        self.throughputs.iter().filter(is_shown)
    }

    /// The throughput checks that have a result.
    pub(crate) fn successful_checks(
        &self,
        settings: &PlotSettings,
    ) -> impl Iterator<Item = &Throughput> {
        let is_successful = |check: &&Throughput| check.failure.is_none();
        self.shown_checks(settings).filter(is_successful)
    }

    /// The traceroutes.
    pub(crate) fn shown_routes(
        &self,
        settings: &PlotSettings,
    ) -> impl Iterator<Item = &Traceroute> {
        let is_shown = move |route: &&Traceroute| settings.shows_block(route.block);
        self.traceroutes.iter().filter(is_shown)
    }

    /// The congestion windows of a scenario's main flows when a message left, in segments.
    pub fn congestion_windows<'a>(
        &'a self,
        scenario: usize,
        settings: &'a PlotSettings,
    ) -> impl Iterator<Item = u32> + 'a {
        let exchanges = self.main_flows(scenario, settings);
        let exchanges = exchanges.flat_map(|flow| &flow.exchanges);
        exchanges.filter_map(|exchange| exchange.cwnd)
    }
}
