//! How a controller stands, for metrics: its agents, and whether a campaign runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use neph_model::{AgentName, Wall};

use crate::hub::{Hub, Presence};
use crate::registry::Registry;

/// Reads how a controller stands. It holds the lock of the connections for as long as a copy takes.
#[derive(Clone, Debug)]
pub struct Monitor {
    hub: Arc<Hub>,
    registry: Arc<Registry>,
}

/// How a controller stands.
#[derive(Clone, Debug, Default)]
pub struct ControllerStatus {
    /// Agents that are enrolled, by name; `None` where the controller's folder cannot be read.
    pub enrolled: Option<Vec<AgentName>>,
    /// Agents that are connected, by name.
    pub connected: Vec<Presence>,
    /// When agents that are gone since the controller's start were heard last.
    pub gone: BTreeMap<AgentName, Wall>,
    /// Whether a campaign uses the controller.
    pub has_campaign: bool,
}

impl Monitor {
    pub(crate) const fn new(hub: Arc<Hub>, registry: Arc<Registry>) -> Self {
        Self { hub, registry }
    }

    /// How it stands now. Reads a file for each enrolled agent.
    pub fn read(&self) -> ControllerStatus {
        let enrolled = self.registry.agents();
        let enrolled = enrolled
            .inspect_err(|error| tracing::debug!("enrolled agents are not counted: {error}"));
        let names = |all: Vec<(AgentName, _)>| all.into_iter().map(|(name, _)| name).collect();
        ControllerStatus {
            enrolled: enrolled.ok().map(names),
            connected: self.hub.presence(),
            gone: self.hub.gone_agents(),
            has_campaign: self.hub.has_campaign(),
        }
    }
}
