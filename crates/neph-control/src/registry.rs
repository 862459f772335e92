//! The registry of agents and operators: invited, enrolled, revoked.
//!
//! Owns the controller's folder: its authority, and a file for each agent, operator and open
//! invitation. Commands and the running controller use it concurrently, so each step creates or
//! removes one file.

mod error;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use neph_agent::remote::{Enrolment, Invitation, Role, Signer, read_json, write_json};
use neph_model::{AgentName, Span, Wall};
use neph_text::DiskError;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use error::RegistryError;

use crate::authority::{Authority, AuthorityError};

/// An open invitation; the secret is not stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenInvitation {
    name: AgentName,
    #[serde(default)]
    role: Role,
    #[serde(rename = "expires_unix_ns")]
    expires: Wall,
}

/// An enrolled agent or operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrolledAgent {
    /// SHA-256 of its certificate, in hexadecimal.
    pub fingerprint: String,
    /// Time of the enrolment.
    #[serde(rename = "enrolled_unix_ns")]
    pub enrolled: Wall,
    /// An agent's NATS user: a name in its certificate that is unique to this enrolment. Operators
    /// have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bus_user: String,
}

/// The holder of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its role.
    pub role: Role,
    /// Its name.
    pub name: AgentName,
}

impl Holder {
    pub(crate) const fn agent(name: AgentName) -> Self {
        Self {
            role: Role::Agent,
            name,
        }
    }
}

/// The folders of a role: its holders, and the files that map a certificate to its holder.
/// Thousands may connect at the same time.
const fn role_folders(role: Role) -> (&'static str, &'static str) {
    match role {
        Role::Agent => ("agents", "certificates"),
        Role::Operator => ("operators", "operator-certificates"),
    }
}

/// The folder of a controller.
#[derive(Debug)]
pub struct Registry {
    folder: PathBuf,
    authority: Authority,
}

/// Suffix of each agent's NATS user.
const BUS_USER_SUFFIX: &str = ".bus.neph";

/// Validity of an invitation.
pub const INVITATION_LIFETIME: Span = Span::from_secs(3600);

impl Registry {
    /// Opens the registry in `folder`, which is created with access for its owner only.
    ///
    /// # Errors
    /// A disk operation failed.
    pub fn open(folder: &Path) -> Result<Self, RegistryError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        for part in [
            folder.to_owned(),
            folder.join("agents"),
            folder.join("certificates"),
            folder.join("operators"),
            folder.join("operator-certificates"),
            folder.join("invitations"),
        ] {
            builder
                .create(&part)
                .map_err(DiskError::of("make the folder", &part))?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            authority: Authority::open(folder)?,
        })
    }

    /// Unique id of this controller: 16 hexadecimal digits.
    pub fn id(&self) -> String {
        controller_id(self.authority.certificate())
    }

    pub(crate) const fn authority(&self) -> &Authority {
        &self.authority
    }

    fn path_of(&self, holder: &Holder) -> PathBuf {
        let (folder, _) = role_folders(holder.role);
        self.folder
            .join(folder)
            .join(format!("{}.json", holder.name))
    }

    fn certificate_path(&self, role: Role, fingerprint: &str) -> PathBuf {
        let (_, folder) = role_folders(role);
        self.folder.join(folder).join(format!("{fingerprint}.json"))
    }

    fn invitation_path(&self, secret: &str) -> PathBuf {
        let hash = hex(&Sha256::digest(secret.as_bytes()));
        self.folder.join("invitations").join(format!("{hash}.json"))
    }

    /// Invites an agent; `random` are 32 unpredictable bytes.
    ///
    /// # Errors
    /// The name is in use, or a disk operation failed.
    pub fn invite(
        &self,
        name: AgentName,
        now: Wall,
        random: [u8; 32],
    ) -> Result<Invitation, RegistryError> {
        self.invite_holder(Holder::agent(name), now, random)
    }

    /// Invites an operator; `random` are 32 unpredictable bytes.
    ///
    /// # Errors
    /// The name is in use, or a disk operation failed.
    pub fn invite_operator(
        &self,
        name: AgentName,
        now: Wall,
        random: [u8; 32],
    ) -> Result<Invitation, RegistryError> {
        let role = Role::Operator;
        self.invite_holder(Holder { role, name }, now, random)
    }

    fn invite_holder(
        &self,
        holder: Holder,
        now: Wall,
        random: [u8; 32],
    ) -> Result<Invitation, RegistryError> {
        let is_taken = self.path_of(&holder).exists();
        let Holder { role, name } = holder;
        if is_taken {
            return Err(self.name_taken(role, name));
        }
        let secret = BASE64_URL_SAFE_NO_PAD.encode(random);
        let open = OpenInvitation {
            name: name.clone(),
            role,
            expires: now + INVITATION_LIFETIME,
        };
        write_json(&self.invitation_path(&secret), &open)?;
        Ok(Invitation {
            name,
            role,
            secret,
            authority: self.authority.certificate().to_owned(),
        })
    }

    /// Redeems an invitation; returns the holder and its certificate (PEM). The invitation is void
    /// even after an error.
    ///
    /// # Errors
    /// The invitation is void, the key is invalid, the name is in use, or a disk operation failed.
    pub fn enrol(
        &self,
        requested: &Enrolment,
        now: Wall,
    ) -> Result<(Holder, String), RegistryError> {
        let path = self.invitation_path(&requested.secret);
        let open: Option<OpenInvitation> = read_json(&path).ok().flatten();
        let open = open.ok_or(RegistryError::InvalidInvitation)?;
        // Of two concurrent requests only one can remove it.
        fs::remove_file(&path).map_err(|_| RegistryError::InvalidInvitation)?;
        if now > open.expires {
            return Err(RegistryError::InvalidInvitation);
        }
        let OpenInvitation { name, role, .. } = open;
        let holder = Holder { role, name };
        if self.path_of(&holder).exists() {
            return Err(self.name_taken(role, holder.name));
        }
        let key = BASE64_STANDARD.decode(&requested.public_key);
        let key = key.map_err(|error| AuthorityError::Invalid(error.to_string()))?;
        let bus_user = match role {
            Role::Agent => format!("{}{BUS_USER_SUFFIX}", &hex(&Sha256::digest(&key))[..32]),
            Role::Operator => String::new(),
        };
        let mut names = vec![
            format!("{}{}", holder.name, role.name_end()),
            bus_user.clone(),
        ];
        names.retain(|name| !name.is_empty());
        let certificate = self.authority.certify(&holder.name, &names, key)?;
        let enrolled = EnrolledAgent {
            fingerprint: fingerprint(certificate.der()),
            enrolled: now,
            bus_user,
        };
        // The map entry comes first: without its holder it is not valid.
        let certificate_path = self.certificate_path(role, &enrolled.fingerprint);
        write_json(&certificate_path, &holder.name)?;
        write_json(&self.path_of(&holder), &enrolled)?;
        Ok((holder, certificate.pem()))
    }

    /// The holder of a certificate (DER), if it is enrolled and not revoked.
    ///
    /// # Errors
    /// A disk operation failed.
    pub(crate) fn holder_of(&self, certificate: &[u8]) -> Result<Option<Holder>, RegistryError> {
        let fingerprint = fingerprint(certificate);
        for role in [Role::Agent, Role::Operator] {
            let Some(name) = read_json(&self.certificate_path(role, &fingerprint))? else {
                continue;
            };
            let holder = Holder { role, name };
            let enrolled: Option<EnrolledAgent> = read_json(&self.path_of(&holder))?;
            if enrolled.is_some_and(|agent| agent.fingerprint == fingerprint) {
                return Ok(Some(holder));
            }
        }
        Ok(None)
    }

    /// Whether an agent with this name is enrolled. A file that exists but cannot be read counts as
    /// enrolled.
    pub(crate) fn is_enrolled(&self, name: &AgentName) -> bool {
        let path = self.path_of(&Holder::agent(name.clone()));
        read_json::<EnrolledAgent>(&path).map_or(true, |enrolled| enrolled.is_some())
    }

    /// Whether the holder was revoked after it authenticated with this certificate (DER). A file
    /// that exists but cannot be read counts as not revoked.
    pub(crate) fn is_revoked(&self, holder: &Holder, certificate: &[u8]) -> bool {
        let read = read_json::<EnrolledAgent>(&self.path_of(holder));
        let is_other = |agent: EnrolledAgent| agent.fingerprint != fingerprint(certificate);
        read.is_ok_and(|enrolled| enrolled.is_none_or(is_other))
    }

    /// The signer of orders for the enrolled agents.
    ///
    /// # Errors
    /// The authority's key cannot be used.
    pub fn signer(&self) -> Result<Signer, RegistryError> {
        Ok(self.authority.signer()?)
    }

    /// All enrolled agents, by name.
    ///
    /// # Errors
    /// A disk operation failed.
    pub fn agents(&self) -> Result<Vec<(AgentName, EnrolledAgent)>, RegistryError> {
        self.list_enrolled(Role::Agent)
    }

    /// All enrolled operators, by name.
    ///
    /// # Errors
    /// A disk operation failed.
    pub fn operators(&self) -> Result<Vec<(AgentName, EnrolledAgent)>, RegistryError> {
        self.list_enrolled(Role::Operator)
    }

    fn name_taken(&self, role: Role, name: AgentName) -> RegistryError {
        let folder = self.folder.clone();
        RegistryError::NameTaken { role, name, folder }
    }

    fn list_enrolled(&self, role: Role) -> Result<Vec<(AgentName, EnrolledAgent)>, RegistryError> {
        let folder = self.folder.join(role_folders(role).0);
        let mut agents = Vec::new();
        for entry in fs::read_dir(&folder).map_err(DiskError::of("list", &folder))? {
            let path = entry.map_err(DiskError::of("list", &folder))?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let name: Option<AgentName> = stem.and_then(|stem| stem.parse().ok());
            // It may have been revoked in the meantime.
            if let (Some(name), Ok(Some(enrolled))) = (name, read_json(&path)) {
                agents.push((name, enrolled));
            }
        }
        agents.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(agents)
    }

    /// Revokes an agent. Its connection is closed within some seconds.
    ///
    /// # Errors
    /// No such agent, or a disk operation failed.
    pub fn revoke(&self, name: &AgentName) -> Result<(), RegistryError> {
        self.revoke_holder(Holder::agent(name.clone()))
    }

    /// Revokes an operator. Its campaign is disconnected within some seconds; its agents finish
    /// their orders.
    ///
    /// # Errors
    /// No such operator, or a disk operation failed.
    pub fn revoke_operator(&self, name: &AgentName) -> Result<(), RegistryError> {
        let (role, name) = (Role::Operator, name.clone());
        self.revoke_holder(Holder { role, name })
    }

    fn revoke_holder(&self, holder: Holder) -> Result<(), RegistryError> {
        let path = self.path_of(&holder);
        if let Ok(Some(enrolled)) = read_json::<EnrolledAgent>(&path) {
            // A remaining entry is harmless: its holder has another certificate, or does not exist.
            let _ = fs::remove_file(self.certificate_path(holder.role, &enrolled.fingerprint));
        }
        fs::remove_file(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => RegistryError::NotEnrolled {
                role: holder.role,
                name: holder.name,
                folder: self.folder.clone(),
            },
            _ => DiskError::of("remove", &path)(error).into(),
        })
    }
}

/// Unique id of the controller with this authority certificate (PEM): 16 hexadecimal digits.
pub fn controller_id(authority: &str) -> String {
    let hash = hex(&Sha256::digest(authority.as_bytes()));
    hash.chars().take(16).collect()
}

fn fingerprint(certificate: &[u8]) -> String {
    hex(&Sha256::digest(certificate))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
