//! Orders that are cancelled: at their agents, or here if no agent can have received them.

use neph_model::{AgentName, OrderFailed, OrderId, Ticket, Update};

use super::AgentsExecutor;
use crate::{Bus, InboxError};

fn cancelled_before_start() -> OrderFailed {
    OrderFailed::new("start the order", "it was cancelled before")
}

impl<B: Bus> AgentsExecutor<B> {
    /// Cancels an order; its result follows.
    pub(super) fn cancel_order(&mut self, ticket: Ticket) {
        let mut pending = self.pending_orders.iter();
        if let Some(index) = pending.position(|(known, _)| *known == ticket) {
            self.pending_orders.remove(index);
            let update = Update::Done(Err(cancelled_before_start()));
            self.pending_updates.push((ticket, update));
        }
        let Some(running) = self.running.get(&ticket) else {
            return;
        };
        let open_parts = running.parts.iter().filter(|part| part.result.is_none());
        let ids: Vec<OrderId> = open_parts.filter_map(|part| part.id).collect();
        for id in ids {
            match self.cancel_part(id) {
                Ok(updates) => self.pending_updates.extend(updates),
                Err(error) => tracing::warn!("an order cannot be cancelled: {error}"),
            }
        }
    }

    /// Cancels all orders that run: when the executor ends, so do the reflectors, and an experiment
    /// without its reflector would be stored as if the network had lost its messages.
    pub(super) fn cancel_running(&mut self) {
        let tickets: Vec<Ticket> = self.running.keys().copied().collect();
        for ticket in tickets {
            self.cancel_order(ticket);
        }
    }

    /// Cancels a part: at its agent, or here if the agent cannot have received it.
    fn cancel_part(&mut self, id: OrderId) -> Result<Vec<(Ticket, Update)>, InboxError> {
        if self.dispatcher.withdraw(id)? {
            return self.process_part_update(id, Update::Done(Err(cancelled_before_start())));
        }
        self.dispatcher.cancel(id);
        Ok(Vec::new())
    }

    /// Ends the orders of an agent that was revoked, and the campaign.
    pub(super) fn end_orders_of(
        &mut self,
        agent: &AgentName,
    ) -> Result<Vec<(Ticket, Update)>, InboxError> {
        self.end_reason = Some(format!(
            "agent {agent} was revoked; end it, save its policy file, and enrol it again with an empty folder (neph control invite {agent} --control FOLDER)"
        ));
        let mut updates = Vec::new();
        for (id, update) in self.dispatcher.end_orders_of(agent) {
            updates.extend(self.process_update(id, update)?);
        }
        Ok(updates)
    }
}
