//! Commands that a topology has this machine run.
//!
//! Owns the list, for the decision whether a topology may be used. A topology runs as root, so these
//! are its author's commands with root's rights.

use super::{ReadyCheck, Topology};
use crate::plan::quoted;

/// A command of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Who runs it: `service 'web' at site 'server'`.
    pub owner: String,
    /// The command as a shell would be given it, with the file that its output replaces.
    pub line: String,
}

impl Topology {
    /// All commands that it names: of services, of their readiness and of guests. What neph itself runs
    /// to build the lab is none of them.
    pub fn commands(&self) -> Vec<Command> {
        let site = |index: usize| &self.sites[index].name;
        let mut commands = Vec::new();
        for service in &self.services {
            let owner = format!(
                "service '{}' at site '{}'",
                service.name,
                site(service.site)
            );
            let variables = service.environment.iter();
            let variables = variables.map(|(name, value)| format!("{name}={}", quoted(value)));
            let arguments = variables.chain(service.command.iter().map(|word| quoted(word)));
            let log = service.log.iter();
            let log = log.map(|log| format!("> {}", quoted(&log.to_string_lossy())));
            commands.push(Command {
                line: arguments.chain(log).collect::<Vec<_>>().join(" "),
                owner: owner.clone(),
            });
            let ready = service.ready.as_ref().map(|ready| &ready.check);
            if let Some(ReadyCheck::Command(arguments)) = ready {
                let arguments = arguments.iter().map(|word| quoted(word));
                commands.push(Command {
                    owner: format!("{owner}, to see whether it is ready"),
                    line: arguments.collect::<Vec<_>>().join(" "),
                });
            }
        }
        for fixture in &self.fixtures {
            let sites: Vec<&str> = fixture
                .build
                .guests()
                .iter()
                .map(|guest| site(guest.site).as_str())
                .collect();
            commands.extend(fixture.build.lines().iter().map(|line| Command {
                owner: format!("guest {}", sites.join(", ")),
                line: line.clone(),
            }));
        }
        commands
    }
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;

    #[test]
    fn commands_are_those_of_services_readiness_checks_and_guests() {
        let sites = "version = 1\nsite = [{ name = \"a\" }, { name = \"b\" }]\n\
                     link = [{ a = \"a\", b = \"b\" }]\n";
        let parse = |extra_toml: &str| {
            let text = format!("{sites}{extra_toml}");
            Topology::parse(&Source::new("x.toml", text))
                .unwrap_or_else(|problems| panic!("{problems:?}"))
        };
        assert_eq!(parse("").commands(), []);
        let service = "[[service]]\nname = \"web\"\nsite = \"b\"\ncommand = [\"sh\", \"-c\", \"a; b\"]\n\
                       environment = { LD_PRELOAD = \"x y\" }\nready = { command = [\"true\"] }\n";
        let owners_and_lines: Vec<(String, String)> = parse(service)
            .commands()
            .into_iter()
            .map(|command| (command.owner, command.line))
            .collect();
        let web = "service 'web' at site 'b'".to_owned();
        let ready = format!("{web}, to see whether it is ready");
        assert_eq!(
            owners_and_lines,
            [
                (web, "LD_PRELOAD='x y' sh -c 'a; b'".to_owned()),
                (ready, "true".to_owned())
            ]
        );
    }
}
