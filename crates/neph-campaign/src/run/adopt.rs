//! Experiments that a process before this one ordered, and that go on without it.

use neph_model::{ExperimentOrder, Order};

use super::{Run, RunError};
use crate::agenda::AgendaSlot;

impl Run<'_, '_> {
    /// Goes on with experiments that were ordered before this process began.
    pub(super) fn adopt(&mut self) -> Result<(), RunError> {
        for (ticket, order) in self.participants.executor.adopt(self.campaign.id)? {
            let Order::Experiments(orders) = order else {
                continue;
            };
            let slots: Vec<AgendaSlot> = orders
                .iter()
                .filter_map(|order| self.slot_of(order))
                .collect();
            if slots.len() == orders.len() {
                self.follow_experiments(ticket, &slots, &orders)?;
            }
        }
        Ok(())
    }

    fn slot_of(&self, order: &ExperimentOrder) -> Option<AgendaSlot> {
        let experiment = &order.experiment;
        let mut matrix = (0..).zip(&self.matrix);
        let (scenario, _) = matrix.find(|(_, scenario)| scenario.id == experiment.scenario)?;
        Some(AgendaSlot {
            block: experiment.block,
            scenario,
            position: experiment.position,
            attempt: experiment.attempt,
            is_first_of_block: false,
        })
    }
}
