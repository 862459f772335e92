//! Reflectors at agents, during the life of the executor.
//!
//! Owns when each is ordered, and whether those that an order needs are ready. A reflector that ends,
//! or whose agent was killed, is ordered once more.

use std::collections::BTreeMap;

use neph_agent::remote::REFUSED;
use neph_model::{AgentName, Order, OrderFailed, OrderId, ReflectorOrder, Span, Update};

use super::agent_reflector::{AgentReflector, LostReflector};

/// How long an order waits for a reflector that it needs: its agent may be offline for long.
const READY_TIMEOUT: Span = Span::from_secs(20);
/// How long all orders wait at the start until each reflector has answered: a refusal ends the campaign,
/// and then nothing should have begun.
const FIRST_ANSWER_TIMEOUT: Span = Span::from_secs(2);
/// Minimum time from the end of a reflector to its next order.
const MIN_RETRY_DELAY: Span = Span::from_secs(1);
/// Short: a user who removes the cause should not have to wait.
const MAX_RETRY_DELAY: Span = Span::from_secs(8);
/// A reflector that fails with at least this delay is reported. Before, a reflector of the previous run may
/// not have ended yet.
const REPORT_RETRY_DELAY: Span = Span::from_secs(4);

/// Result of an update of a reflector.
#[derive(Debug, Default)]
pub(super) struct ReflectorUpdate {
    /// Its order is over.
    pub(super) is_over: bool,
    pub(super) lost_reflector: Option<LostReflector>,
    /// That its agent refuses it, and why.
    pub(super) refusal: Option<String>,
}

/// The state of a reflector.
#[derive(Debug)]
enum ReflectorState {
    /// To be ordered at this time.
    Due(Span),
    /// Ordered.
    Ordered(OrderId),
    /// It answers.
    Ready(OrderId),
    /// It answered, and its agent has disconnected since: it is unknown whether it still does.
    Away(OrderId),
}

#[derive(Debug)]
struct ReflectorSlot {
    reflector: AgentReflector,
    state: ReflectorState,
    /// Its agent has answered an order for it.
    has_answered: bool,
    /// Why its last order ended.
    last_failure: Option<OrderFailed>,
    /// Time from its last end to the next order.
    retry_delay: Span,
    /// The last failure that was reported; `None` since the reflector last started.
    reported: Option<OrderFailed>,
    /// Since when orders wait for it.
    wait_start: Option<Span>,
    /// The end of this wait was reported.
    is_wait_reported: bool,
}

impl ReflectorSlot {
    const fn order(&self) -> Option<OrderId> {
        match self.state {
            ReflectorState::Due(_) => None,
            ReflectorState::Ordered(id) | ReflectorState::Ready(id) | ReflectorState::Away(id) => {
                Some(id)
            }
        }
    }

    fn lost(&self, agent: &AgentName) -> LostReflector {
        LostReflector {
            agent: agent.clone(),
            reflector: self.reflector.clone(),
            failure: self.last_failure.clone(),
        }
    }

    /// Reports a failure to start, each cause once.
    fn report(&mut self, agent: &AgentName, failure: &OrderFailed) {
        if self.retry_delay < REPORT_RETRY_DELAY || self.reported.as_ref() == Some(failure) {
            return;
        }
        tracing::warn!(
            "the reflector at agent {agent} is not ready: {failure}; neph tries to start it again at least every {MAX_RETRY_DELAY}"
        );
        self.reported = Some(failure.clone());
    }

    const fn is_ready(&self) -> bool {
        matches!(self.state, ReflectorState::Ready(_))
    }

    /// It has started, and its end is not known.
    const fn has_started(&self) -> bool {
        matches!(
            self.state,
            ReflectorState::Ready(_) | ReflectorState::Away(_)
        )
    }

    /// Whether an order may need it: only experiments have targets that show it.
    fn is_needed_by(&self, order: &Order) -> bool {
        let Order::Experiments(experiments) = order else {
            return true;
        };
        let mut targets = experiments
            .iter()
            .flat_map(|order| order.scenario.target.as_slice());
        targets.any(|target| self.reflector.answers(target))
    }

    /// Whether an order that needs it may be sent: it is ready, or the wait for it is over.
    fn is_wait_over(&mut self, agent: &AgentName, now: Span) -> bool {
        if self.is_ready() {
            self.wait_start = None;
            self.is_wait_reported = false;
            return true;
        }
        let wait_start = *self.wait_start.get_or_insert(now);
        let is_over = now - wait_start > READY_TIMEOUT;
        if is_over && !self.is_wait_reported {
            self.is_wait_reported = true;
            let cause = self.last_failure.as_ref();
            let cause = cause.map_or_else(String::new, |failure| format!(" ({failure})"));
            tracing::warn!(
                "agent {agent} has not started its reflector after {READY_TIMEOUT}{cause}: experiments to this site fail until it has"
            );
        }
        is_over
    }
}

/// The reflectors of a campaign.
#[derive(Debug, Default)]
pub(super) struct CampaignReflectors {
    slots: BTreeMap<AgentName, ReflectorSlot>,
    is_over: bool,
}

impl CampaignReflectors {
    pub(super) fn new(reflector_specs: BTreeMap<AgentName, AgentReflector>) -> Self {
        let slot = |reflector| ReflectorSlot {
            reflector,
            state: ReflectorState::Due(Span::ZERO),
            has_answered: false,
            last_failure: None,
            retry_delay: MIN_RETRY_DELAY,
            reported: None,
            wait_start: None,
            is_wait_reported: false,
        };
        let slots = reflector_specs.into_iter();
        Self {
            slots: slots
                .map(|(agent, reflector)| (agent, slot(reflector)))
                .collect(),
            ..Self::default()
        }
    }

    /// Reflectors to order at `now`.
    pub(super) fn due_orders(&self, now: Span) -> Vec<(AgentName, ReflectorOrder)> {
        if self.is_over {
            return Vec::new();
        }
        let is_due =
            |slot: &ReflectorSlot| matches!(slot.state, ReflectorState::Due(at) if at <= now);
        let due = self.slots.iter().filter(|(_, slot)| is_due(slot));
        due.map(|(agent, slot)| (agent.clone(), slot.reflector.order.clone()))
            .collect()
    }

    pub(super) fn set_ordered(&mut self, agent: &AgentName, id: OrderId) {
        if let Some(slot) = self.slots.get_mut(agent) {
            slot.state = ReflectorState::Ordered(id);
        }
    }

    /// Processes an update, if it is of a reflector.
    pub(super) fn apply_update(
        &mut self,
        id: OrderId,
        update: &Update,
        now: Span,
    ) -> Option<ReflectorUpdate> {
        let mut slots = self.slots.iter_mut();
        let (agent, slot) = slots.find(|(_, slot)| slot.order() == Some(id))?;
        slot.has_answered = true;
        let mut effect = ReflectorUpdate::default();
        match update {
            Update::Progress(_) => {
                slot.state = ReflectorState::Ready(id);
                slot.reported = None;
            }
            Update::Done(result) => {
                slot.last_failure = result.as_ref().err().cloned();
                if let Err(failure) = result
                    && !self.is_over
                {
                    if failure.operation == REFUSED {
                        let reason = &failure.reason;
                        effect.refusal =
                            Some(format!("agent {agent} refuses its reflector: {reason}"));
                    } else {
                        slot.report(agent, failure);
                    }
                }
                // A reflector that was ready has a short delay; for another one the delay doubles.
                slot.retry_delay = if slot.has_started() {
                    effect.lost_reflector = (!self.is_over).then(|| slot.lost(agent));
                    MIN_RETRY_DELAY
                } else {
                    slot.retry_delay.times(2).min(MAX_RETRY_DELAY)
                };
                slot.state = ReflectorState::Due(now + slot.retry_delay);
                effect.is_over = true;
            }
            _ => {}
        }
        Some(effect)
    }

    /// Whether an order may be sent: the reflectors that it needs are ready, or the wait for them is
    /// over.
    pub(super) fn is_ready_for(&mut self, order: &Order, now: Span) -> bool {
        let is_unanswered = self.slots.values().any(|slot| !slot.has_answered);
        if is_unanswered && now < FIRST_ANSWER_TIMEOUT {
            return false;
        }
        let needed = self.slots.iter_mut();
        let needed = needed.filter(|(_, slot)| slot.is_needed_by(order));
        // Each wait begins with the first order that needs the reflector, so all are visited.
        needed.fold(true, |is_ready, (agent, slot)| {
            slot.is_wait_over(agent, now) && is_ready
        })
    }

    /// The agent has disconnected.
    pub(super) fn mark_away(&mut self, agent: &AgentName) {
        if let Some(slot) = self.slots.get_mut(agent)
            && let ReflectorState::Ready(id) = slot.state
        {
            slot.state = ReflectorState::Away(id);
        }
    }

    /// The agent reports that the order still runs; reports of other agents have no effect.
    pub(super) fn mark_running(&mut self, agent: &AgentName, id: OrderId) {
        if let Some(slot) = self.slots.get_mut(agent)
            && matches!(slot.state, ReflectorState::Away(known) if known == id)
        {
            slot.state = ReflectorState::Ready(id);
        }
    }

    /// Reflectors that do not run now. Another server may answer at their address.
    pub(super) fn lost_reflectors(&self) -> impl Iterator<Item = LostReflector> + '_ {
        let missing = self.slots.iter().filter(|(_, slot)| !slot.has_started());
        missing.map(|(agent, slot)| slot.lost(agent))
    }

    /// Stops ordering reflectors; returns the orders to cancel.
    pub(super) fn end(&mut self) -> Vec<OrderId> {
        self.is_over = true;
        self.slots
            .values()
            .filter_map(ReflectorSlot::order)
            .collect()
    }

    /// Whether a reflector is ordered.
    pub(super) fn has_orders(&self) -> bool {
        self.slots.values().any(|slot| slot.order().is_some())
    }
}

#[cfg(test)]
mod tests;
