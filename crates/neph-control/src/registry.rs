//! Which agents there are: invited, enrolled, revoked.
//!
//! Owns the controller's folder: its authority, a file for each agent and for each open invitation. Commands
//! and the running controller use it at the same time, so each step is one file that is made or removed.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use neph_agent::remote::{Enrolment, Invitation, NAME_END, Signer, read_json, write_json};
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
    #[error("there is an agent {0} already; neph control revoke {0} makes room for another")]
    NameTaken(AgentName),
    /// There is no such agent.
    #[error("there is no agent {0}")]
    NoAgent(AgentName),
    /// Used, expired or never made.
    #[error(
        "the invitation is void: each is good for one agent and one hour; neph control invite NAME makes a new one"
    )]
    Void,
}

/// An invitation that is open; the secret itself is not kept.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    name: AgentName,
    #[serde(rename = "expires_unix_ns")]
    expires: Wall,
}

/// An agent that was enrolled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrolledAgent {
    /// SHA-256 of its certificate, as hexadecimal digits.
    pub fingerprint: String,
    /// When.
    #[serde(rename = "enrolled_unix_ns")]
    pub enrolled: Wall,
    /// Its user of NATS: a name that this enrolment alone has, in its certificate.
    pub bus_user: String,
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
        let hash = hex(&Sha256::digest(self.authority.certificate().as_bytes()));
        hash.chars().take(16).collect()
    }

    pub(crate) const fn authority(&self) -> &Authority {
        &self.authority
    }

    fn agent_path(&self, name: &AgentName) -> PathBuf {
        self.folder.join("agents").join(format!("{name}.json"))
    }

    /// The file that leads from a certificate to its agent: thousands connect at a time.
    fn certificate_path(&self, fingerprint: &str) -> PathBuf {
        self.folder
            .join("certificates")
            .join(format!("{fingerprint}.json"))
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
        if self.agent_path(&name).exists() {
            return Err(RegistryError::NameTaken(name));
        }
        let secret = BASE64_URL_SAFE_NO_PAD.encode(random);
        let open = Open {
            name: name.clone(),
            expires: now + INVITATION,
        };
        write_json(&self.invitation_path(&secret), &open)?;
        Ok(Invitation {
            name,
            secret,
            authority: self.authority.certificate().to_owned(),
        })
    }

    /// Redeems an invitation: the agent's certificate (PEM). It is void from then on, whatever comes of it.
    ///
    /// # Errors
    /// It is void, the key is none, the name is taken, or the disk refuses.
    pub fn enrol(
        &self,
        asked: &Enrolment,
        now: Wall,
    ) -> Result<(AgentName, String), RegistryError> {
        let path = self.invitation_path(&asked.secret);
        let open: Option<Open> = read_json(&path).ok().flatten();
        let open = open.ok_or(RegistryError::Void)?;
        // Of two that come at once, one removes it.
        fs::remove_file(&path).map_err(|_| RegistryError::Void)?;
        if now > open.expires {
            return Err(RegistryError::Void);
        }
        if self.agent_path(&open.name).exists() {
            return Err(RegistryError::NameTaken(open.name));
        }
        let key = BASE64_STANDARD.decode(&asked.public_key);
        let key = key.map_err(|error| AuthorityError::Wrong(error.to_string()))?;
        let bus_user = format!("{}{BUS_END}", &hex(&Sha256::digest(&key))[..32]);
        let names = [format!("{}{NAME_END}", open.name), bus_user.clone()];
        let certificate = self.authority.certify(&open.name, &names, key)?;
        let enrolled = EnrolledAgent {
            fingerprint: fingerprint(certificate.der()),
            enrolled: now,
            bus_user,
        };
        // Where the certificate leads comes first: without the agent it leads nowhere.
        write_json(&self.certificate_path(&enrolled.fingerprint), &open.name)?;
        write_json(&self.agent_path(&open.name), &enrolled)?;
        Ok((open.name, certificate.pem()))
    }

    /// The agent whose certificate this is (DER), if it is enrolled and not revoked.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn agent_with(&self, certificate: &[u8]) -> Result<Option<AgentName>, RegistryError> {
        let fingerprint = fingerprint(certificate);
        let Some(name) = read_json(&self.certificate_path(&fingerprint))? else {
            return Ok(None);
        };
        let enrolled: Option<EnrolledAgent> = read_json(&self.agent_path(&name))?;
        let is_its = enrolled.is_some_and(|one| one.fingerprint == fingerprint);
        Ok(is_its.then_some(name))
    }

    /// Whether there is an agent of this name. A file that cannot be read, for another reason than that it is gone,
    /// is one.
    pub(crate) fn is_enrolled(&self, name: &AgentName) -> bool {
        read_json::<EnrolledAgent>(&self.agent_path(name)).map_or(true, |found| found.is_some())
    }

    /// Whether the agent was revoked since it proved who it is by this certificate (DER). A file that cannot
    /// be read, for another reason than that it is gone, revokes no agent.
    pub(crate) fn is_revoked(&self, name: &AgentName, certificate: &[u8]) -> bool {
        let read = read_json::<EnrolledAgent>(&self.agent_path(name));
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
        let folder = self.folder.join("agents");
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
        let path = self.agent_path(name);
        if let Ok(Some(enrolled)) = read_json::<EnrolledAgent>(&path) {
            // One that stays leads to an agent that has another certificate, or to none.
            let _ = fs::remove_file(self.certificate_path(&enrolled.fingerprint));
        }
        fs::remove_file(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => RegistryError::NoAgent(name.clone()),
            _ => DiskError::of("remove", &path)(error).into(),
        })
    }
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
mod tests {
    use super::*;

    fn now(seconds: i64) -> Wall {
        Wall::from_unix_nanos(seconds * 1_000_000_000)
    }

    fn asked(invitation: &Invitation) -> Enrolment {
        let key = rcgen::KeyPair::generate().expect("a key");
        Enrolment {
            secret: invitation.secret.clone(),
            public_key: BASE64_STANDARD.encode(key.public_key_raw()),
        }
    }

    #[test]
    fn an_invitation_is_good_for_one_agent_and_one_hour() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::open(folder.path()).expect("writable");
        let name: AgentName = "ams".parse().expect("a name");
        let late = registry
            .invite(name.clone(), now(0), [1; 32])
            .expect("invited");
        let void = registry
            .enrol(&asked(&late), now(3601))
            .expect_err("it expired");
        assert!(matches!(void, RegistryError::Void), "{void}");

        let invitation = registry
            .invite(name.clone(), now(0), [2; 32])
            .expect("invited");
        let (enrolled, _) = registry
            .enrol(&asked(&invitation), now(3600))
            .expect("in time");
        assert_eq!(enrolled, name);
        let second = registry
            .enrol(&asked(&invitation), now(1))
            .expect_err("it is used");
        assert!(matches!(second, RegistryError::Void), "{second}");
        let taken = registry
            .invite(name.clone(), now(2), [3; 32])
            .expect_err("it is there");
        assert!(matches!(taken, RegistryError::NameTaken(_)), "{taken}");
        registry.revoke(&name).expect("it was there");
        assert_eq!(registry.agents().expect("readable"), []);
        registry
            .invite(name, now(3), [4; 32])
            .expect("there is room");
    }

    #[test]
    fn what_is_no_public_key_is_refused_and_the_invitation_is_used_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::open(folder.path()).expect("writable");
        let name: AgentName = "ams".parse().expect("a name");
        let invitation = registry.invite(name, now(0), [1; 32]).expect("invited");
        for public_key in ["", "AAAA", "?"] {
            let secret = invitation.secret.clone();
            let public_key = public_key.to_owned();
            registry
                .enrol(&Enrolment { secret, public_key }, now(1))
                .expect_err("no key");
        }
        assert_eq!(registry.agents().expect("readable"), []);
    }

    #[test]
    fn the_authority_stays_and_its_key_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("control");
        let first = Registry::open(&folder)
            .expect("writable")
            .authority
            .certificate()
            .to_owned();
        let second = Registry::open(&folder).expect("readable");
        assert_eq!(second.authority.certificate(), first);
        for path in [folder.clone(), folder.join("authority.key.pem")] {
            let mode = fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", path.display());
        }
    }
}
