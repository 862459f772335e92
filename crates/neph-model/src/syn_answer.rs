//! The answer to a TCP SYN.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer to a TCP SYN.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SynAnswer {
    /// SYN-ACK: the port is open, a process listens.
    SynAck,
    /// RST: the port is closed, no process listens (or a firewall answers).
    Rst,
}

impl SynAnswer {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SynAck => "syn-ack",
            Self::Rst => "rst",
        }
    }

    /// The answer of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let answers = [Self::SynAck, Self::Rst];
        answers.into_iter().find(|answer| answer.name() == name)
    }
}
