//! Who is connected, and the queues between agents and the campaigns that run.
//!
//! An agent measures for one campaign at a time: what two would measure from it at the same time would disturb each
//! other. Owns no socket. Queues are bounded: what does not fit is lost, and its receiver asks for it a second
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use neph_agent::remote::{ClockApart, FromAgent, Hello, ToAgent};
use neph_model::{AgentName, Labels, Span, Wall};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::bus::drain;
use crate::now::now;
use crate::seen::Seen;
use crate::{Bus, FromBus, NotConnected};

/// Messages that wait for an agent.
const TO_AGENT: usize = 64;
/// Messages of all its agents that wait for a campaign.
const TO_CAMPAIGN: usize = 16_384;

/// An agent that is connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Presence {
    /// Its name.
    pub agent: AgentName,
    /// Since when.
    #[serde(rename = "connected_unix_ns")]
    pub connected: Wall,
    /// When it was heard last.
    #[serde(rename = "last_seen_unix_ns")]
    pub received: Wall,
    /// The version of its program; `null` until that is known.
    pub version: Option<String>,
    /// Orders that it has, those whose result waits to be stored included; as of its connection.
    pub holds: usize,
    /// Orders that it is carrying out.
    pub running: u32,
    /// How far its clock is from the controller's, once that is known.
    pub clock: Option<ClockApart>,
    /// How often it has refused something since its start, by the reason.
    #[serde(default)]
    pub refusals: BTreeMap<String, u64>,
    /// What its site is, in the words of who runs it.
    #[serde(default)]
    pub labels: Labels,
}

/// All that is known of an agent by the controller that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentDetails {
    /// How it is connected, if it is.
    pub presence: Option<Presence>,
    /// When one that is gone was heard last.
    #[serde(rename = "last_seen_unix_ns")]
    pub received: Option<Wall>,
    /// Whether it measures for a campaign.
    pub has_campaign: bool,
    /// What is remembered of it.
    pub seen: Seen,
}

#[derive(Debug)]
struct Connected {
    /// The connection: a later one of the same agent takes its place.
    number: u64,
    to: mpsc::Sender<ToAgent>,
    hello: Option<Hello>,
    presence: Presence,
}

#[derive(Debug, Default)]
struct Inner {
    agents: BTreeMap<AgentName, Connected>,
    /// Where messages for each campaign go, by its number.
    campaigns: BTreeMap<u64, SyncSender<FromBus>>,
    /// Which campaign an agent measures for.
    claims: BTreeMap<AgentName, u64>,
    connections: u64,
    /// When agents that are gone were heard last.
    gone: BTreeMap<AgentName, Wall>,
    /// What is remembered of agents, those that are gone included.
    seen: BTreeMap<AgentName, Seen>,
}

impl Inner {
    /// Hands something to the campaign of an agent. What does not fit is asked for.
    fn pass_on(&self, agent: &AgentName, what: FromBus) {
        let campaign = self.claims.get(agent);
        if let Some(campaign) = campaign.and_then(|number| self.campaigns.get(number)) {
            let _ = campaign.try_send(what);
        }
    }
}

/// All that are connected.
#[derive(Debug, Default)]
pub(crate) struct Hub(Mutex<Inner>);

/// A campaign's end: a bus to its agents.
#[derive(Debug)]
pub(crate) struct HubBus {
    hub: Arc<Hub>,
    number: u64,
    from: Mutex<Receiver<FromBus>>,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A campaign begins that measures from these agents. What they reported of themselves comes first.
    ///
    /// # Errors
    /// This agent measures for another one.
    pub(crate) fn attach(
        self: &Arc<Self>,
        agents: &BTreeSet<AgentName>,
    ) -> Result<HubBus, AgentName> {
        let mut inner = self.lock();
        if let Some(busy) = agents
            .iter()
            .find(|agent| inner.claims.contains_key(*agent))
        {
            return Err(busy.clone());
        }
        let (sender, from) = sync_channel(TO_CAMPAIGN);
        for agent in agents {
            let hello = inner.agents.get(agent).and_then(|one| one.hello.as_ref());
            if let Some(hello) = hello {
                let message = FromBus::Message(agent.clone(), FromAgent::Hello(hello.clone()));
                let _ = sender.try_send(message);
            }
        }
        inner.connections += 1;
        let number = inner.connections;
        inner.campaigns.insert(number, sender);
        let claims = agents.iter().map(|agent| (agent.clone(), number));
        inner.claims.extend(claims);
        Ok(HubBus {
            hub: Arc::clone(self),
            number,
            from: Mutex::new(from),
        })
    }

    /// An agent has connected: the number of the connection, and what it is sent.
    pub(crate) fn connected(&self, agent: &AgentName, now: Wall) -> (u64, mpsc::Receiver<ToAgent>) {
        let (to, queue) = mpsc::channel(TO_AGENT);
        let mut inner = self.lock();
        inner.connections += 1;
        let number = inner.connections;
        let connected = Connected {
            number,
            to,
            hello: None,
            presence: Presence {
                agent: agent.clone(),
                connected: now,
                received: now,
                version: None,
                holds: 0,
                running: 0,
                clock: None,
                refusals: BTreeMap::new(),
                labels: Labels::default(),
            },
        };
        inner.gone.remove(agent);
        inner.agents.insert(agent.clone(), connected);
        (number, queue)
    }

    /// Something came from an agent; `None` is a sign of life.
    pub(crate) fn received(&self, agent: &AgentName, message: Option<FromAgent>, now: Wall) {
        let mut inner = self.lock();
        let Inner { agents, seen, .. } = &mut *inner;
        if let Some(one) = agents.get_mut(agent) {
            one.presence.received = now;
            if let Some(message) = &message {
                seen.entry(agent.clone())
                    .or_default()
                    .received(message, now);
            }
            if let Some(FromAgent::Beat(beat)) = &message {
                one.presence.running = beat.running;
                one.presence.clock = beat.clock;
                one.presence.refusals.clone_from(&beat.refusals);
                return;
            }
            if let Some(FromAgent::Hello(hello)) = &message {
                one.presence.version = Some(hello.version.clone());
                one.presence.holds = hello.holds.len();
                one.presence.labels = hello.labels.clone();
                one.hello = Some(hello.clone());
            }
        }
        if let Some(message) = message {
            inner.pass_on(agent, FromBus::Message(agent.clone(), message));
        }
    }

    /// A connection is gone.
    pub(crate) fn gone(&self, agent: &AgentName, number: u64) {
        let mut inner = self.lock();
        if inner
            .agents
            .get(agent)
            .is_some_and(|one| one.number == number)
        {
            let received = inner.agents.remove(agent).map(|one| one.presence.received);
            if let Some(received) = received {
                inner.gone.insert(agent.clone(), received);
            }
            inner.pass_on(agent, FromBus::Gone(agent.clone()));
        }
    }

    /// When agents that are gone were heard last.
    pub(crate) fn gone_agents(&self) -> BTreeMap<AgentName, Wall> {
        self.lock().gone.clone()
    }

    /// Whether a campaign is attached.
    pub(crate) fn has_campaign(&self) -> bool {
        !self.lock().campaigns.is_empty()
    }

    /// What is known of an agent.
    pub(crate) fn details(&self, agent: &AgentName) -> AgentDetails {
        let inner = self.lock();
        let seen = inner.seen.get(agent).cloned().unwrap_or_default();
        AgentDetails {
            presence: inner.agents.get(agent).map(|one| one.presence.clone()),
            received: inner.gone.get(agent).copied(),
            has_campaign: inner.claims.contains_key(agent),
            seen,
        }
    }

    /// Who is connected, by name.
    pub(crate) fn presence(&self) -> Vec<Presence> {
        let inner = self.lock();
        inner
            .agents
            .values()
            .map(|one| one.presence.clone())
            .collect()
    }
}

impl Drop for HubBus {
    fn drop(&mut self) {
        let mut inner = self.hub.lock();
        inner.campaigns.remove(&self.number);
        inner.claims.retain(|_, number| *number != self.number);
    }
}

impl Bus for HubBus {
    fn send(&mut self, to: &AgentName, message: ToAgent) -> Result<(), NotConnected> {
        let mut inner = self.hub.lock();
        let is_ours = inner.claims.get(to) == Some(&self.number);
        let Inner { agents, seen, .. } = &mut *inner;
        let Some(one) = agents.get(to).filter(|_| is_ours) else {
            return Err(NotConnected(to.clone()));
        };
        seen.entry(to.clone()).or_default().sent(&message, now());
        one.to
            .try_send(message)
            .map_err(|_| NotConnected(to.clone()))
    }

    fn receive(&mut self, patience: Span) -> Vec<FromBus> {
        // Its sender is the hub's as long as this lives.
        drain(&self.from, patience).unwrap_or_default()
    }
}
