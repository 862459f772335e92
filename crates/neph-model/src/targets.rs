//! The targets of a scenario.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ProbeKind, Target};

/// The targets of a scenario, which determine the kind of probe. In JSON two texts: `target` and
/// `probe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "Words", from = "Words")]
#[schemars(with = "Words")]
pub struct Targets(Aim);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Aim {
    /// Targets of one kind: one, or several that the slots of a fleet without a plan use in turn.
    /// Not empty.
    Known(Vec<Target>),
    /// A name from files of another program, without an address, and the kind of probe.
    Called(String, ProbeKind),
}

/// The stored form. It has the kind, because a name without an address does not show it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Words {
    /// The target, several separated by spaces, or a name.
    target: String,
    /// The kind of probe.
    probe: ProbeKind,
}

impl Targets {
    /// Reads the text that [`Self`] displays; a text that is no list of targets of this kind is a
    /// name.
    pub fn read(text: &str, probe: ProbeKind) -> Self {
        let targets: Result<Vec<Target>, _> = text.split(' ').map(Target::parse).collect();
        let is_one_kind =
            |targets: &Vec<Target>| targets.iter().all(|target| target.kind() == probe);
        let targets = targets.ok().filter(is_one_kind);
        Self(targets.map_or_else(|| Aim::Called(text.to_owned(), probe), Aim::Known))
    }

    /// The kind of probe.
    pub fn probe(&self) -> ProbeKind {
        match &self.0 {
            Aim::Known(targets) => targets[0].kind(),
            Aim::Called(_, probe) => *probe,
        }
    }

    /// All of them; none where only a name is known.
    pub fn as_slice(&self) -> &[Target] {
        match &self.0 {
            Aim::Known(targets) => targets,
            Aim::Called(..) => &[],
        }
    }

    /// The only target, or the first.
    pub fn first(&self) -> Option<&Target> {
        self.as_slice().first()
    }

    /// Whether TLS carries its messages; no if it is not known.
    pub fn is_secure(&self) -> bool {
        self.first().is_some_and(Target::is_secure)
    }
}

impl From<Target> for Targets {
    fn from(target: Target) -> Self {
        Self(Aim::Known(vec![target]))
    }
}

/// As it was written, without credentials; several with spaces between.
impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Aim::Known(targets) => {
                let texts: Vec<String> = targets.iter().map(Target::written).collect();
                f.pad(&texts.join(" "))
            }
            Aim::Called(name, _) => f.pad(name),
        }
    }
}

impl From<Targets> for Words {
    fn from(targets: Targets) -> Self {
        Self {
            target: targets.to_string(),
            probe: targets.probe(),
        }
    }
}

impl From<Words> for Targets {
    fn from(stored: Words) -> Self {
        Self::read(&stored.target, stored.probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_roundtrip_and_other_text_is_a_name() {
        for (text, probe, count) in [
            ("ws://h", ProbeKind::Ws, 1),
            ("udp://127.0.0.1:1 udp://[::1]:2", ProbeKind::Udp, 2),
            ("udp://127.0.0.1:1 tcp://[::1]:2", ProbeKind::Udp, 0),
            ("udp://127.0.0.1:1", ProbeKind::Tcp, 0),
            ("Frankfurt am Main", ProbeKind::Ws, 0),
            ("", ProbeKind::Udp, 0),
        ] {
            let targets = Targets::read(text, probe);
            assert_eq!(
                (targets.to_string().as_str(), targets.probe()),
                (text, probe)
            );
            assert_eq!(targets.as_slice().len(), count, "{text}");
        }
        assert!(Targets::read("wss://h", ProbeKind::Ws).is_secure());
    }

    #[test]
    fn the_probe_kind_is_stored_next_to_the_target_in_json() {
        for text in ["ws://h:1/x", "Frankfurt am Main"] {
            let targets = Targets::read(text, ProbeKind::Ws);
            let json = serde_json::to_value(&targets).expect("plain data");
            assert_eq!(json, serde_json::json!({"target": text, "probe": "ws"}));
            assert_eq!(serde_json::from_value::<Targets>(json).ok(), Some(targets));
        }
    }
}
