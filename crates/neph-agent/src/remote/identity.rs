//! The identity of an agent towards its controller: its key, its certificate, and its trusted authority.
//!
//! Owns the files in the agent's folder (`key.pem` for its owner alone), and the agent's side of TLS. The
//! key never leaves the folder.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use neph_model::AgentName;
use neph_text::{DiskError, write_durable};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::role::Role;

/// The name in every controller's certificate, for any address: agents trust its authority.
pub const CONTROLLER_NAME: &str = "controller.neph";

const KEY_FILE: &str = "key.pem";
const CERTIFICATE_FILE: &str = "certificate.pem";
const CA_FILE: &str = "authority.pem";

/// An agent's key and certificate could not be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The agent was never enrolled.
    #[error(
        "{0} holds no certificate: give the line that neph control invite NAME printed with --invite, or its file with --invite-file"
    )]
    NotEnrolled(String),
    /// The disk refuses.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Something in it is wrong.
    #[error("key or certificate in {path}: {reason}")]
    Invalid {
        /// Which folder.
        path: String,
        /// The fault.
        reason: String,
    },
}

/// Keys and certificates, as PEM.
#[derive(Clone)]
pub struct Identity {
    key: String,
    certificate: String,
    authority: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// Key and certificates of an enrolled agent.
    pub const fn new(key: String, certificate: String, authority: String) -> Self {
        Self {
            key,
            certificate,
            authority,
        }
    }

    /// The identity in an agent's folder.
    ///
    /// # Errors
    /// There is none, or the disk refuses.
    pub fn load(folder: &Path) -> Result<Self, IdentityError> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => IdentityError::NotEnrolled(folder.display().to_string()),
                _ => DiskError::of("use", &path)(error).into(),
            })
        };
        Ok(Self {
            key: read(KEY_FILE)?,
            certificate: read(CERTIFICATE_FILE)?,
            authority: read(CA_FILE)?,
        })
    }

    /// Saves it in an agent's folder, and replaces an existing identity. The certificate is written last:
    /// without it there is no identity.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn save(&self, folder: &Path) -> Result<(), IdentityError> {
        fs::create_dir_all(folder).map_err(DiskError::of("use", folder))?;
        let files = [
            (KEY_FILE, &self.key),
            (CA_FILE, &self.authority),
            (CERTIFICATE_FILE, &self.certificate),
        ];
        for (name, text) in files {
            let path = folder.join(name);
            write_durable(&path, text.as_bytes()).map_err(DiskError::of("use", &path))?;
        }
        Ok(())
    }

    /// TLS with this certificate, which trusts the controller's authority alone.
    ///
    /// # Errors
    /// Something in it is wrong.
    pub fn tls(&self) -> Result<Arc<ClientConfig>, IdentityError> {
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes());
        let chain = chain
            .collect::<Result<Vec<_>, _>>()
            .map_err(invalid_identity)?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(invalid_identity)?;
        let builder = tls_builder(&self.authority)?;
        let config = builder
            .with_client_auth_cert(chain, key)
            .map_err(invalid_identity)?;
        Ok(Arc::new(config))
    }
}

impl Identity {
    /// The certificate of the controller's authority (PEM).
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The agent's name, as its certificate has it.
    ///
    /// # Errors
    /// The certificate is none of an agent.
    pub fn name(&self) -> Result<AgentName, IdentityError> {
        let der = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        let der = der.map_err(invalid_identity)?;
        let certificate = webpki::EndEntityCert::try_from(&der).map_err(invalid_identity)?;
        let mut names = certificate.valid_dns_names();
        let name = names.find_map(|name| name.strip_suffix(Role::Agent.name_end())?.parse().ok());
        name.ok_or_else(|| invalid_identity("it names no agent"))
    }
}

/// TLS before an agent has a certificate.
pub(super) fn tls_without_certificate(authority: &str) -> Result<Arc<ClientConfig>, IdentityError> {
    Ok(Arc::new(tls_builder(authority)?.with_no_client_auth()))
}

type ClientConfigBuilder = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

fn tls_builder(authority: &str) -> Result<ClientConfigBuilder, IdentityError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots
            .add(certificate.map_err(invalid_identity)?)
            .map_err(invalid_identity)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(invalid_identity)?;
    Ok(builder.with_root_certificates(roots))
}

fn invalid_identity(error: impl std::fmt::Display) -> IdentityError {
    IdentityError::Invalid {
        path: "its folder".to_owned(),
        reason: error.to_string(),
    }
}
