//! Which agents a campaign uses, and at which sites.

use std::collections::BTreeMap;

use neph_model::{AgentName, OrderFailed};

use super::AgentReflector;

/// The agent of each site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// By the site's name in the plan.
    pub agents: BTreeMap<String, AgentName>,
    /// The agent for orders without a site.
    pub default: Option<AgentName>,
    /// Reflectors at agents, during the life of the executor.
    pub reflectors: BTreeMap<AgentName, AgentReflector>,
}

impl Sites {
    /// The agent at a site, or the default one.
    pub(super) fn agent_at(&self, site: Option<&str>) -> Result<AgentName, OrderFailed> {
        let agent = match site {
            Some(site) => self.agents.get(site),
            None => self.default.as_ref(),
        };
        agent.cloned().ok_or_else(|| {
            let reason = match site {
                Some(site) => format!("site '{site}' has no agent"),
                None => "it names no site, and no agent is the default".to_owned(),
            };
            OrderFailed::new("send an order", reason)
        })
    }
}
