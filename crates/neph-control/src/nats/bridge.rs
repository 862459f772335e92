//! The controller's end of NATS: its agents are in the hub like those at the controller's port.
//!
//! Owns the presence of these agents: NATS does not report it, so an agent counts as connected
//! while it sends heartbeats.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use async_nats::{Client, Event, Message};
use futures_util::StreamExt;
use neph_agent::remote::{FromAgent, ToAgent, decode_from_agent, encode_to_agent};
use neph_model::AgentName;
use neph_sys::clock::{self, RawNanos};
use rustls::ClientConfig;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};

use super::{NatsError, Role, agent_of, connect, to_agent};
use crate::hub::Hub;
use crate::now::now;
use crate::reception::{Reception, receive};
use crate::registry::Registry;

/// Interval of the check for silent and revoked agents.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);
/// Nanoseconds without a heartbeat until an agent counts as disconnected; it sends one every 5 s.
const SILENCE_TIMEOUT: i64 = 15_000_000_000;

/// Runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Bridge {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A connected agent.
struct NatsAgent {
    /// Its connection in the hub.
    number: u64,
    received: RawNanos,
    forwards: tokio::task::JoinHandle<()>,
}

struct Carrier {
    client: Client,
    registry: Arc<Registry>,
    hub: Arc<Hub>,
    present: BTreeMap<AgentName, NatsAgent>,
    /// Agents that must greet before they are served.
    refused: BTreeSet<AgentName>,
}

impl Bridge {
    /// Connects to one of the servers (`HOST:PORT`, separated by commas).
    pub(crate) fn start(
        servers: &str,
        tls: ClientConfig,
        registry: Arc<Registry>,
        hub: Arc<Hub>,
    ) -> Result<Self, NatsError> {
        let failed = |why: String| NatsError {
            servers: servers.to_owned(),
            why,
            is_refused: false,
        };
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let received = |event: Event| match event {
            Event::Connected => tracing::info!("NATS: connected"),
            other => tracing::warn!("NATS: {other}"),
        };
        let client = runtime.block_on(connect(servers, tls, Role::Controller, received))?;
        let received = runtime.block_on(client.subscribe("neph.from.*"));
        let received = received.map_err(|error| failed(error.to_string()))?;
        let carrier = Carrier {
            client,
            registry,
            hub,
            present: BTreeMap::new(),
            refused: BTreeSet::new(),
        };
        let (stop, stop_receiver) = oneshot::channel();
        let thread = std::thread::Builder::new().name("nats".to_owned());
        let work = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = carrier.run(received) => {}
                    _ = stop_receiver => {}
                }
            });
        };
        let thread = thread
            .spawn(work)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Carrier {
    async fn run(mut self, mut received: async_nats::Subscriber) {
        let mut check_timer = interval(CHECK_INTERVAL);
        check_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = received.next() => match message {
                    Some(message) => self.process_message(&message).await,
                    None => return,
                },
                _ = check_timer.tick() => self.check_agents(),
            }
        }
    }

    async fn process_message(&mut self, message: &Message) {
        let Some(agent) = agent_of(&message.subject) else {
            return;
        };
        if !self.is_present(&agent) && !self.registry.is_enrolled(&agent) {
            return;
        }
        let is_greeting = matches!(decode_from_agent(&message.payload), Ok(FromAgent::Hello(_)));
        if self.refused.contains(&agent) && !is_greeting {
            return;
        }
        self.refused.remove(&agent);
        let present = self.greet(&agent);
        present.received = clock::raw();
        match receive(&self.hub, &agent, &message.payload, now()) {
            Reception::Taken => {}
            Reception::Answer(answer) => send(&self.client, &agent, &answer).await,
            Reception::CutOff => {
                self.remove_agent(&agent);
                self.refused.insert(agent);
            }
        }
    }

    fn is_present(&self, agent: &AgentName) -> bool {
        let present = self.present.get(agent);
        // A connection at the controller's port may have replaced it.
        present.is_some_and(|agent| !agent.forwards.is_finished())
    }

    /// Adds the agent to the hub if needed.
    fn greet(&mut self, agent: &AgentName) -> &mut NatsAgent {
        if !self.is_present(agent) {
            let (number, queue) = self.hub.connected(agent, now());
            let forwards = tokio::spawn(forward(self.client.clone(), agent.clone(), queue));
            let present = NatsAgent {
                number,
                received: clock::raw(),
                forwards,
            };
            self.present.insert(agent.clone(), present);
        }
        self.present
            .entry(agent.clone())
            .or_insert_with(|| unreachable!("it was inserted"))
    }

    fn remove_agent(&mut self, agent: &AgentName) {
        if let Some(present) = self.present.remove(agent) {
            self.hub.disconnected(agent, present.number);
            present.forwards.abort();
        }
    }

    fn check_agents(&mut self) {
        let now = clock::raw();
        let is_gone = |(agent, nats_agent): &(&AgentName, &NatsAgent)| {
            now.0 - nats_agent.received.0 > SILENCE_TIMEOUT || !self.registry.is_enrolled(agent)
        };
        let lost_agents: Vec<_> = self
            .present
            .iter()
            .filter(is_gone)
            .map(|(agent, _)| agent.clone())
            .collect();
        for agent in lost_agents {
            self.remove_agent(&agent);
            if !self.registry.is_enrolled(&agent) {
                self.hub.revoked(&agent);
            }
        }
    }
}

async fn forward(client: Client, agent: AgentName, mut queue: mpsc::Receiver<ToAgent>) {
    while let Some(message) = queue.recv().await {
        send(&client, &agent, &message).await;
    }
}

async fn send(client: &Client, agent: &AgentName, message: &ToAgent) {
    match encode_to_agent(message) {
        Ok(bytes) => {
            // A lost message is repeated.
            let _ = client.publish(to_agent(agent), bytes.into()).await;
        }
        Err(error) => tracing::warn!("a message to an agent is not sent: {error}"),
    }
}
