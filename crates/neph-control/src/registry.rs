//! Which agents and operators there are: invited, enrolled, revoked.
//!
//! Owns the controller's folder: its authority, a file for each agent or operator and for each open invitation. Commands
//! and the running controller use it at the same time, so each step is one file that is made or removed.

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

use crate::authority::{Authority, AuthorityError};

/// What is kept of agents could not be read or written, or does not allow what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The disk refuses.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Keys and certificates.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The name is taken.
    #[error("there is an {0} {1} already; {command} makes room for another", command = revoke_command(*.0, .1))]
    NameTaken(Role, AgentName),
    /// There is no such agent or operator.
    #[error("there is no {0} {1}")]
    Nobody(Role, AgentName),
    /// Used, expired or never made.
    #[error(
        "the invitation is void: each is good for one use and one hour; neph control invite (for an operator: neph control invite --operator) makes a new one"
    )]
    Void,
}

fn revoke_command(role: Role, name: &AgentName) -> String {
    match role {
        Role::Agent => format!("neph control revoke {name}"),
        Role::Operator => format!("neph control revoke --operator {name}"),
    }
}

/// An invitation that is open; the secret itself is not kept.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    name: AgentName,
    #[serde(default)]
    role: Role,
    #[serde(rename = "expires_unix_ns")]
    expires: Wall,
}

/// An agent or operator that was enrolled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrolledAgent {
    /// SHA-256 of its certificate, as hexadecimal digits.
    pub fingerprint: String,
    /// When.
    #[serde(rename = "enrolled_unix_ns")]
    pub enrolled: Wall,
    /// An agent's user of NATS: a name that this enrolment alone has, in its certificate. An operator has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bus_user: String,
}

/// Whose a certificate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// As what it is enrolled.
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

/// Where those of a role are kept, and the files that lead from a certificate to its holder: thousands connect
/// at a time.
const fn folders(role: Role) -> (&'static str, &'static str) {
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

/// The end of each agent's user of NATS.
const BUS_END: &str = ".bus.neph";

/// How long an invitation is good for.
pub const INVITATION: Span = Span::from_secs(3600);

impl Registry {
    /// The registry in `folder`, which is made, for its owner alone, if it is not there.
    ///
    /// # Errors
    /// The disk refuses.
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

    /// Sixteen hexadecimal digits that no other controller has.
    pub fn id(&self) -> String {
        controller_id(self.authority.certificate())
    }

    pub(crate) const fn authority(&self) -> &Authority {
        &self.authority
    }

    fn path_of(&self, holder: &Holder) -> PathBuf {
        let (folder, _) = folders(holder.role);
        self.folder
            .join(folder)
            .join(format!("{}.json", holder.name))
    }

    fn certificate_path(&self, role: Role, fingerprint: &str) -> PathBuf {
        let (_, folder) = folders(role);
        self.folder.join(folder).join(format!("{fingerprint}.json"))
    }

    fn invitation_path(&self, secret: &str) -> PathBuf {
        let hash = hex(&Sha256::digest(secret.as_bytes()));
        self.folder.join("invitations").join(format!("{hash}.json"))
    }

    /// Invites an agent; `random` are 32 bytes that cannot be guessed.
    ///
    /// # Errors
    /// There is an agent of that name, or the disk refuses.
    pub fn invite(
        &self,
        name: AgentName,
        now: Wall,
        random: [u8; 32],
    ) -> Result<Invitation, RegistryError> {
        self.invite_holder(Holder::agent(name), now, random)
    }

    /// Invites an operator; `random` are 32 bytes that cannot be guessed.
    ///
    /// # Errors
    /// There is an operator of that name, or the disk refuses.
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
            return Err(RegistryError::NameTaken(role, name));
        }
        let secret = BASE64_URL_SAFE_NO_PAD.encode(random);
        let open = Open {
            name: name.clone(),
            role,
            expires: now + INVITATION,
        };
        write_json(&self.invitation_path(&secret), &open)?;
        Ok(Invitation {
            name,
            role,
            secret,
            authority: self.authority.certificate().to_owned(),
        })
    }

    /// Redeems an invitation: who is enrolled, and the certificate (PEM). It is void from then on, whatever comes of it.
    ///
    /// # Errors
    /// It is void, the key is none, the name is taken, or the disk refuses.
    pub fn enrol(&self, asked: &Enrolment, now: Wall) -> Result<(Holder, String), RegistryError> {
        let path = self.invitation_path(&asked.secret);
        let open: Option<Open> = read_json(&path).ok().flatten();
        let open = open.ok_or(RegistryError::Void)?;
        // Of two that come at once, one removes it.
        fs::remove_file(&path).map_err(|_| RegistryError::Void)?;
        if now > open.expires {
            return Err(RegistryError::Void);
        }
        let Open { name, role, .. } = open;
        let holder = Holder { role, name };
        if self.path_of(&holder).exists() {
            return Err(RegistryError::NameTaken(role, holder.name));
        }
        let key = BASE64_STANDARD.decode(&asked.public_key);
        let key = key.map_err(|error| AuthorityError::Wrong(error.to_string()))?;
        let bus_user = match role {
            Role::Agent => format!("{}{BUS_END}", &hex(&Sha256::digest(&key))[..32]),
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
        // Where the certificate leads comes first: without its holder it leads nowhere.
        let certificate_path = self.certificate_path(role, &enrolled.fingerprint);
        write_json(&certificate_path, &holder.name)?;
        write_json(&self.path_of(&holder), &enrolled)?;
        Ok((holder, certificate.pem()))
    }

    /// Whose certificate this is (DER), if its holder is enrolled and not revoked.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn holder_of(&self, certificate: &[u8]) -> Result<Option<Holder>, RegistryError> {
        let fingerprint = fingerprint(certificate);
        for role in [Role::Agent, Role::Operator] {
            let Some(name) = read_json(&self.certificate_path(role, &fingerprint))? else {
                continue;
            };
            let holder = Holder { role, name };
            let enrolled: Option<EnrolledAgent> = read_json(&self.path_of(&holder))?;
            if enrolled.is_some_and(|one| one.fingerprint == fingerprint) {
                return Ok(Some(holder));
            }
        }
        Ok(None)
    }

    /// Whether there is an agent of this name. A file that cannot be read, for another reason than that it is gone,
    /// is one.
    pub(crate) fn is_enrolled(&self, name: &AgentName) -> bool {
        let path = self.path_of(&Holder::agent(name.clone()));
        read_json::<EnrolledAgent>(&path).map_or(true, |found| found.is_some())
    }

    /// Whether the holder was revoked since it proved who it is by this certificate (DER). A file that cannot
    /// be read, for another reason than that it is gone, revokes nobody.
    pub(crate) fn is_revoked(&self, holder: &Holder, certificate: &[u8]) -> bool {
        let read = read_json::<EnrolledAgent>(&self.path_of(holder));
        let is_other = |one: EnrolledAgent| one.fingerprint != fingerprint(certificate);
        read.is_ok_and(|enrolled| enrolled.is_none_or(is_other))
    }

    /// The hand that signs orders for the agents that are enrolled here.
    ///
    /// # Errors
    /// The authority's key cannot be used.
    pub fn signer(&self) -> Result<Signer, RegistryError> {
        Ok(self.authority.signer()?)
    }

    /// All agents that are enrolled, by name.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn agents(&self) -> Result<Vec<(AgentName, EnrolledAgent)>, RegistryError> {
        self.enrolled(Role::Agent)
    }

    /// All operators that are enrolled, by name.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn operators(&self) -> Result<Vec<(AgentName, EnrolledAgent)>, RegistryError> {
        self.enrolled(Role::Operator)
    }

    fn enrolled(&self, role: Role) -> Result<Vec<(AgentName, EnrolledAgent)>, RegistryError> {
        let folder = self.folder.join(folders(role).0);
        let mut agents = Vec::new();
        for entry in fs::read_dir(&folder).map_err(DiskError::of("list", &folder))? {
            let path = entry.map_err(DiskError::of("list", &folder))?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let name: Option<AgentName> = stem.and_then(|stem| stem.parse().ok());
            // One that is revoked meanwhile is none.
            if let (Some(name), Ok(Some(enrolled))) = (name, read_json(&path)) {
                agents.push((name, enrolled));
            }
        }
        agents.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(agents)
    }

    /// Takes an agent's rights away. One that is connected is cut off within some seconds.
    ///
    /// # Errors
    /// There is no such agent, or the disk refuses.
    pub fn revoke(&self, name: &AgentName) -> Result<(), RegistryError> {
        self.revoke_holder(Holder::agent(name.clone()))
    }

    /// Takes an operator's rights away. A campaign of it is cut off within some seconds; its agents finish what
    /// they were ordered.
    ///
    /// # Errors
    /// There is no such operator, or the disk refuses.
    pub fn revoke_operator(&self, name: &AgentName) -> Result<(), RegistryError> {
        let (role, name) = (Role::Operator, name.clone());
        self.revoke_holder(Holder { role, name })
    }

    fn revoke_holder(&self, holder: Holder) -> Result<(), RegistryError> {
        let path = self.path_of(&holder);
        if let Ok(Some(enrolled)) = read_json::<EnrolledAgent>(&path) {
            // One that stays leads to somebody who has another certificate, or to nobody.
            let _ = fs::remove_file(self.certificate_path(holder.role, &enrolled.fingerprint));
        }
        fs::remove_file(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => RegistryError::Nobody(holder.role, holder.name),
            _ => DiskError::of("remove", &path)(error).into(),
        })
    }
}

/// Sixteen hexadecimal digits that no controller has whose authority has another certificate (PEM).
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
