//! A plan in words: each step as a person would type it.
//!
//! Owns the wording only. What is done is decided elsewhere, and told here from the same values.

use crate::group::Group;
use crate::plan::{Operation, Plan, WIRE_SETTINGS, settings};
use crate::topology::{Service, Traffic};

/// One step of bringing a lab up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The namespace that it is done in, or makes.
    pub namespace: String,
    /// What one would type to do it by hand; what neph does itself begins with `neph:`.
    pub line: String,
}

impl Step {
    pub(crate) fn new(namespace: &str, line: String) -> Self {
        let namespace = namespace.to_owned();
        Self { namespace, line }
    }
}

impl Plan<'_> {
    /// Making the lab's own namespace.
    pub(crate) fn wire_steps(&self) -> Vec<Step> {
        let mut steps = vec![make(&self.wire)];
        steps.extend(WIRE_SETTINGS.map(|setting| set(&self.wire, setting)));
        steps
    }

    /// Making the namespace and the groups of the site with this index.
    pub(crate) fn site_steps(&self, index: usize, groups: &[Group]) -> Vec<Step> {
        let namespace = &self.sites[index];
        let mut steps = vec![make(namespace)];
        let settings = settings(self.topology, index);
        steps.extend(settings.into_iter().map(|setting| set(namespace, setting)));
        for group in groups {
            let folder = group.folder.display();
            steps.push(Step::new(namespace, format!("mkdir {folder}")));
            for (file, text) in &group.settings {
                let line = format!("echo '{text}' > {folder}/{file}");
                steps.push(Step::new(namespace, line));
            }
        }
        steps
    }

    /// Switching offloads off at both ends of each link, and what neph carries itself.
    pub(crate) fn carrying_steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (number, (link, kind)) in self.topology.links.iter().zip(&self.kinds).enumerate() {
            for site in [link.a, link.b] {
                steps.push(without_offloads(&self.sites[site], &link.name));
            }
            let Some([a, b]) = kind.engine_ends(number) else {
                continue;
            };
            steps.extend([&a, &b].map(|end| without_offloads(&self.wire, end)));
            let line = format!("neph: carry link {} between {a} and {b}", link.name);
            steps.push(Step::new(&self.wire, line));
        }
        steps
    }

    /// What neph carries in user space, and what is routed into it.
    pub(crate) fn tunnel_steps(&self) -> Vec<Step> {
        let steps = self.tunnels().into_iter().flat_map(|end| {
            let (interface, listen) = (&end.config.interface, end.config.listen);
            let line = format!("neph: carry packets between {interface} and UDP at {listen}");
            let start = Step::new(&self.sites[end.site], line);
            std::iter::once(start).chain(
                end.afterwards
                    .iter()
                    .map(Operation::step)
                    .collect::<Vec<_>>(),
            )
        });
        steps.collect()
    }

    /// Starting the services.
    pub(crate) fn service_steps(&self) -> Vec<Step> {
        let start = |service: &Service| Step::new(&self.sites[service.site], started(service));
        self.services().iter().map(start).collect()
    }
}

impl Plan<'_> {
    /// What is sent once the lab is up.
    pub(crate) fn traffic_steps(&self) -> Vec<Step> {
        let step = |traffic: &Traffic| {
            let to = &self.topology.sites[traffic.to].name;
            let (at, until) = (traffic.at, traffic.until);
            let line = format!("neph: send to {to} from {at} to {until} after the cue");
            Step::new(&self.sites[traffic.from], line)
        };
        self.topology.traffic.iter().map(step).collect()
    }
}

fn make(namespace: &str) -> Step {
    Step::new(namespace, format!("ip netns add {namespace}"))
}

fn set(namespace: &str, (setting, value): (&str, &str)) -> Step {
    Step::new(namespace, format!("sysctl -w {setting}='{value}'"))
}

fn without_offloads(namespace: &str, interface: &str) -> Step {
    let line = format!("ethtool -K {interface} tx off rx off tso off gso off gro off");
    Step::new(namespace, line)
}

fn started(service: &Service) -> String {
    let variables = service.environment.iter();
    let variables = variables.map(|(name, value)| quoted(&format!("{name}={value}")));
    let env = (!service.environment.is_empty()).then(|| "env".to_owned());
    let words = service.command.iter().map(|word| quoted(word));
    let all: Vec<String> = env.into_iter().chain(variables).chain(words).collect();
    all.join(" ")
}

/// A word as a shell needs it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_only_where_a_shell_would_read_more_into_it() {
        assert_eq!(quoted("haproxy.cfg"), "haproxy.cfg");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
