//! Capture points at agents (`agent:ams/eth0`), reached through the controller.

use std::collections::BTreeSet;
use std::path::Path;

use neph_control::{AgentCaptures, CampaignSocket, ControllerPlace, LONGEST_CAPTURE};
use neph_listen::recording::{Agents, Point};
use neph_model::{AgentName, Span};

use crate::controller_commands::ControllerCommands;
use crate::exit::Failure;
use crate::operator;

/// Captures in progress, in the controller's folder. Only one command may have this file at a time.
const ORDERS_NAME: &str = "captures";

/// The agents that capture at these points, through the controller in this folder; `None` without
/// such a point.
///
/// # Errors
/// The duration is too long, no controller is named or runs in the folder, or an agent is unknown
/// or busy.
pub(crate) fn connect_agents(
    points: &[Point],
    control: Option<&Path>,
    duration: Option<Span>,
) -> Result<Option<Box<dyn Agents>>, Failure> {
    let agents: BTreeSet<AgentName> = points.iter().filter_map(Point::agent).cloned().collect();
    let folder = match (agents.first(), control) {
        (Some(_), Some(folder)) => folder,
        (Some(agent), None) => {
            return Err(Failure::usage(format!(
                "a point is at agent {agent}: add --control FOLDER, the folder in which neph control serve runs on this host"
            )));
        }
        (None, Some(_)) => {
            return Err(Failure::usage(
                "--control has no effect: no point is at an agent (agent:ams/eth0)",
            ));
        }
        (None, None) => return Ok(None),
    };
    if let Some(requested) = duration.filter(|requested| *requested > LONGEST_CAPTURE) {
        return Err(Failure::usage(format!(
            "an agent captures {LONGEST_CAPTURE} at most, and {requested} was requested"
        )));
    }
    let registry = crate::control::open_registry(folder)?;
    let enrolled_agents = registry.agents().map_err(Failure::refused)?;
    let is_known = |agent: &&AgentName| enrolled_agents.iter().any(|(name, _)| name == *agent);
    if let Some(unknown) = agents.iter().find(|agent| !is_known(agent)) {
        let commands = ControllerCommands::in_folder(folder);
        return Err(Failure::usage(commands.not_enrolled(unknown)));
    }
    let controller_place = ControllerPlace::Folder(folder.to_owned());
    let socket =
        CampaignSocket::connect(controller_place, agents.clone()).map_err(operator::failure)?;
    let signer = registry.signer().map_err(Failure::refused)?;
    let captures = AgentCaptures::new(&folder.join(ORDERS_NAME), agents, socket, signer);
    Ok(Some(Box::new(captures.map_err(Failure::refused)?)))
}
