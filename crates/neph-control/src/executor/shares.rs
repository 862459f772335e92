//! The shares of several agents in one order, and their joined result.

use std::collections::BTreeMap;

use neph_agent::remote::REFUSED;
use neph_model::{
    AgentName, Ending, ExperimentId, OrderFailed, OrderId, OrderResult, Prepared, Target, Update,
};

use super::campaign_reflectors::Lost;

/// The share of one agent.
#[derive(Debug)]
pub(super) struct Share {
    /// Absent if the plan names no agent for its site.
    pub(super) agent: Option<AgentName>,
    pub(super) id: Option<OrderId>,
    /// Indices of its experiments in the order.
    pub(super) places: Vec<usize>,
    pub(super) prepared: Option<Vec<Result<Prepared, OrderFailed>>>,
    pub(super) result: Option<Result<OrderResult, OrderFailed>>,
}

/// An order that is not over.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) shares: Vec<Share>,
    /// Empty for other orders.
    pub(super) experiments: Vec<ExperimentId>,
    pub(super) is_prepared: bool,
    /// Updates that wait until all shares are prepared.
    pub(super) pending: Vec<Update>,
    /// The target of each experiment.
    pub(super) targets: Vec<Option<Target>>,
    /// Experiments whose reflector ended during them, and its agent.
    pub(super) lost: BTreeMap<usize, AgentName>,
}

impl Share {
    /// Stores an update, or returns one that concerns the whole order.
    pub(super) fn note(&mut self, update: Update) -> Option<Update> {
        match update {
            Update::Prepared(prepared) => self.prepared = Some(prepared),
            Update::Done(result) => {
                self.result = Some(result.map_err(|why| self.named(why)));
            }
            other => return Some(other),
        }
        None
    }

    /// The reason of a refusal with the agent that refuses: the user must know whose policy it is.
    fn named(&self, why: OrderFailed) -> OrderFailed {
        match &self.agent {
            Some(agent) if why.operation == REFUSED => OrderFailed {
                reason: format!("agent {agent} refuses: {}", why.reason),
                ..why
            },
            _ => why,
        }
    }
}

impl Running {
    /// The prepared experiments; returned once, when every share has reported.
    pub(super) fn all_prepared(&mut self) -> Option<Vec<Result<Prepared, OrderFailed>>> {
        let is_known = |share: &Share| share.prepared.is_some() || share.result.is_some();
        let is_any = self.shares.iter().any(|share| share.prepared.is_some());
        if self.is_prepared || !is_any || !self.shares.iter().all(is_known) {
            return None;
        }
        self.is_prepared = true;
        let mut prepared_all: BTreeMap<usize, Result<Prepared, OrderFailed>> = BTreeMap::new();
        for share in &self.shares {
            let reason = match &share.result {
                Some(Err(reason)) => reason.clone(),
                _ => OrderFailed::another_result("prepare an experiment"),
            };
            let failed = vec![Err(reason); share.places.len()];
            let mut prepared = share.prepared.clone().unwrap_or(failed);
            let missing = OrderFailed::another_result("prepare an experiment");
            prepared.resize(share.places.len(), Err(missing));
            prepared_all.extend(share.places.iter().copied().zip(prepared));
        }
        Some(prepared_all.into_values().collect())
    }

    /// Marks experiments whose reflector does not run: they measure nothing, or another server.
    pub(super) fn note_lost(&mut self, lost: &Lost) {
        for (index, target) in self.targets.iter().enumerate() {
            let is_its = |target: &Target| target.host() == lost.host && target.port() == lost.port;
            if target.as_ref().is_some_and(is_its) {
                self.lost.insert(index, lost.agent.clone());
            }
        }
    }

    /// The result, when every agent has ended.
    pub(super) fn all_done(&mut self) -> Option<Result<OrderResult, OrderFailed>> {
        let mut result = self.joined()?;
        if let Ok(OrderResult::Experiments(results)) = &mut result {
            for (index, agent) in &self.lost {
                if let Some(Ok(result)) = results.get_mut(*index)
                    && result.ending == Ending::Complete
                {
                    let reason = format!(
                        "the reflector at agent {agent} did not run during all of the experiment"
                    );
                    result.ending = Ending::Failed(reason);
                }
            }
        }
        Some(result)
    }

    fn joined(&mut self) -> Option<Result<OrderResult, OrderFailed>> {
        if !self.shares.iter().all(|share| share.result.is_some()) {
            return None;
        }
        if self.experiments.is_empty() || self.shares.len() == 1 {
            return self.shares.first_mut()?.result.take();
        }
        let mut joined_results = BTreeMap::new();
        for share in &mut self.shares {
            let results = match share.result.take()? {
                Ok(OrderResult::Experiments(results)) => results,
                Ok(_) => vec![
                    Err(OrderFailed::another_result("carry experiments out"));
                    share.places.len()
                ],
                Err(reason) => vec![Err(reason); share.places.len()],
            };
            joined_results.extend(share.places.iter().copied().zip(results));
        }
        Some(Ok(OrderResult::Experiments(
            joined_results.into_values().collect(),
        )))
    }
}
