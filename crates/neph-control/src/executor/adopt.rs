//! Orders of an earlier process: experiments of this campaign continue, other orders are cancelled.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{AgentName, CampaignId, ExecutorLost, ExperimentId, Order, OrderId, Ticket};

use super::AgentsExecutor;
use super::shares::{Running, Share};
use crate::Bus;

/// End of a message about an agent that does not answer, if the campaign can be resumed.
pub(crate) const LATER: &str = "; its results are fetched when the campaign continues";

impl<B: Bus> AgentsExecutor<B> {
    pub(super) fn adopt_orders(
        &mut self,
        campaign: CampaignId,
    ) -> Result<Vec<(Ticket, Order)>, ExecutorLost> {
        let known: BTreeSet<OrderId> = self
            .running
            .values()
            .flat_map(|running| running.shares.iter().filter_map(|share| share.id))
            .chain(self.unstored.keys().copied())
            .collect();
        let open = self.dispatcher.open_orders();
        let left: Vec<(OrderId, AgentName, Order)> = open
            .filter(|(id, _)| !known.contains(id))
            .map(|(id, out)| (id, out.agent.clone(), out.order.clone()))
            .collect();
        let mut adopted = Vec::new();
        for (id, agent, order) in left {
            let Order::Experiments(orders) = &order else {
                // It is repeated with its block.
                self.dispatcher.cancel(id);
                self.dispatcher.stored(id)?;
                continue;
            };
            let experiments: Vec<_> = orders.iter().map(|order| &order.experiment).collect();
            if experiments
                .iter()
                .any(|experiment| experiment.campaign != campaign)
            {
                continue;
            }
            let experiments: Vec<ExperimentId> =
                experiments.iter().map(|experiment| experiment.id).collect();
            let targets = orders
                .iter()
                .map(|order| order.scenario.target.first().cloned());
            let targets = targets.collect();
            let share = Share {
                agent: Some(agent),
                id: Some(id),
                places: (0..experiments.len()).collect(),
                prepared: None,
                result: None,
            };
            self.dispatcher.follow(id);
            let ticket = self.ticket();
            self.run(
                ticket,
                Running {
                    shares: vec![share],
                    experiments,
                    is_prepared: false,
                    pending: Vec::new(),
                    targets,
                    lost: BTreeMap::new(),
                },
            );
            adopted.push((ticket, order));
        }
        Ok(adopted)
    }
}
