//! A reflector at an agent, and one that does not run.

use neph_model::{AgentName, OrderFailed, ReflectorOrder, Target};

/// A reflector at an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReflector {
    /// Its order.
    pub order: ReflectorOrder,
    /// The host in targets that use it.
    pub host: String,
}

impl AgentReflector {
    /// Whether it is the server of a target.
    pub(super) fn answers(&self, target: &Target) -> bool {
        target.host() == self.host && target.port() == self.order.spec.address.port()
    }
}

/// A reflector that does not run: it ended before the campaign, or has not started yet.
#[derive(Debug)]
pub(super) struct LostReflector {
    pub(super) agent: AgentName,
    pub(super) reflector: AgentReflector,
    /// Why its last order ended; `None` if it was not ordered before.
    pub(super) failure: Option<OrderFailed>,
}

impl LostReflector {
    /// Why experiments that measure it fail.
    pub(super) fn reason(&self) -> String {
        let agent = &self.agent;
        let failure = self.failure.as_ref();
        let failure = failure.map(|failure| format!(" (its last failure: {})", failure.reason));
        format!(
            "the reflector at agent {agent} did not run during all of the experiment{}",
            failure.unwrap_or_default()
        )
    }
}
