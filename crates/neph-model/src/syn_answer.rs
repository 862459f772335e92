//! How a TCP SYN was answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came back to a SYN: either is an answer.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SynAnswer {
    /// SYN and ACK: the port is open, somebody listens there.
    SynAck,
    /// RST: the port is closed, nobody listens there (or a firewall answers).
    Rst,
}

impl SynAnswer {
    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SynAck => "syn-ack",
            Self::Rst => "rst",
        }
    }

    /// The answer of that name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::SynAck, Self::Rst];
        all.into_iter().find(|answer| answer.name() == name)
    }
}
