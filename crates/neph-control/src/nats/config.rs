//! Writes the configuration of a NATS server: its users, and the subjects of each.
//!
//! Users are certificates of the controller's authority. A user is the key of an enrolment, not a
//! name. So a revoked agent has no access as a later one with the same name.

use std::path::{Path, PathBuf};

use neph_agent::remote::LONGEST_FRAME;
use neph_text::{DiskError, write_durable};

use crate::registry::{Registry, RegistryError};

/// Files of a NATS server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsFiles {
    /// The file for `nats-server -c`.
    pub config: PathBuf,
    /// Number of agents that may connect.
    pub agents: usize,
}

/// Writes the configuration of a server that listens at `listen` (`HOST:PORT`) and has these names
/// and addresses to `folder`, with its certificate and key.
///
/// # Errors
/// A disk operation failed, or the authority's key cannot be used.
pub fn write_nats_config(
    registry: &Registry,
    folder: &Path,
    listen: &str,
    names: &[String],
) -> Result<NatsFiles, RegistryError> {
    std::fs::create_dir_all(folder).map_err(DiskError::of("make the folder", folder))?;
    let folder = folder
        .canonicalize()
        .map_err(DiskError::of("use", folder))?;
    let agents = registry.agents()?;
    let (certificate, key) = registry.authority().certificate_of_server(names)?;
    let mut users = vec![user(CONTROLLER, "neph.to.*", "neph.from.*")];
    for (name, enrolled) in &agents {
        let (from, to) = (super::from_agent(name), super::to_agent(name));
        users.push(user(&enrolled.bus_user, &from, &to));
    }
    let path = |name: &str| folder.join(name);
    let quoted = |name: &str| format!("{:?}", path(name).display().to_string());
    let text = format!(
        "# Written by neph control nats. Write it again after agents are enrolled or revoked.\n\
         # Then run nats-server --signal reload.\n\
         listen: {listen:?}\n\
         max_payload: {LONGEST_FRAME}\n\
         max_pending: {pending}\n\
         tls {{\n  cert_file: {cert}\n  key_file: {key}\n  ca_file: {authority}\n  verify_and_map: true\n}}\n\
         authorization {{\n  users = [\n{users}  ]\n}}\n",
        pending = 16 * LONGEST_FRAME,
        cert = quoted("server.pem"),
        key = quoted("server.key.pem"),
        authority = quoted("authority.pem"),
        users = users.concat(),
    );
    for (name, text) in [
        ("server.key.pem", key.as_str()),
        ("server.pem", &certificate),
        ("authority.pem", registry.authority().certificate()),
        ("nats.conf", &text),
    ] {
        let path = path(name);
        write_durable(&path, text.as_bytes()).map_err(DiskError::of("write", &path))?;
    }
    Ok(NatsFiles {
        config: path("nats.conf"),
        agents: agents.len(),
    })
}

/// The user of the controller.
pub(crate) const CONTROLLER: &str = neph_agent::remote::CONTROLLER_NAME;

fn user(name: &str, publishes: &str, subscribes: &str) -> String {
    format!(
        "    {{ user: {name:?}, permissions: {{ publish: [{publishes:?}], subscribe: [{subscribes:?}] }} }}\n"
    )
}
