//! The bus as another process reaches it: a Unix socket in the controller's folder, or the same bytes over the
//! controller's port.
//!
//! Owns both ends. A process first asks for something ([`SocketRequest`]): for agents to measure from, as a campaign,
//! or for what is known of them. A campaign runs in a process of its own (`neph run`), so that it can be stopped, resumed
//! and looked at as any other; agents stay connected to the controller between campaigns. A message is its
//! length (four bytes, little-endian), the length of the agent's name (one byte), the name, and the bytes of
//! the message; without these the agent is gone.

mod asking;
mod frames;
mod serving;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neph_model::AgentName;
use serde::{Deserialize, Serialize};

use crate::hub::Presence;
use crate::operator_port::{OperatorError, OperatorPort};
use crate::registry::EnrolledAgent;

pub use asking::{CampaignSocket, agent_details, agents_at};
pub(crate) use serving::{CampaignService, answer, serve};

/// How long the other process may take nothing: it is stopped, or gone.
const STUCK: Duration = Duration::from_secs(10);
/// How long a process waits for the other's first words.
const ANSWER: Duration = Duration::from_secs(5);

/// The socket in a controller's folder.
pub(crate) fn socket_path(folder: &Path) -> PathBuf {
    folder.join("control.sock")
}

/// Where a controller is reached by a campaign.
#[derive(Clone, Debug)]
pub enum ControllerPlace {
    /// In this folder of the same host.
    Folder(PathBuf),
    /// At its port, as an operator.
    Port(OperatorPort),
}

/// The controller was not reached.
#[derive(Debug, thiserror::Error)]
pub enum CampaignSocketError {
    /// No controller listens there.
    #[error("no controller runs in {path}: {source}; start one with neph control serve", path = .path.display())]
    None {
        /// Its folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It cannot be reached at its port, or takes nobody with this certificate.
    #[error(transparent)]
    Port(#[from] OperatorError),
    /// It does not do what was asked for.
    #[error("{0}")]
    Refused(String),
    /// It is of another version, or broken.
    #[error("the controller {0} does not answer; is it of this version of neph?")]
    Silent(String),
}

/// What a process asks the controller over its socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum SocketRequest {
    /// To measure from these agents.
    Campaign(BTreeSet<AgentName>),
    /// What is known of an agent.
    Details(AgentName),
    /// Which agents there are.
    Agents,
}

/// The agents of a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentsThere {
    /// Those that are enrolled, by name.
    pub enrolled: Vec<(AgentName, EnrolledAgent)>,
    /// Those that are connected, by name.
    pub connected: Vec<Presence>,
}

/// The first byte of an answer: what was asked for follows, or why it is not done.
const READY: u8 = b'r';
const REFUSED: u8 = b'n';
