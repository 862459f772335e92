//! Who is connected, and the queues between agents and the campaign that runs.
//!
//! Owns no socket. Queues are bounded: what does not fit is lost, and its receiver asks for it a second
//! time.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use neph_agent::remote::{ClockApart, FromAgent, Hello, ToAgent};
use neph_model::{AgentName, Span, Wall};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::bus::drain;
use crate::{Bus, FromBus, NotConnected};

/// Messages that wait for an agent.
const TO_AGENT: usize = 64;
/// Messages of all agents that wait for the campaign.
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
    #[serde(rename = "heard_unix_ns")]
    pub heard: Wall,
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
    campaign: Option<SyncSender<FromBus>>,
    connections: u64,
    /// When agents that are gone were heard last.
    gone: BTreeMap<AgentName, Wall>,
}

/// All that are connected.
#[derive(Debug, Default)]
pub(crate) struct Hub(Mutex<Inner>);

/// The campaign's end: a bus to all agents.
#[derive(Debug)]
pub(crate) struct HubBus {
    hub: Arc<Hub>,
    from: Mutex<Receiver<FromBus>>,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A campaign begins, or `None` if one runs. What agents reported of themselves comes first.
    pub(crate) fn attach(self: &Arc<Self>) -> Option<HubBus> {
        let mut inner = self.lock();
        if inner.campaign.is_some() {
            return None;
        }
        let (sender, from) = sync_channel(TO_CAMPAIGN);
        for (agent, one) in &inner.agents {
            if let Some(hello) = &one.hello {
                let message = FromBus::Message(agent.clone(), FromAgent::Hello(hello.clone()));
                // What does not fit is asked for.
                let _ = sender.try_send(message);
            }
        }
        inner.campaign = Some(sender);
        Some(HubBus {
            hub: Arc::clone(self),
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
                heard: now,
                version: None,
                holds: 0,
                running: 0,
                clock: None,
                refusals: BTreeMap::new(),
            },
        };
        inner.gone.remove(agent);
        inner.agents.insert(agent.clone(), connected);
        (number, queue)
    }

    /// Something came from an agent; `None` is a sign of life.
    pub(crate) fn heard(&self, agent: &AgentName, message: Option<FromAgent>, now: Wall) {
        let mut inner = self.lock();
        if let Some(one) = inner.agents.get_mut(agent) {
            one.presence.heard = now;
            if let Some(FromAgent::Beat(beat)) = &message {
                one.presence.running = beat.running;
                one.presence.clock = beat.clock;
                one.presence.refusals.clone_from(&beat.refusals);
                return;
            }
            if let Some(FromAgent::Hello(hello)) = &message {
                one.presence.version = Some(hello.version.clone());
                one.presence.holds = hello.holds.len();
                one.hello = Some(hello.clone());
            }
        }
        if let (Some(message), Some(campaign)) = (message, &inner.campaign) {
            let _ = campaign.try_send(FromBus::Message(agent.clone(), message));
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
            let heard = inner.agents.remove(agent).map(|one| one.presence.heard);
            if let Some(heard) = heard {
                inner.gone.insert(agent.clone(), heard);
            }
            if let Some(campaign) = &inner.campaign {
                let _ = campaign.try_send(FromBus::Gone(agent.clone()));
            }
        }
    }

    /// When agents that are gone were heard last.
    pub(crate) fn gone_agents(&self) -> BTreeMap<AgentName, Wall> {
        self.lock().gone.clone()
    }

    /// Whether a campaign is attached.
    pub(crate) fn has_campaign(&self) -> bool {
        self.lock().campaign.is_some()
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
        self.hub.lock().campaign = None;
    }
}

impl Bus for HubBus {
    fn send(&mut self, to: &AgentName, message: ToAgent) -> Result<(), NotConnected> {
        let inner = self.hub.lock();
        let sent = inner.agents.get(to).map(|one| one.to.try_send(message));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(NotConnected(to.clone())),
        }
    }

    fn receive(&mut self, patience: Span) -> Vec<FromBus> {
        // Its sender is the hub's as long as this lives.
        drain(&self.from, patience).unwrap_or_default()
    }
}
