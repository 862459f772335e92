//! Reflectors at the sites of agents: they answer as long as the executor is there.
//!
//! Owns when one is ordered, and whether all are there. One that ends, or whose agent was killed, is ordered anew.

use std::collections::BTreeMap;

use neph_agent::remote::REFUSED;
use neph_model::{AgentName, OrderId, ReflectorOrder, Span, Update};

/// How long experiments wait for reflectors: an agent may be away, and its site is not all of a campaign.
const PATIENCE: Span = Span::from_secs(20);
/// From the end of one to the next order for it.
const REST: Span = Span::from_secs(1);
const LONGEST_REST: Span = Span::from_secs(60);

/// A reflector at the site of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReflector {
    /// What it is.
    pub order: ReflectorOrder,
    /// The host by which targets reach it.
    pub host: String,
}

/// A reflector that answered and has ended before the campaign.
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

/// What an update of a reflector means.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// Its order is over.
    pub(super) is_over: bool,
    pub(super) lost: Option<Lost>,
}

/// How far a reflector is.
#[derive(Debug)]
enum State {
    /// It is ordered then.
    Due(Span),
    /// It is ordered.
    Ordered(OrderId),
    /// It answers.
    Ready(OrderId),
}

#[derive(Debug)]
struct Stand {
    reflector: AgentReflector,
    state: State,
    /// From its last end to the next order.
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
pub(super) struct Standing {
    stands: BTreeMap<AgentName, Stand>,
    /// Why one will never answer: its agent refuses it.
    refused: Option<String>,
    /// Since when it is waited.
    since: Option<Span>,
    is_over: bool,
}

impl Standing {
    pub(super) fn new(wanted: BTreeMap<AgentName, AgentReflector>) -> Self {
        let stand = |reflector| Stand {
            reflector,
            state: State::Due(Span::ZERO),
            rest: REST,
        };
        let stands = wanted.into_iter();
        Self {
            stands: stands.map(|(agent, one)| (agent, stand(one))).collect(),
            ..Self::default()
        }
    }

    /// Those that are to be ordered at `now`.
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

    /// Takes note of an update, if it is of a reflector.
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
                    } else {
                        // One of a campaign before may not have ended yet.
                        tracing::warn!(
                            "the reflector at agent {agent} is not ready: {why}; it is ordered again"
                        );
                    }
                }
                // One that answered is ordered at once; one that does not is ordered less and less often.
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

    /// Why one will never answer, if that is so.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Whether all answer, or were waited for long enough.
    pub(super) fn is_ready(&mut self, now: Span) -> bool {
        if self.stands.values().all(Stand::is_ready) {
            self.since = None;
            return true;
        }
        let since = *self.since.get_or_insert(now);
        now - since > PATIENCE
    }

    /// None is ordered any more: those that are have to be ended.
    pub(super) fn end(&mut self) -> Vec<OrderId> {
        self.is_over = true;
        // That one was refused is reported; the others are still to be waited for.
        self.refused = None;
        self.stands.values().filter_map(Stand::order).collect()
    }

    /// Whether one is ordered.
    pub(super) fn is_under_way(&self) -> bool {
        self.stands.values().any(|stand| stand.order().is_some())
    }
}
