//! The bus for other processes: a Unix socket in the controller's folder, or the same bytes over
//! the controller's port.
//!
//! Owns both ends. A process first sends a [`SocketRequest`]: for agents to measure from, as a
//! campaign, or for information about agents. A campaign runs in a separate process (`neph run`),
//! so that it can be stopped, resumed and watched as any other. Agents stay connected to the
//! controller between campaigns. A frame is its length (four bytes, little-endian), the length of
//! the agent's name (one byte), the name, and the bytes of the message. A frame without message
//! bytes means that the agent disconnected; one with the bytes `revoked`, that it was revoked.

mod asking;
mod frames;
mod serving;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neph_model::AgentName;
use serde::{Deserialize, Serialize};

use crate::hub::{AwayAgent, ConnectedAgent};
use crate::operator_port::{OperatorError, OperatorPort};
use crate::registry::EnrolledAgent;

pub use asking::{CampaignSocket, agent_details, agents_at};
pub(crate) use serving::{CampaignService, answer, serve};

/// How long a write to the other process may block before it counts as stopped or gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for the request or its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Path of the socket in a controller's folder.
pub(crate) fn socket_path(folder: &Path) -> PathBuf {
    folder.join("control.sock")
}

/// How a campaign reaches a controller.
#[derive(Clone, Debug)]
pub enum ControllerPlace {
    /// On the same host, in this folder.
    Folder(PathBuf),
    /// At its port, as an operator.
    Port(OperatorPort),
}

/// Why a controller could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CampaignSocketError {
    /// No controller listens at this path.
    #[error("cannot connect to the controller in folder {path}: {source}", path = .path.display())]
    NoController {
        /// Its folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Its port cannot be reached, or it rejects this certificate.
    #[error(transparent)]
    OperatorPort(#[from] OperatorError),
    /// It refused the request.
    #[error("{0}")]
    Refused(String),
    /// It has another version, or failed.
    #[error("the controller {0} does not answer; is it of this version of neph?")]
    NoAnswer(String),
}

/// A request to the controller over its socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum SocketRequest {
    /// Measure from these agents.
    Campaign(BTreeSet<AgentName>),
    /// Details of an agent.
    Details(AgentName),
    /// List the agents.
    Agents,
}

/// The agents of a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerAgents {
    /// Enrolled agents, by name.
    pub enrolled: Vec<(AgentName, EnrolledAgent)>,
    /// Connected agents, by name.
    pub connected: Vec<ConnectedAgent>,
    /// Agents that were connected since the controller's start, and are not now.
    #[serde(default)]
    pub away: BTreeMap<AgentName, AwayAgent>,
}

/// First byte of an answer, before the requested data; `REFUSED` comes before a reason.
const READY: u8 = b'r';
const REFUSED: u8 = b'n';
