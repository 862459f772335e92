//! What a scenario is aimed at.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Target;

/// What a scenario is aimed at. Serialised as one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", from = "String")]
pub enum Targets {
    /// Targets: one, or those that a fleet without a plan asks in turn.
    Known(Vec<Target>),
    /// What files of another program call it, which name no address.
    Called(String),
}

impl Targets {
    /// The only target, or the first.
    pub fn first(&self) -> Option<&Target> {
        match self {
            Self::Known(targets) => targets.first(),
            Self::Called(_) => None,
        }
    }

    /// Whether TLS carries its messages; no if it is not known.
    pub fn is_secure(&self) -> bool {
        self.first().is_some_and(Target::is_secure)
    }
}

impl From<Target> for Targets {
    fn from(target: Target) -> Self {
        Self::Known(vec![target])
    }
}

/// As it was written, without credentials; several with spaces between.
impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(targets) => {
                let words: Vec<String> = targets.iter().map(Target::written).collect();
                f.pad(&words.join(" "))
            }
            Self::Called(name) => f.pad(name),
        }
    }
}

impl FromStr for Targets {
    type Err = Infallible;

    /// What is no list of targets is a name.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let targets: Result<Vec<Target>, _> = text.split(' ').map(Target::parse).collect();
        Ok(targets.map_or_else(|_| Self::Called(text.to_owned()), Self::Known))
    }
}

impl From<Targets> for String {
    fn from(targets: Targets) -> Self {
        targets.to_string()
    }
}

impl From<String> for Targets {
    fn from(text: String) -> Self {
        let Ok(targets) = text.parse();
        targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_they_are_written_and_anything_else_is_a_name() {
        for (text, count) in [
            ("ws://h", 1),
            ("udp://127.0.0.1:1 udp://[::1]:2", 2),
            ("Frankfurt am Main", 0),
            ("", 0),
        ] {
            let targets = Targets::from(text.to_owned());
            assert_eq!(targets.to_string(), text);
            let known = match &targets {
                Targets::Known(targets) => targets.len(),
                Targets::Called(_) => 0,
            };
            assert_eq!(known, count, "{text}");
        }
        assert!(Targets::from("wss://h".to_owned()).is_secure());
    }
}
