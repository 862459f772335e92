//! Reflectors at agents, during the life of the executor.
//!
//! Owns when each is ordered, and whether all are ready. A reflector that ends, or whose agent was
//! killed, is ordered once more.

use std::collections::BTreeMap;

use neph_agent::remote::REFUSED;
use neph_model::{AgentName, OrderId, ReflectorOrder, Span, Update};

/// How long experiments wait for reflectors: an agent may be offline, and other sites can measure
/// without it.
const READY_TIMEOUT: Span = Span::from_secs(20);
/// Minimum time from the end of a reflector to its next order.
const MIN_RETRY_DELAY: Span = Span::from_secs(1);
const MAX_RETRY_DELAY: Span = Span::from_secs(60);
/// A reflector that fails with at least this rest is reported.
const REPORT_RETRY_DELAY: Span = Span::from_secs(4);

/// A reflector at an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReflector {
    /// Its order.
    pub order: ReflectorOrder,
    /// The host in targets that use it.
    pub host: String,
}

/// A reflector that does not run: it ended before the campaign, or has not started yet.
#[derive(Debug)]
pub(super) struct LostReflector {
    pub(super) agent: AgentName,
    pub(super) host: String,
    pub(super) port: u16,
}

impl LostReflector {
    fn of(agent: &AgentName, reflector: &AgentReflector) -> Self {
        Self {
            agent: agent.clone(),
            host: reflector.host.clone(),
            port: reflector.order.spec.address.port(),
        }
    }
}

/// Result of an update of a reflector.
#[derive(Debug, Default)]
pub(super) struct ReflectorUpdate {
    /// Its order is over.
    pub(super) is_over: bool,
    pub(super) lost_reflector: Option<LostReflector>,
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
}

#[derive(Debug)]
struct ReflectorSlot {
    reflector: AgentReflector,
    state: ReflectorState,
    /// Time from its last end to the next order.
    retry_delay: Span,
}

impl ReflectorSlot {
    const fn order(&self) -> Option<OrderId> {
        match self.state {
            ReflectorState::Due(_) => None,
            ReflectorState::Ordered(id) | ReflectorState::Ready(id) => Some(id),
        }
    }

    const fn is_ready(&self) -> bool {
        matches!(self.state, ReflectorState::Ready(_))
    }
}

/// The reflectors of a campaign.
#[derive(Debug, Default)]
pub(super) struct CampaignReflectors {
    slots: BTreeMap<AgentName, ReflectorSlot>,
    /// Reason of an agent that refuses its reflector.
    refusal: Option<String>,
    /// Start of the wait for reflectors.
    since: Option<Span>,
    /// The end of this wait was reported.
    is_wait_reported: bool,
    is_over: bool,
}

impl CampaignReflectors {
    pub(super) fn new(reflector_specs: BTreeMap<AgentName, AgentReflector>) -> Self {
        let slot = |reflector| ReflectorSlot {
            reflector,
            state: ReflectorState::Due(Span::ZERO),
            retry_delay: MIN_RETRY_DELAY,
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
        let mut effect = ReflectorUpdate::default();
        match update {
            Update::Progress(_) => slot.state = ReflectorState::Ready(id),
            Update::Done(result) => {
                if let Err(why) = result
                    && !self.is_over
                {
                    if why.operation == REFUSED {
                        let reason = &why.reason;
                        self.refusal =
                            Some(format!("agent {agent} refuses its reflector: {reason}"));
                    } else if slot.retry_delay >= REPORT_RETRY_DELAY {
                        // With a shorter rest, a reflector of the previous run may not have ended
                        // yet.
                        tracing::warn!(
                            "the reflector at agent {agent} is not ready: {why}; it is ordered again"
                        );
                    }
                }
                // A reflector that was ready has a short rest; for another one the rest doubles.
                slot.retry_delay = if slot.is_ready() {
                    effect.lost_reflector =
                        (!self.is_over).then(|| LostReflector::of(agent, &slot.reflector));
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

    /// Reason of an agent that refuses its reflector, if there is one.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Whether all answer, or the wait is over.
    pub(super) fn is_ready(&mut self, now: Span) -> bool {
        if self.slots.values().all(ReflectorSlot::is_ready) {
            self.since = None;
            self.is_wait_reported = false;
            return true;
        }
        let since = *self.since.get_or_insert(now);
        let is_over = now - since > READY_TIMEOUT;
        if is_over && !self.is_wait_reported {
            self.is_wait_reported = true;
            for (agent, _) in self.missing() {
                tracing::warn!(
                    "agent {agent} has not started its reflector after {READY_TIMEOUT}: experiments to this site fail until it has"
                );
            }
        }
        is_over
    }

    /// Reflectors that do not run now. Another server may answer at their address.
    pub(super) fn lost_reflectors(&self) -> impl Iterator<Item = LostReflector> + '_ {
        let missing = self.missing();
        missing.map(|(agent, slot)| LostReflector::of(agent, &slot.reflector))
    }

    /// The reflectors that do not answer, with their agents.
    fn missing(&self) -> impl Iterator<Item = (&AgentName, &ReflectorSlot)> {
        self.slots.iter().filter(|(_, slot)| !slot.is_ready())
    }

    /// Stops ordering reflectors; returns the orders to cancel.
    pub(super) fn end(&mut self) -> Vec<OrderId> {
        self.is_over = true;
        // The refusal was reported; the end of the others is still awaited.
        self.refusal = None;
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
mod tests {
    use neph_model::{OrderFailed, Progress, ReflectorSpec};

    use super::*;

    #[test]
    fn a_reflector_runs_from_its_first_progress_to_the_end_of_its_order() {
        let agent: AgentName = "ams".parse().expect("a name");
        let order = ReflectorOrder {
            spec: ReflectorSpec::at("127.0.0.1:8600".parse().expect("an address")),
            duration: Span::from_secs(60),
        };
        let host = "127.0.0.1".to_owned();
        let reflector_specs = BTreeMap::from([(agent.clone(), AgentReflector { order, host })]);
        let mut reflectors = CampaignReflectors::new(reflector_specs);
        let missing = |reflectors: &CampaignReflectors| -> Vec<(String, u16)> {
            let missing = reflectors.lost_reflectors();
            missing.map(|lost| (lost.host, lost.port)).collect()
        };
        let expected = [("127.0.0.1".to_owned(), 8600)];
        let id = OrderId::new();
        reflectors.set_ordered(&agent, id);
        assert_eq!(missing(&reflectors), expected, "ordered");
        let progress = Update::Progress(Progress {
            elapsed: Span::ZERO,
            due: 0,
        });
        reflectors.apply_update(id, &progress, Span::ZERO);
        assert!(missing(&reflectors).is_empty(), "it answers");
        let ended = Update::Done(Err(OrderFailed::new("serve", "port taken")));
        reflectors.apply_update(id, &ended, Span::ZERO);
        assert_eq!(missing(&reflectors), expected, "it has ended");
    }
}
