//! Updates of an agent's part become updates of the order, and its results wait until they are stored.

use std::collections::BTreeSet;

use neph_model::{OrderId, Ticket, Update};

use super::AgentsExecutor;
use super::order_parts::RunningOrder;
use crate::{Bus, InboxError};

impl<B: Bus> AgentsExecutor<B> {
    /// Processes an update of a part; returns the updates of its order.
    pub(super) fn process_part_update(
        &mut self,
        id: OrderId,
        update: Update,
    ) -> Result<Vec<(Ticket, Update)>, InboxError> {
        let Some(ticket) = self.ticket_by_part.get(&id).copied() else {
            return Ok(Vec::new());
        };
        let Some(running) = self.running.get_mut(&ticket) else {
            return Ok(Vec::new());
        };
        let mut updates = Vec::new();
        let mut parts = running.parts.iter_mut();
        if let Some(part) = parts.find(|part| part.id == Some(id)) {
            // Progress of one part has no meaning before all are prepared.
            let is_early = matches!(update, Update::Progress(_))
                && !running.is_prepared
                && !running.experiments.is_empty();
            running
                .pending
                .extend(part.apply_update(update).filter(|_| !is_early));
        }
        if let Some(prepared) = running.take_prepared() {
            updates.push((ticket, Update::Prepared(prepared)));
        }
        if running.is_prepared || running.experiments.is_empty() {
            updates.extend(running.pending.drain(..).map(|update| (ticket, update)));
        }
        if let Some(result) = running.take_result() {
            updates.push((ticket, Update::Done(result)));
            if let Some(running) = self.running.remove(&ticket) {
                self.await_storage(&running)?;
            }
        }
        Ok(updates)
    }

    /// Keeps results of experiments until they are stored; other results are already complete.
    fn await_storage(&mut self, running: &RunningOrder) -> Result<(), InboxError> {
        for part in &running.parts {
            let Some(id) = part.id else { continue };
            self.ticket_by_part.remove(&id);
            let experiment = |index: &usize| running.experiments.get(*index).copied();
            let experiments: BTreeSet<_> = part
                .experiment_indices
                .iter()
                .filter_map(experiment)
                .collect();
            if experiments.is_empty() {
                self.dispatcher.mark_stored(id)?;
            } else {
                self.unstored.insert(id, experiments);
            }
        }
        Ok(())
    }
}
