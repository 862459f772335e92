//! Layers: the times of one message that stand side by side, from the application down.

use crate::Layer;
use neph_model::{Span, StageSet};

use crate::CampaignData;
use crate::data::{Exchange, ExperimentData, FlowData};
use crate::means::order;

impl Layer {
    /// Whether its lost messages are known, so that quantiles count them. Imported files hold
    /// replies only, except those of ping.
    pub(crate) fn counts_loss(&self, data: &CampaignData) -> bool {
        match self {
            Self::Response | Self::Service => !data.is_imported(),
            Self::Icmp | Self::Ping(_) => true,
            Self::Acknowledgement | Self::Network | Self::Entry(_) => false,
        }
    }

    /// Whether messages that could not be sent are known and have to count: they are missing from
    /// the time that is counted from the schedule, and never began any other.
    pub(crate) fn counts_failures(&self, data: &CampaignData) -> bool {
        *self == Self::Response && !data.is_imported()
    }

    /// The layers that always come first; ping destinations and the ledger's entries follow.
    pub(crate) const FIRST: [Self; 5] = [
        Self::Response,
        Self::Service,
        Self::Acknowledgement,
        Self::Network,
        Self::Icmp,
    ];

    /// The flow it is read from.
    pub(crate) fn flow<'a>(&self, experiment: &'a ExperimentData) -> Option<&'a FlowData> {
        match self {
            Self::Icmp => experiment.companion(),
            Self::Ping(destination) => experiment
                .ping_destinations()
                .find(|flow| flow.flow.name == *destination),
            _ => experiment.main(),
        }
    }

    /// A flow's values in milliseconds.
    pub(crate) fn values(&self, flow: &FlowData) -> Vec<f64> {
        self.values_of(flow, &flow.exchanges)
    }

    /// Those of some of its messages.
    pub(crate) fn values_of(&self, flow: &FlowData, exchanges: &[Exchange]) -> Vec<f64> {
        let times = exchanges.iter().filter_map(|exchange| match self {
            Self::Response => exchange.response,
            Self::Service => exchange.service,
            Self::Acknowledgement => exchange.ack,
            Self::Network => flow.network(exchange),
            Self::Icmp | Self::Ping(_) => flow.round_trip(exchange),
            Self::Entry(wanted) => flow
                .ledger(exchange)
                .find(|(set, _)| set == wanted)
                .map(|(_, time)| time),
        });
        times.map(Span::millis_f64).collect()
    }
}

/// The ledger entries that occur in these flows, in order of time.
pub(crate) fn entries<'a>(flows: impl IntoIterator<Item = &'a FlowData>) -> Vec<Layer> {
    let mut sets: Vec<StageSet> = Vec::new();
    for flow in flows {
        for set in flow.stage_sets() {
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
    }
    sets.sort_by_key(|set| order(*set));
    sets.into_iter().map(Layer::Entry).collect()
}

/// The ping destinations of these experiments, in the plan's order.
pub(crate) fn destinations<'a>(
    experiments: impl IntoIterator<Item = &'a ExperimentData>,
) -> Vec<Layer> {
    let mut layers: Vec<Layer> = Vec::new();
    for flow in experiments
        .into_iter()
        .flat_map(ExperimentData::ping_destinations)
    {
        let layer = Layer::Ping(flow.flow.name.clone());
        if !layers.contains(&layer) {
            layers.push(layer);
        }
    }
    layers
}
