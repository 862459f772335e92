//! Which agents a campaign has, and where.

use std::collections::BTreeMap;

use neph_model::{AgentName, OrderFailed};

use super::AgentReflector;

/// Which agent is at which site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// By the name of the site in the plan.
    pub agents: BTreeMap<String, AgentName>,
    /// Who carries out orders that name no site.
    pub default: Option<AgentName>,
    /// Agents that answer probes as long as the executor is there.
    pub reflectors: BTreeMap<AgentName, AgentReflector>,
}

impl Sites {
    /// The agent at a site, or the default one.
    pub(super) fn agent_at(&self, site: Option<&str>) -> Result<AgentName, OrderFailed> {
        let found = match site {
            Some(site) => self.agents.get(site),
            None => self.default.as_ref(),
        };
        found.cloned().ok_or_else(|| OrderFailed {
            operation: "send an order".to_owned(),
            reason: match site {
                Some(site) => format!("site '{site}' has no agent"),
                None => "it names no site, and no agent is the default".to_owned(),
            },
        })
    }
}
