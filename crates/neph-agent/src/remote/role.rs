//! The role of the owner of a certificate: agent or operator.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The role of the invited party. A certificate is never accepted for the other role.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Carries out orders.
    #[default]
    Agent,
    /// Starts campaigns from another host, which agents carry out.
    Operator,
}

impl Role {
    /// The end of its names in certificates.
    pub const fn name_end(self) -> &'static str {
        match self {
            Self::Agent => ".agent.neph",
            Self::Operator => ".operator.neph",
        }
    }

    /// Whether it is an agent.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks it so")]
    pub(super) fn is_agent(&self) -> bool {
        *self == Self::Agent
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agent => "agent",
            Self::Operator => "operator",
        })
    }
}
