//! Reflectors at agents, during the life of the executor.
//!
//! Owns when each is ordered, and whether all are ready. A reflector that ends, or whose agent was
//! killed, is ordered once more.

use std::collections::BTreeMap;

use neph_agent::remote::REFUSED;
use neph_model::{AgentName, OrderId, ReflectorOrder, Span, Update};

/// How long experiments wait for reflectors: an agent may be offline, and other sites can measure
/// without it.
const PATIENCE: Span = Span::from_secs(20);
/// Minimum time from the end of a reflector to its next order.
const REST: Span = Span::from_secs(1);
const LONGEST_REST: Span = Span::from_secs(60);
/// A reflector that fails with at least this rest is reported.
const UNUSUAL: Span = Span::from_secs(4);

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
pub(super) struct Lost {
    pub(super) agent: AgentName,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Lost {
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
pub(super) struct Noted {
    /// Its order is over.
    pub(super) is_over: bool,
    pub(super) lost: Option<Lost>,
}

/// The state of a reflector.
#[derive(Debug)]
enum State {
    /// To be ordered at this time.
    Due(Span),
    /// Ordered.
    Ordered(OrderId),
    /// It answers.
    Ready(OrderId),
}

#[derive(Debug)]
struct Stand {
    reflector: AgentReflector,
    state: State,
    /// Time from its last end to the next order.
    rest: Span,
}

impl Stand {
    const fn order(&self) -> Option<OrderId> {
        match self.state {
            State::Due(_) => None,
            State::Ordered(id) | State::Ready(id) => Some(id),
        }
    }

    const fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready(_))
    }
}

/// The reflectors of a campaign.
#[derive(Debug, Default)]
pub(super) struct CampaignReflectors {
    stands: BTreeMap<AgentName, Stand>,
    /// Reason of an agent that refuses its reflector.
    refused: Option<String>,
    /// Start of the wait for reflectors.
    since: Option<Span>,
    /// The end of this wait was reported.
    is_wait_reported: bool,
    is_over: bool,
}

impl CampaignReflectors {
    pub(super) fn new(wanted: BTreeMap<AgentName, AgentReflector>) -> Self {
        let stand = |reflector| Stand {
            reflector,
            state: State::Due(Span::ZERO),
            rest: REST,
        };
        let stands = wanted.into_iter();
        Self {
            stands: stands
                .map(|(agent, reflector)| (agent, stand(reflector)))
                .collect(),
            ..Self::default()
        }
    }

    /// Reflectors to order at `now`.
    pub(super) fn due(&self, now: Span) -> Vec<(AgentName, ReflectorOrder)> {
        if self.is_over {
            return Vec::new();
        }
        let is_due = |stand: &Stand| matches!(stand.state, State::Due(at) if at <= now);
        let due = self.stands.iter().filter(|(_, stand)| is_due(stand));
        due.map(|(agent, stand)| (agent.clone(), stand.reflector.order.clone()))
            .collect()
    }

    pub(super) fn ordered(&mut self, agent: &AgentName, id: OrderId) {
        if let Some(stand) = self.stands.get_mut(agent) {
            stand.state = State::Ordered(id);
        }
    }

    /// Processes an update, if it is of a reflector.
    pub(super) fn note(&mut self, id: OrderId, update: &Update, now: Span) -> Option<Noted> {
        let mut stands = self.stands.iter_mut();
        let (agent, stand) = stands.find(|(_, stand)| stand.order() == Some(id))?;
        let mut noted = Noted::default();
        match update {
            Update::Progress(_) => stand.state = State::Ready(id),
            Update::Done(result) => {
                if let Err(why) = result
                    && !self.is_over
                {
                    if why.operation == REFUSED {
                        let reason = &why.reason;
                        self.refused =
                            Some(format!("agent {agent} refuses its reflector: {reason}"));
                    } else if stand.rest >= UNUSUAL {
                        // With a shorter rest, a reflector of the previous run may not have ended
                        // yet.
                        tracing::warn!(
                            "the reflector at agent {agent} is not ready: {why}; it is ordered again"
                        );
                    }
                }
                // A reflector that was ready has a short rest; for another one the rest doubles.
                stand.rest = if stand.is_ready() {
                    noted.lost = (!self.is_over).then(|| Lost::of(agent, &stand.reflector));
                    REST
                } else {
                    stand.rest.times(2).min(LONGEST_REST)
                };
                stand.state = State::Due(now + stand.rest);
                noted.is_over = true;
            }
            _ => {}
        }
        Some(noted)
    }

    /// Reason of an agent that refuses its reflector, if there is one.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Whether all answer, or the wait is over.
    pub(super) fn is_ready(&mut self, now: Span) -> bool {
        if self.stands.values().all(Stand::is_ready) {
            self.since = None;
            self.is_wait_reported = false;
            return true;
        }
        let since = *self.since.get_or_insert(now);
        let is_over = now - since > PATIENCE;
        if is_over && !self.is_wait_reported {
            self.is_wait_reported = true;
            for (agent, _) in self.missing() {
                tracing::warn!(
                    "agent {agent} has not started its reflector after {PATIENCE}: experiments to this site fail until it has"
                );
            }
        }
        is_over
    }

    /// Reflectors that do not run now. Another server may answer at their address.
    pub(super) fn not_ready(&self) -> impl Iterator<Item = Lost> + '_ {
        let missing = self.missing();
        missing.map(|(agent, stand)| Lost::of(agent, &stand.reflector))
    }

    /// The reflectors that do not answer, with their agents.
    fn missing(&self) -> impl Iterator<Item = (&AgentName, &Stand)> {
        self.stands.iter().filter(|(_, stand)| !stand.is_ready())
    }

    /// Stops ordering reflectors; returns the orders to cancel.
    pub(super) fn end(&mut self) -> Vec<OrderId> {
        self.is_over = true;
        // The refusal was reported; the end of the others is still awaited.
        self.refused = None;
        self.stands.values().filter_map(Stand::order).collect()
    }

    /// Whether a reflector is ordered.
    pub(super) fn is_under_way(&self) -> bool {
        self.stands.values().any(|stand| stand.order().is_some())
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
        let wanted = BTreeMap::from([(agent.clone(), AgentReflector { order, host })]);
        let mut reflectors = CampaignReflectors::new(wanted);
        let missing = |reflectors: &CampaignReflectors| -> Vec<(String, u16)> {
            let missing = reflectors.not_ready();
            missing.map(|lost| (lost.host, lost.port)).collect()
        };
        let it = [("127.0.0.1".to_owned(), 8600)];
        let id = OrderId::new();
        reflectors.ordered(&agent, id);
        assert_eq!(missing(&reflectors), it, "ordered");
        let progress = Update::Progress(Progress {
            elapsed: Span::ZERO,
            due: 0,
        });
        reflectors.note(id, &progress, Span::ZERO);
        assert!(missing(&reflectors).is_empty(), "it answers");
        let ended = Update::Done(Err(OrderFailed::new("serve", "port taken")));
        reflectors.note(id, &ended, Span::ZERO);
        assert_eq!(missing(&reflectors), it, "it has ended");
    }
}
