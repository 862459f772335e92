//! Commands that an error about an agent or a controller names, with the options of that controller.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;

use neph_control::last_address;
use neph_model::AgentName;

/// The port of `neph control serve` without `--listen`.
pub(crate) const DEFAULT_PORT: u16 = 7443;
/// Its address and port.
pub(crate) const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), DEFAULT_PORT);

/// The commands for one controller.
pub(crate) struct ControllerCommands {
    /// Lists its agents.
    pub(crate) list: String,
    /// What follows `neph control invite AGENT`.
    invite_options: String,
}

impl ControllerCommands {
    /// For a controller on this host.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        let options = format!("--control {}", folder.display());
        Self {
            list: format!("neph agents {options}"),
            invite_options: options,
        }
    }

    /// For a controller on another host; `options` are those of this operator.
    pub(crate) fn of_operator(options: &str) -> Self {
        Self {
            list: format!("neph agents {options}"),
            invite_options: "--control FOLDER on the controller's host".to_owned(),
        }
    }

    /// Why an agent cannot be used, and what to do.
    pub(crate) fn not_enrolled(&self, agent: &AgentName) -> String {
        let Self {
            list,
            invite_options,
        } = self;
        format!(
            "agent {agent} is not enrolled or was revoked; {list} lists enrolled agents, neph control invite \
             {agent} {invite_options} prints its invitation"
        )
    }
}

/// That no controller runs in this folder, and how to start it where its agents look for it.
pub(crate) fn no_controller(folder: &Path) -> String {
    let address = last_address(folder).filter(|address| *address != DEFAULT_LISTEN);
    let listen = address.map_or_else(String::new, |address| format!(" --listen {address}"));
    let folder = folder.display();
    format!(
        "no controller runs in folder {folder}; neph control serve --control {folder}{listen} starts it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_controller_that_the_user_named() {
        let agent: AgentName = "cdg".parse().expect("a name");
        let text = ControllerCommands::in_folder(Path::new("ctl")).not_enrolled(&agent);
        let expected = "agent cdg is not enrolled or was revoked; neph agents --control ctl lists enrolled \
                        agents, neph control invite cdg --control ctl prints its invitation";
        assert_eq!(text, expected);
        let commands = ControllerCommands::of_operator("--controller wss://c:7443");
        let text = commands.not_enrolled(&agent);
        assert!(
            text.contains("neph agents --controller wss://c:7443 lists"),
            "{text}"
        );
        assert!(
            text.contains("on the controller's host prints its invitation"),
            "{text}"
        );
    }
    #[test]
    fn the_start_command_has_the_last_listen_address() {
        let folder = tempfile::tempdir().expect("a folder");
        let text_at = |address: &str| {
            std::fs::write(folder.path().join("address"), address).expect("writable");
            no_controller(folder.path())
        };
        assert!(text_at("127.0.0.1:17443").contains(" --listen 127.0.0.1:17443 starts it"));
        assert!(!text_at("[::]:7443").contains("--listen"));
    }
}
