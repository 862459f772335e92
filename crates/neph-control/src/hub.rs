//! Connected agents, and the queues between agents and running campaigns.
//!
//! An agent measures for one campaign at a time: concurrent measurements would disturb each other.
//! Owns no socket. Queues are bounded: a message without room is lost, and its receiver requests it
//! later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use neph_agent::remote::{AgentClockOffset, FromAgent, Hello, ToAgent};
use neph_model::{AgentName, Labels, Span, Wall};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::agent_history::AgentHistory;
use crate::bus::drain;
use crate::now::now;
use crate::{Bus, FromBus, NotConnected};

/// Maximum number of messages that wait for an agent.
const MAX_PENDING_FOR_AGENT: usize = 64;
/// Maximum number of messages that wait for a campaign, from all its agents.
const MAX_PENDING_FOR_CAMPAIGN: usize = 16_384;

/// A connected agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectedAgent {
    /// Its name.
    pub agent: AgentName,
    /// Connected since.
    #[serde(rename = "connected_unix_ns")]
    pub connected: Wall,
    /// Time of its last message or heartbeat.
    #[serde(rename = "last_seen_unix_ns")]
    pub received: Wall,
    /// Its version; `null` until it is known.
    pub version: Option<String>,
    /// Results that it had when it connected, and that were not stored yet.
    pub results: usize,
    /// Orders that it is carrying out.
    pub running: u32,
    /// Offset of its clock from the controller's, once known.
    pub clock: Option<AgentClockOffset>,
    /// Number of refusals since its start, by reason.
    #[serde(default)]
    pub refusals: BTreeMap<String, u64>,
    /// Labels that its operator gave its site.
    #[serde(default)]
    pub labels: Labels,
}

impl ConnectedAgent {
    /// What remains known of it without a connection.
    pub fn into_away(self) -> AwayAgent {
        AwayAgent {
            received: self.received,
            version: self.version,
            labels: self.labels,
        }
    }
}

/// An agent that was connected since the controller's start, and is not now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AwayAgent {
    /// Time of its last message or heartbeat.
    #[serde(rename = "last_seen_unix_ns")]
    pub received: Wall,
    /// Its version, if it was known.
    pub version: Option<String>,
    /// Labels that its operator gave its site.
    pub labels: Labels,
}

/// Everything that a running controller knows about an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentDetails {
    /// Its connection, if there is one.
    pub presence: Option<ConnectedAgent>,
    /// What is known if it is away.
    pub away: Option<AwayAgent>,
    /// Whether it measures for a campaign.
    pub has_campaign: bool,
    /// Its history.
    pub seen: AgentHistory,
}

#[derive(Debug)]
struct Connected {
    /// Number of the connection: a later one of the same agent replaces it.
    number: u64,
    to: mpsc::Sender<ToAgent>,
    hello: Option<Hello>,
    presence: ConnectedAgent,
}

impl Connected {
    /// The connection, once the agent has reported its version and labels.
    fn presence(&self) -> Option<ConnectedAgent> {
        self.hello.is_some().then(|| self.presence.clone())
    }
}

#[derive(Debug, Default)]
struct Inner {
    agents: BTreeMap<AgentName, Connected>,
    /// Queue of each campaign, by its number.
    campaigns: BTreeMap<u64, SyncSender<FromBus>>,
    /// The campaign of each agent that measures.
    claims: BTreeMap<AgentName, u64>,
    connections: u64,
    away: BTreeMap<AgentName, AwayAgent>,
    /// History of agents, including disconnected ones.
    histories: BTreeMap<AgentName, AgentHistory>,
}

impl Inner {
    /// Queues something for the campaign of an agent. Without room it is lost, and requested later.
    fn pass_on(&self, agent: &AgentName, message: FromBus) {
        let campaign = self.claims.get(agent);
        if let Some(campaign) = campaign.and_then(|number| self.campaigns.get(number)) {
            let _ = campaign.try_send(message);
        }
    }
}

/// All connected agents.
#[derive(Debug, Default)]
pub(crate) struct Hub(Mutex<Inner>);

/// A campaign's bus to its agents.
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

    /// Starts a campaign with these agents. It first gets what they reported about themselves.
    ///
    /// # Errors
    /// The agent that measures for another campaign.
    pub(crate) fn attach(
        self: &Arc<Self>,
        agents: &BTreeSet<AgentName>,
    ) -> Result<HubBus, AgentName> {
        let mut inner = self.lock();
        if let Some(busy_agent) = agents
            .iter()
            .find(|agent| inner.claims.contains_key(*agent))
        {
            return Err(busy_agent.clone());
        }
        let (sender, from) = sync_channel(MAX_PENDING_FOR_CAMPAIGN);
        for agent in agents {
            let hello = inner
                .agents
                .get(agent)
                .and_then(|connected| connected.hello.as_ref());
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

    /// An agent has connected. Returns the number of the connection, and the queue of messages to
    /// the agent.
    pub(crate) fn connected(&self, agent: &AgentName, now: Wall) -> (u64, mpsc::Receiver<ToAgent>) {
        let (to, queue) = mpsc::channel(MAX_PENDING_FOR_AGENT);
        let mut inner = self.lock();
        inner.connections += 1;
        let number = inner.connections;
        let connected = Connected {
            number,
            to,
            hello: None,
            presence: ConnectedAgent {
                agent: agent.clone(),
                connected: now,
                received: now,
                version: None,
                results: 0,
                running: 0,
                clock: None,
                refusals: BTreeMap::new(),
                labels: Labels::default(),
            },
        };
        if inner.agents.insert(agent.clone(), connected).is_none() {
            tracing::info!("agent {agent} has connected");
        }
        (number, queue)
    }

    /// Processes a message of an agent; `None` is a heartbeat.
    pub(crate) fn process_message(&self, agent: &AgentName, message: Option<FromAgent>, now: Wall) {
        let mut inner = self.lock();
        let Inner {
            agents,
            histories,
            away,
            ..
        } = &mut *inner;
        if let Some(connected) = agents.get_mut(agent) {
            connected.presence.received = now;
            if let Some(message) = &message {
                histories
                    .entry(agent.clone())
                    .or_default()
                    .record_received(message, now);
            }
            if let Some(FromAgent::Beat(beat)) = &message {
                connected.presence.running = beat.running;
                connected.presence.clock = beat.clock;
                connected.presence.refusals.clone_from(&beat.refusals);
                return;
            }
            if let Some(FromAgent::Hello(hello)) = &message {
                connected.presence.version = Some(hello.version.clone());
                connected.presence.results = hello.results;
                connected.presence.labels = hello.labels.clone();
                connected.hello = Some(hello.clone());
                away.remove(agent);
            }
        }
        if let Some(message) = message {
            inner.pass_on(agent, FromBus::Message(agent.clone(), message));
        }
    }

    /// A connection has ended.
    pub(crate) fn disconnected(&self, agent: &AgentName, number: u64) {
        let mut inner = self.lock();
        if inner
            .agents
            .get(agent)
            .is_some_and(|connected| connected.number == number)
        {
            if let Some(Connected { presence, .. }) = inner.agents.remove(agent) {
                inner.away.insert(agent.clone(), presence.into_away());
            }
            tracing::info!("agent {agent} has disconnected");
            inner.pass_on(agent, FromBus::Gone(agent.clone()));
        }
    }

    /// The agent was revoked. Its connection ends, if it has one.
    pub(crate) fn revoked(&self, agent: &AgentName) {
        let mut inner = self.lock();
        if let Some(history) = inner.histories.get_mut(agent) {
            history.record_revoked(now());
        }
        inner.pass_on(agent, FromBus::Revoked(agent.clone()));
    }

    /// Agents that were connected since the start, and are not now.
    pub(crate) fn away_agents(&self) -> BTreeMap<AgentName, AwayAgent> {
        self.lock().away.clone()
    }

    /// Whether a campaign is attached.
    pub(crate) fn has_campaign(&self) -> bool {
        !self.lock().campaigns.is_empty()
    }

    /// Details of an agent.
    pub(crate) fn details(&self, agent: &AgentName) -> AgentDetails {
        let inner = self.lock();
        let seen = inner.histories.get(agent).cloned().unwrap_or_default();
        AgentDetails {
            presence: inner.agents.get(agent).and_then(Connected::presence),
            away: inner.away.get(agent).cloned(),
            has_campaign: inner.claims.contains_key(agent),
            seen,
        }
    }

    /// Connected agents, by name.
    pub(crate) fn presence(&self) -> Vec<ConnectedAgent> {
        let inner = self.lock();
        inner
            .agents
            .values()
            .filter_map(Connected::presence)
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
        let Inner {
            agents, histories, ..
        } = &mut *inner;
        let Some(connected) = agents.get(to).filter(|_| is_ours) else {
            return Err(NotConnected(to.clone()));
        };
        histories
            .entry(to.clone())
            .or_default()
            .record_sent(&message, now());
        connected
            .to
            .try_send(message)
            .map_err(|_| NotConnected(to.clone()))
    }

    fn receive(&mut self, patience: Span) -> Vec<FromBus> {
        // The hub has the sender during the life of this bus.
        drain(&self.from, patience).unwrap_or_default()
    }
}
