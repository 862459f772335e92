//! A plan as text: each step as a shell command.
//!
//! Owns the text only. Other modules decide what is done; the text uses the same values.

use std::path::Path;

use crate::group::Group;
use crate::plan::{HASH_SEED, Operation, Plan, Step, WIRE_SETTINGS, settings};
use crate::topology::{Ready, ReadyCheck, Reroute, RerouteAction, Service, Topology, Traffic};

impl Plan<'_> {
    /// Creates the lab's own namespace.
    pub(crate) fn wire_steps(&self) -> Vec<Step> {
        let mut steps = vec![create_namespace(&self.wire)];
        steps.extend(WIRE_SETTINGS.map(|setting| write_setting(&self.wire, setting)));
        steps
    }

    /// Creates the namespace and the groups of the site with this index.
    pub(crate) fn site_steps(&self, index: usize, groups: &[Group]) -> Vec<Step> {
        let namespace = &self.sites[index];
        let mut steps = vec![create_namespace(namespace)];
        let settings = settings(self.topology, index);
        steps.extend(
            settings
                .iter()
                .map(|(name, value)| write_setting(namespace, (name, value))),
        );
        for group in groups {
            let folder = group.folder.display();
            if let Some((file, text)) = group.parent_setting() {
                let line = format!("echo '{text}' > {}", file.display());
                steps.push(Step::new(namespace, line));
            }
            steps.push(Step::new(namespace, format!("mkdir {folder}")));
            for (file, text) in &group.settings {
                let line = format!("echo '{text}' > {folder}/{file}");
                steps.push(Step::new(namespace, line));
            }
        }
        steps
    }

    /// Disables offloads.
    pub(crate) fn offload_steps(&self) -> Vec<Step> {
        let offloads = self.offloads().into_iter();
        let steps = offloads.flat_map(|(namespace, interfaces)| {
            interfaces.into_iter().map(|interface| {
                let line = format!("ethtool -K {interface} tx off rx off tso off gso off gro off");
                Step::new(namespace, line)
            })
        });
        steps.collect()
    }

    /// The links of engines, and where they are recorded.
    pub(crate) fn engine_steps(&self, record: Option<&Path>) -> Vec<Step> {
        let mut steps = Vec::new();
        for (number, (link, kind)) in self.topology.links.iter().zip(&self.kinds).enumerate() {
            let Some([a, b]) = kind.engine_ends(number) else {
                continue;
            };
            let mut line = format!("neph: carry link {} between {a} and {b}", link.name);
            if let Some(folder) = record {
                let file = folder.join(format!("{}.truth", link.name));
                line.push_str(&format!(", record it in {}", file.display()));
            }
            steps.push(Step::new(&self.wire, line));
        }
        steps
    }

    /// The tunnels in user space, and their routes.
    pub(crate) fn tunnel_steps(&self) -> Vec<Step> {
        let steps = self.tunnels().flat_map(|end| {
            let (interface, listen) = (&end.config.interface, end.config.listen);
            let line = format!("neph: carry packets between {interface} and UDP at {listen}");
            let start = Step::new(&self.sites[end.site], line);
            std::iter::once(start).chain(end.operations_after_start.iter().map(Operation::step))
        });
        steps.collect()
    }

    /// Starts the services, each when the previous one is ready.
    pub(crate) fn service_steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for service in self.services() {
            let namespace = &self.sites[service.site];
            steps.push(Step::new(namespace, start_command(service)));
            if let Some(ready) = &service.ready {
                steps.push(Step::new(namespace, ready_text(ready)));
            }
        }
        steps
    }

    /// The traffic after the lab is up, and the cue that it waits for.
    pub(crate) fn traffic_steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for traffic in &self.topology.traffic {
            let Traffic {
                name, at, until, ..
            } = traffic;
            let to = &self.topology.sites[traffic.to].name;
            let line = format!("neph: receive {name}");
            steps.push(Step::new(&self.sites[traffic.to], line));
            let mut line = format!("neph: send {name} to {to} from {at} to {until} after the cue");
            if let Some(every) = traffic.every {
                line.push_str(&format!(", every {every}"));
            }
            steps.push(Step::new(&self.sites[traffic.from], line));
        }
        for (number, reroute) in self.topology.reroutes.iter().enumerate() {
            let namespace = &self.sites[reroute.site];
            steps.push(Step::new(
                namespace,
                reroute_text(self.topology, number, reroute),
            ));
        }
        let keep_awake = "neph: keep the cores awake (/dev/cpu_dma_latency)".to_owned();
        steps.push(Step::new(&self.wire, keep_awake));
        let cue = "neph: give the cue that schedules and traffic count from".to_owned();
        steps.push(Step::new(&self.wire, cue));
        steps
    }
}

fn create_namespace(namespace: &str) -> Step {
    Step::new(namespace, format!("ip netns add {namespace}"))
}

fn write_setting(namespace: &str, (setting, value): (&str, &str)) -> Step {
    Step::new(namespace, format!("sysctl -w {setting}='{value}'"))
}

fn reroute_text(topology: &Topology, number: usize, reroute: &Reroute) -> String {
    let message = match reroute.action {
        RerouteAction::Reshuffle => format!("give {HASH_SEED} another value"),
        RerouteAction::Weight { link, weight } => {
            let link = &topology.links[link].name;
            format!("give next hops over {link} weight {weight} (ip route replace)")
        }
    };
    let mut line = format!(
        "neph: reroute {number}: {message} at {} after the cue",
        reroute.at
    );
    if let Some(until) = reroute.until {
        line.push_str(&format!(", until {until}"));
    }
    if let Some(every) = reroute.every {
        line.push_str(&format!(", every {every}"));
    }
    line
}

fn ready_text(ready: &Ready) -> String {
    let condition = match &ready.check {
        ReadyCheck::Tcp(port) => format!("port {port} takes a connection"),
        ReadyCheck::Command(args) => {
            let args: Vec<String> = args.iter().map(|word| quoted(word)).collect();
            format!("this ends with status 0: {}", args.join(" "))
        }
    };
    format!("neph: wait, at most {}, until {condition}", ready.timeout)
}

fn start_command(service: &Service) -> String {
    let variables = service.environment.iter();
    let variables = variables.map(|(name, value)| quoted(&format!("{name}={value}")));
    let env_program = (!service.environment.is_empty()).then(|| "env".to_owned());
    let arguments = service.command.iter().map(|word| quoted(word));
    let words: Vec<String> = env_program
        .into_iter()
        .chain(variables)
        .chain(arguments)
        .collect();
    words.join(" ")
}

/// A word for a shell, quoted only if needed. The first word of a command may need quotes more often: it may
/// look like an assignment or a keyword.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_only_if_a_shell_needs_it() {
        assert_eq!(quoted("haproxy.cfg"), "haproxy.cfg");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
