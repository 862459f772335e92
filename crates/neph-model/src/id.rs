//! Ids. Those of campaigns and experiments are globally unique (`UUIDv7`, sorted by time of
//! creation). The id of a scenario is derived from its values, so that two campaigns can share it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A text that is no id.
#[derive(Debug, thiserror::Error)]
#[error("'{text}' is not a {noun} id: expected a UUID such as 0190f3b2-...")]
pub struct ParseIdError {
    noun: &'static str,
    text: String,
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $noun:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id, later than all earlier ones.
            #[expect(clippy::new_without_default, reason = "each call differs; a default would not")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
            /// The 128 bits.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
            /// From the 128 bits that [`Self::as_bytes`] gave.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl FromStr for $name {
            type Err = ParseIdError;
            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                Uuid::parse_str(text)
                    .map(Self)
                    .map_err(|_| ParseIdError { noun: $noun, text: text.to_owned() })
            }
        }
    };
}

uuid_id!(
    /// The id of a campaign: one execution of a plan.
    CampaignId,
    "campaign"
);
uuid_id!(
    /// The id of an experiment: one execution of one scenario.
    ExperimentId,
    "experiment"
);
uuid_id!(
    /// The id of an order to another process. It is the same whenever the order is sent.
    OrderId,
    "order"
);

/// The id of a scenario: a 64-bit hash of its canonical text, as 16 hexadecimal digits.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "String", try_from = "String")]
pub struct ScenarioId(pub u64);

impl fmt::Display for ScenarioId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
impl From<ScenarioId> for String {
    fn from(id: ScenarioId) -> Self {
        id.to_string()
    }
}
impl FromStr for ScenarioId {
    type Err = ParseIdError;
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        u64::from_str_radix(text, 16)
            .map(Self)
            .map_err(|_| ParseIdError {
                noun: "scenario",
                text: text.to_owned(),
            })
    }
}
impl TryFrom<String> for ScenarioId {
    type Error = ParseIdError;
    fn try_from(text: String) -> Result<Self, ParseIdError> {
        text.parse()
    }
}

/// The sequence number of a message within its flow, from 0.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
