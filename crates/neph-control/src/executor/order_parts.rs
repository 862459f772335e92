//! The parts of several agents in one order, and their merged result.

use std::collections::BTreeMap;

use neph_agent::remote::REFUSED;
use neph_model::{
    AgentName, Ending, ExperimentId, OrderFailed, OrderId, OrderResult, Prepared, Target, Update,
};

use super::agent_reflector::LostReflector;

/// The part of one agent.
#[derive(Debug)]
pub(super) struct AgentPart {
    /// Absent if the plan names no agent for its site.
    pub(super) agent: Option<AgentName>,
    pub(super) id: Option<OrderId>,
    /// Indices of its experiments in the order.
    pub(super) experiment_indices: Vec<usize>,
    pub(super) prepared: Option<Vec<Result<Prepared, OrderFailed>>>,
    pub(super) result: Option<Result<OrderResult, OrderFailed>>,
}

/// An order that is not over.
#[derive(Debug)]
pub(super) struct RunningOrder {
    pub(super) parts: Vec<AgentPart>,
    /// Empty for other orders.
    pub(super) experiments: Vec<ExperimentId>,
    pub(super) is_prepared: bool,
    /// Updates that wait until all shares are prepared.
    pub(super) pending: Vec<Update>,
    /// The target of each experiment.
    pub(super) targets: Vec<Option<Target>>,
    /// Experiments whose reflector ended during them, each with the reason.
    pub(super) without_reflector: BTreeMap<usize, String>,
}

impl AgentPart {
    /// Stores an update, or returns one that concerns the whole order.
    pub(super) fn apply_update(&mut self, update: Update) -> Option<Update> {
        match update {
            Update::Prepared(prepared) => self.prepared = Some(self.named_all(prepared)),
            Update::Done(Ok(OrderResult::Experiments(results))) => {
                let results = self.named_all(results);
                self.result = Some(Ok(OrderResult::Experiments(results)));
            }
            Update::Done(result) => {
                self.result = Some(result.map_err(|failure| self.named(failure)));
            }
            other => return Some(other),
        }
        None
    }

    fn named_all<T>(&self, results: Vec<Result<T, OrderFailed>>) -> Vec<Result<T, OrderFailed>> {
        let results = results.into_iter();
        results
            .map(|result| result.map_err(|failure| self.named(failure)))
            .collect()
    }

    /// The reason of a refusal with the agent that refuses: the user must know whose policy it is.
    fn named(&self, failure: OrderFailed) -> OrderFailed {
        match &self.agent {
            Some(agent) if failure.operation == REFUSED || failure.is_permanent => OrderFailed {
                reason: format!("agent {agent} refuses: {}", failure.reason),
                ..failure
            },
            _ => failure,
        }
    }
}

impl RunningOrder {
    /// The prepared experiments; returned once, when every share has reported.
    pub(super) fn take_prepared(&mut self) -> Option<Vec<Result<Prepared, OrderFailed>>> {
        let has_reported = |part: &AgentPart| part.prepared.is_some() || part.result.is_some();
        let any_prepared = self.parts.iter().any(|part| part.prepared.is_some());
        if self.is_prepared || !any_prepared || !self.parts.iter().all(has_reported) {
            return None;
        }
        self.is_prepared = true;
        let mut prepared_all: BTreeMap<usize, Result<Prepared, OrderFailed>> = BTreeMap::new();
        for part in &self.parts {
            let reason = match &part.result {
                Some(Err(reason)) => reason.clone(),
                _ => OrderFailed::another_result("prepare an experiment"),
            };
            let failed = vec![Err(reason); part.experiment_indices.len()];
            let mut prepared = part.prepared.clone().unwrap_or(failed);
            let missing = OrderFailed::another_result("prepare an experiment");
            prepared.resize(part.experiment_indices.len(), Err(missing));
            prepared_all.extend(part.experiment_indices.iter().copied().zip(prepared));
        }
        Some(prepared_all.into_values().collect())
    }

    /// Marks experiments whose reflector does not run: they measure nothing, or another server.
    pub(super) fn mark_lost_reflector(&mut self, lost_reflector: &LostReflector) {
        for (index, target) in self.targets.iter().enumerate() {
            let uses_it = |target: &Target| lost_reflector.reflector.answers(target);
            if target.as_ref().is_some_and(uses_it) {
                self.without_reflector
                    .insert(index, lost_reflector.reason());
            }
        }
    }

    /// The result, when every agent has ended.
    pub(super) fn take_result(&mut self) -> Option<Result<OrderResult, OrderFailed>> {
        let mut result = self.merge_results()?;
        if let Ok(OrderResult::Experiments(results)) = &mut result {
            for (index, reason) in &self.without_reflector {
                if let Some(Ok(result)) = results.get_mut(*index) {
                    result.ending = ending_without_reflector(&result.ending, reason);
                }
            }
        }
        Some(result)
    }

    fn merge_results(&mut self) -> Option<Result<OrderResult, OrderFailed>> {
        if !self.parts.iter().all(|part| part.result.is_some()) {
            return None;
        }
        if self.experiments.is_empty() || self.parts.len() == 1 {
            return self.parts.first_mut()?.result.take();
        }
        let mut joined_results = BTreeMap::new();
        for part in &mut self.parts {
            let results = match part.result.take()? {
                Ok(OrderResult::Experiments(results)) => results,
                Ok(_) => vec![
                    Err(OrderFailed::another_result("carry experiments out"));
                    part.experiment_indices.len()
                ],
                Err(reason) => vec![Err(reason); part.experiment_indices.len()],
            };
            joined_results.extend(part.experiment_indices.iter().copied().zip(results));
        }
        Some(Ok(OrderResult::Experiments(
            joined_results.into_values().collect(),
        )))
    }
}

/// The ending of an experiment whose reflector did not run. That a message has no reply is only the effect.
fn ending_without_reflector(ending: &Ending, reason: &str) -> Ending {
    match ending {
        Ending::Complete => Ending::Failed(reason.to_owned()),
        Ending::Failed(effect) => Ending::Failed(format!("{reason} ({effect})")),
        Ending::Interrupted => Ending::Interrupted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_without_its_reflector_fails_with_the_cause_and_the_effect() {
        let reason = "the reflector at agent ams did not run: port taken";
        let failed = ending_without_reflector(&Ending::Failed("no reply".to_owned()), reason);
        assert_eq!(failed, Ending::Failed(format!("{reason} (no reply)")));
        let complete = ending_without_reflector(&Ending::Complete, reason);
        assert_eq!(complete, Ending::Failed(reason.to_owned()));
        let interrupted = ending_without_reflector(&Ending::Interrupted, reason);
        assert_eq!(interrupted, Ending::Interrupted);
    }
}
