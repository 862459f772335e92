//! Errors of the registry, with the command that helps.

use std::path::{Path, PathBuf};

use neph_agent::remote::Role;
use neph_model::AgentName;
use neph_text::DiskError;

use crate::authority::AuthorityError;

/// Errors of the registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A disk operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// An error of keys and certificates.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The name is in use.
    #[error("{role} {name} is enrolled already; to give its name to another host, disconnect it first: {command}", command = revoke_command(*.role, .name, .folder))]
    NameTaken {
        /// Of the holder.
        role: Role,
        /// Of the holder.
        name: AgentName,
        /// The controller's folder.
        folder: PathBuf,
    },
    /// No such agent or operator.
    #[error("there is no {role} {name}; {command} lists those that there are", command = list_command(*.role, .folder))]
    NotEnrolled {
        /// Of the holder.
        role: Role,
        /// Of the holder.
        name: AgentName,
        /// The controller's folder.
        folder: PathBuf,
    },
    /// The invitation was used, has expired or never existed.
    #[error(
        "the invitation is void: it was used, or is older than one hour. A host that is enrolled needs none. For another host: neph control invite NAME (for an operator: neph control invite --operator NAME)"
    )]
    InvalidInvitation,
}

fn list_command(role: Role, folder: &Path) -> String {
    let command = match role {
        Role::Agent => "neph agents",
        Role::Operator => "neph control operators",
    };
    format!("{command} --control {}", folder.display())
}

fn revoke_command(role: Role, name: &AgentName, folder: &Path) -> String {
    let option = match role {
        Role::Agent => "",
        Role::Operator => "--operator ",
    };
    let folder = folder.display();
    format!("neph control revoke {option}{name} --control {folder}")
}
