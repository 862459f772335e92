//! Reflectors at the sites of agents: they answer as long as the executor is there.
//!
//! Owns when one is ordered, and whether all are there. One that ends, or whose agent was killed, is ordered anew.

use std::collections::{BTreeMap, BTreeSet};

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

/// A reflector that answered and has ended, though nobody ended it.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) agent: AgentName,
    pub(super) host: String,
    pub(super) port: u16,
}

/// What an update of a reflector means.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// Its order is over.
    pub(super) is_over: bool,
    pub(super) lost: Option<Lost>,
}

/// The reflectors of a campaign.
#[derive(Debug, Default)]
pub(super) struct Standing {
    wanted: BTreeMap<AgentName, AgentReflector>,
    /// Those that are ordered.
    ordered: BTreeMap<OrderId, AgentName>,
    /// Those that answer.
    ready: BTreeSet<AgentName>,
    /// When the next order of those that are not ordered is due.
    due: BTreeMap<AgentName, Span>,
    /// How long each rested last.
    rests: BTreeMap<AgentName, Span>,
    /// Why one will never answer: its agent refuses it.
    refused: Option<String>,
    /// Since when it is waited.
    since: Option<Span>,
    is_over: bool,
}

impl Standing {
    pub(super) fn new(wanted: BTreeMap<AgentName, AgentReflector>) -> Self {
        let due = wanted.keys().map(|agent| (agent.clone(), Span::ZERO));
        Self {
            due: due.collect(),
            wanted,
            ..Self::default()
        }
    }

    /// Those that are to be ordered at `now`.
    pub(super) fn due(&mut self, now: Span) -> Vec<(AgentName, ReflectorOrder)> {
        if self.is_over {
            return Vec::new();
        }
        let due: Vec<AgentName> = self
            .due
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(agent, _)| agent.clone())
            .collect();
        let each = due.into_iter().filter_map(|agent| {
            self.due.remove(&agent);
            let order = self.wanted.get(&agent)?.order.clone();
            Some((agent, order))
        });
        each.collect()
    }

    pub(super) fn ordered(&mut self, agent: AgentName, id: OrderId) {
        self.ordered.insert(id, agent);
    }

    /// Takes note of an update, if it is of a reflector.
    pub(super) fn note(&mut self, id: OrderId, update: &Update, now: Span) -> Option<Noted> {
        let agent = self.ordered.get(&id)?.clone();
        let mut noted = Noted::default();
        match update {
            Update::Progress(_) => {
                self.ready.insert(agent);
            }
            Update::Done(result) => {
                if let Err(why) = result
                    && !self.is_over
                {
                    tracing::warn!("the reflector at agent {agent} does not answer: {why}");
                    if why.operation == REFUSED {
                        let reason = &why.reason;
                        self.refused =
                            Some(format!("agent {agent} refuses its reflector: {reason}"));
                    }
                }
                self.ordered.remove(&id);
                // One that answered is ordered at once; one that is refused is asked less and less often.
                let rest = if self.ready.remove(&agent) {
                    noted.lost = self.lost(&agent);
                    REST
                } else {
                    let last = self.rests.get(&agent).copied().unwrap_or(REST);
                    last.times(2).min(LONGEST_REST)
                };
                self.rests.insert(agent.clone(), rest);
                self.due.insert(agent, now + rest);
                noted.is_over = true;
            }
            _ => {}
        }
        Some(noted)
    }

    fn lost(&self, agent: &AgentName) -> Option<Lost> {
        let wanted = self.wanted.get(agent).filter(|_| !self.is_over)?;
        Some(Lost {
            agent: agent.clone(),
            host: wanted.host.clone(),
            port: wanted.order.spec.address.port(),
        })
    }

    /// Why one will never answer, if that is so.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Whether all answer, or were waited for long enough.
    pub(super) fn is_ready(&mut self, now: Span) -> bool {
        if self.ready.len() == self.wanted.len() {
            self.since = None;
            return true;
        }
        let since = *self.since.get_or_insert(now);
        now - since > PATIENCE
    }

    /// None is ordered any more: those that are have to be ended.
    pub(super) fn end(&mut self) -> Vec<OrderId> {
        self.is_over = true;
        self.ordered.keys().copied().collect()
    }

    /// Whether one is ordered.
    pub(super) fn is_under_way(&self) -> bool {
        !self.ordered.is_empty()
    }
}
