//! Orders of an earlier process: experiments of this campaign continue, other orders are cancelled.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{AgentName, CampaignId, ExecutorLost, ExperimentId, Order, OrderId, Ticket};

use super::AgentsExecutor;
use super::order_parts::{AgentPart, RunningOrder};
use crate::Bus;

impl<B: Bus> AgentsExecutor<B> {
    pub(super) fn adopt_orders(
        &mut self,
        campaign: CampaignId,
    ) -> Result<Vec<(Ticket, Order)>, ExecutorLost> {
        let known_ids: BTreeSet<OrderId> = self
            .running
            .values()
            .flat_map(|running| running.parts.iter().filter_map(|part| part.id))
            .chain(self.unstored.keys().copied())
            .collect();
        let open = self.dispatcher.open_orders();
        let open_orders: Vec<(OrderId, AgentName, Order)> = open
            .filter(|(id, _)| !known_ids.contains(id))
            .map(|(id, out)| (id, out.agent.clone(), out.order.clone()))
            .collect();
        let mut adopted = Vec::new();
        for (id, agent, order) in open_orders {
            let Order::Experiments(orders) = &order else {
                // It is repeated with its block.
                self.dispatcher.cancel(id);
                self.dispatcher.mark_stored(id)?;
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
            let part = AgentPart {
                agent: Some(agent),
                id: Some(id),
                experiment_indices: (0..experiments.len()).collect(),
                prepared: None,
                result: None,
            };
            self.dispatcher.follow(id);
            let ticket = self.next_ticket();
            self.run(
                ticket,
                RunningOrder {
                    parts: vec![part],
                    experiments,
                    is_prepared: false,
                    pending: Vec::new(),
                    targets,
                    without_reflector: BTreeMap::new(),
                },
            );
            adopted.push((ticket, order));
        }
        Ok(adopted)
    }
}
