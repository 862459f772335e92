//! An entry of the gallery: a published finding, a network that shows it, and the results that neph must
//! report.

use serde::Deserialize;

use super::expectation::Expectation;
use super::statement::Topic;

/// A text file in an entry's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShippedFile {
    /// The name of its file.
    pub file: &'static str,
    /// Its content.
    pub text: &'static str,
}

/// The texts of an entry.
pub(super) struct EntryTexts {
    pub(super) name: &'static str,
    pub(super) entry: &'static str,
    pub(super) plan: &'static str,
    pub(super) lab: &'static str,
    pub(super) control: ShippedFile,
    pub(super) seasons: &'static [ShippedFile],
}

/// The content of `entry.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryToml {
    finding: String,
    published: String,
    figure: String,
    #[serde(default)]
    also: Vec<String>,
    #[serde(default)]
    innocent: Vec<String>,
    expected: Vec<Expectation>,
    of_control: Vec<Expectation>,
}

/// A published finding to reproduce.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name on the command line and of its folder in gallery/.
    pub name: &'static str,
    /// The finding in a few words.
    pub finding: String,
    /// Where it is published.
    pub published: String,
    /// The plan, which uses the lab of `lab.toml`.
    pub plan: &'static str,
    /// The topology.
    pub lab: &'static str,
    /// The topologies of the plan's seasons.
    pub seasons: &'static [ShippedFile],
    /// The same without the cause.
    pub control: Control,
    /// The figure that shows it, by file name: the kind, and what it compares.
    pub figure: String,
    /// Results that neph must report, and must not report for the control.
    pub expected: Vec<Expectation>,
    /// Results that neph must report for the control: its network is as fast as built.
    pub expected_of_control: Vec<Expectation>,
    /// Rules of other causes in the entry's network and in its control: neph may report them.
    pub other_causes: Vec<String>,
    /// Endpoints without any cause: neph must report none there.
    pub endpoints_without_cause: Vec<String>,
}

/// How the control removes the cause.
#[derive(Clone, Copy, Debug)]
pub enum Control {
    /// The same plan with another network.
    Lab(&'static str),
    /// Another plan with the same network.
    Plan(&'static str),
}

/// An entry itself, or its control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// With the cause.
    Finding,
    /// Without.
    Control,
}

impl Side {
    /// The suffix of the entry's name if both are shown.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Finding => "",
            Self::Control => ", control",
        }
    }
}

const PLAN_FILE: &str = "plan.toml";
const CONTROL_FILE: &str = "control.toml";
const LAB_FILE: &str = "lab.toml";
const CONTROL_LAB_FILE: &str = "control.lab.toml";

/// A text file for the entry's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryFile {
    /// The name of its file.
    pub file: &'static str,
    /// Its content.
    pub text: String,
}

impl From<ShippedFile> for EntryFile {
    fn from(text: ShippedFile) -> Self {
        Self {
            file: text.file,
            text: text.text.to_owned(),
        }
    }
}

impl From<&EntryTexts> for Entry {
    fn from(source: &EntryTexts) -> Self {
        let entry: EntryToml = toml::from_str(source.entry).expect("a test reads every entry");
        Self {
            name: source.name,
            finding: entry.finding,
            published: entry.published,
            plan: source.plan,
            lab: source.lab,
            seasons: source.seasons,
            control: if source.control.file == CONTROL_FILE {
                Control::Plan(source.control.text)
            } else {
                Control::Lab(source.control.text)
            },
            figure: entry.figure,
            expected: entry.expected,
            expected_of_control: entry.of_control,
            other_causes: entry.also,
            endpoints_without_cause: entry.innocent,
        }
    }
}

impl Entry {
    /// Whether the network of that side has the cause that `rule` detects.
    pub fn has_cause(&self, rule: &str, side: Side) -> bool {
        let expected = self.expected.iter();
        let mut expected = expected.filter(|_| side == Side::Finding);
        self.other_causes.iter().any(|cause| cause == rule)
            || expected
                .any(|expectation| matches!(&expectation.topic, Topic::Cause(name) if name == rule))
    }

    /// Whether any subject of a root cause is an endpoint without a cause.
    pub fn is_without_cause(&self, about: &[String]) -> bool {
        about
            .iter()
            .any(|name| self.endpoints_without_cause.contains(name))
    }

    /// The topologies of the plan's seasons.
    pub fn season_topologies(&self) -> impl Iterator<Item = EntryFile> {
        self.seasons.iter().copied().map(EntryFile::from)
    }

    /// The plan of a side, then its topology.
    pub fn plan_and_topology(&self, side: Side) -> [EntryFile; 2] {
        let entry_file = |file, text: &str| EntryFile {
            file,
            text: text.to_owned(),
        };
        let lab = entry_file(LAB_FILE, self.lab);
        match (side, self.control) {
            (Side::Finding, _) => [entry_file(PLAN_FILE, self.plan), lab],
            (Side::Control, Control::Plan(plan)) => [entry_file(CONTROL_FILE, plan), lab],
            (Side::Control, Control::Lab(topology)) => {
                let name_line = |suffix: &str| format!("name = \"gallery {}{suffix}\"", self.name);
                let plan = self
                    .plan
                    .replacen(&name_line(""), &name_line(Side::Control.suffix()), 1)
                    .replacen(LAB_FILE, CONTROL_LAB_FILE, 1);
                let topology = entry_file(CONTROL_LAB_FILE, topology);
                [entry_file(CONTROL_FILE, &plan), topology]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RULES;
    use crate::gallery::{entries, entry};

    #[test]
    fn every_entry_is_read_and_names_rules_that_exist() {
        for entry in entries() {
            let name = entry.name;
            assert!(!entry.expected.is_empty(), "{name} expects nothing");
            assert!(
                !entry.expected_of_control.is_empty(),
                "{name}: of its control"
            );
            let expected =
                entry
                    .expected
                    .iter()
                    .filter_map(|expectation| match &expectation.topic {
                        Topic::Cause(rule) => Some(rule),
                        Topic::Finding(_) | Topic::Median => None,
                    });
            for rule in expected.chain(&entry.other_causes) {
                assert!(
                    RULES.iter().any(|known| known.name == rule),
                    "{name}: {rule}"
                );
            }
        }
    }

    #[test]
    fn a_control_over_another_network_is_the_same_plan_otherwise() {
        let entry = entry("uplink").expect("it is there");
        let [plan, lab] = entry.plan_and_topology(Side::Control);
        assert_eq!((plan.file, lab.file), (CONTROL_FILE, CONTROL_LAB_FILE));
        let without_control = plan.text.replace(", control\"", "\"");
        assert_eq!(
            without_control.replace(CONTROL_LAB_FILE, LAB_FILE),
            entry.plan
        );
    }
}
