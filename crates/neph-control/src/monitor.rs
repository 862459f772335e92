//! State of a controller for metrics: its agents, and whether a campaign runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use neph_model::AgentName;

use crate::hub::{AwayAgent, ConnectedAgent, Hub};
use crate::registry::Registry;

/// Reads the state of a controller. It holds the lock of the connections during a copy.
#[derive(Clone, Debug)]
pub struct Monitor {
    hub: Arc<Hub>,
    registry: Arc<Registry>,
}

/// State of a controller.
#[derive(Clone, Debug, Default)]
pub struct ControllerStatus {
    /// Enrolled agents, by name; `None` if the controller's folder cannot be read.
    pub enrolled: Option<Vec<AgentName>>,
    /// Connected agents, by name.
    pub connected: Vec<ConnectedAgent>,
    /// Agents that were connected since the controller's start, and are not now.
    pub away: BTreeMap<AgentName, AwayAgent>,
    /// Whether a campaign uses the controller.
    pub has_campaign: bool,
}

impl Monitor {
    pub(crate) const fn new(hub: Arc<Hub>, registry: Arc<Registry>) -> Self {
        Self { hub, registry }
    }

    /// Reads the current state. Reads a file for each enrolled agent.
    pub fn read(&self) -> ControllerStatus {
        let enrolled = self.registry.agents();
        let enrolled = enrolled
            .inspect_err(|error| tracing::debug!("enrolled agents are not counted: {error}"));
        let names =
            |agents: Vec<(AgentName, _)>| agents.into_iter().map(|(name, _)| name).collect();
        ControllerStatus {
            enrolled: enrolled.ok().map(names),
            connected: self.hub.presence(),
            away: self.hub.away_agents(),
            has_campaign: self.hub.has_campaign(),
        }
    }
}
