//! TLS for client and reflector: trusted and presented certificates.
//!
//! Owns certificate policy and version choice. Sessions are never resumed: every handshake is a full one, so
//! that connections can be compared.

mod ca_file_verifier;
mod names;
mod pin_verifier;
mod refusal;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use neph_model::{Fingerprint, ReflectorIdentity, TlsVersion};
use neph_text::{FileKind, read_bytes};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::ring;
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use sha2::{Digest, Sha256};

use crate::private_file::{PrivateFileError, read_private};
use crate::spec::Trust;
use ca_file_verifier::CaFileVerifier;
use pin_verifier::PinVerifier;
pub(crate) use refusal::{describe_certificate_error, describe_handshake_error};

/// A TLS setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// An error of rustls.
    #[error("TLS: {0}")]
    Rustls(#[from] rustls::Error),
    /// The host is neither a name nor an address.
    #[error("TLS: '{0}' is no name a certificate could have")]
    InvalidServerName(String),
    /// A PEM file could not be used.
    #[error("TLS: {what} {path}: {reason}")]
    Pem {
        /// `certificate`, `key` or `authorities`.
        what: &'static str,
        /// The file.
        path: String,
        /// The error.
        reason: String,
    },
    /// The file of the private key cannot be used.
    #[error("TLS: private key: {0}")]
    PrivateKeyFile(#[from] PrivateFileError),
    /// The key does not match the certificate, or either cannot be used.
    #[error("TLS: certificate {certificate} and key {key} do not go together: {reason}")]
    KeyMismatch {
        /// The chain's file.
        certificate: String,
        /// The key's file.
        key: String,
        /// The error.
        reason: rustls::Error,
    },
    /// No certificate could be made.
    #[error("TLS: make a self-signed certificate: {0}")]
    SelfSigned(#[from] rcgen::Error),
}

static ONLY_12: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS12];
static ONLY_13: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];

fn versions(only: Option<TlsVersion>) -> &'static [&'static SupportedProtocolVersion] {
    match only {
        None => rustls::ALL_VERSIONS,
        Some(TlsVersion::V12) => &ONLY_12,
        Some(TlsVersion::V13) => &ONLY_13,
    }
}

/// The fingerprint of a certificate.
fn fingerprint_of(certificate: &CertificateDer<'_>) -> Fingerprint {
    Fingerprint::new(Sha256::digest(certificate).into())
}

/// TLS settings of a client of HTTP/1.1; `None` for `version` allows all.
///
/// # Errors
/// A file of authorities cannot be used.
pub fn client_config(
    version: Option<TlsVersion>,
    trust: &Trust,
) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions(version))?;
    let mut config = match trust {
        Trust::Public | Trust::CaFile(_) => {
            let roots = roots(trust)?;
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| rustls::Error::General(error.to_string()))?;
            let certificates = ca_file_certificates(trust)?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(CaFileVerifier {
                    verifier,
                    certificates,
                }))
                .with_no_client_auth()
        }
        Trust::Pinned(_) | Trust::AnyCertificate => {
            let pinned = match trust {
                Trust::Pinned(pinned) => Some(pinned.clone()),
                _ => None,
            };
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(PinVerifier { provider, pinned }))
                .with_no_client_auth()
        }
    };
    config.resumption = Resumption::disabled();
    // All protocols over TLS here begin as HTTP/1.1: a server with only HTTP/2 then reports that.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The authorities that `trust` names.
fn roots(trust: &Trust) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    for certificate in ca_file_certificates(trust)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// The certificates that `trust` names by a file.
fn ca_file_certificates(trust: &Trust) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    match trust {
        Trust::CaFile(path) => pem("authorities", FileKind::Certificates, path, certificates),
        Trust::Public | Trust::Pinned(_) | Trust::AnyCertificate => Ok(Vec::new()),
    }
}

/// A new client connection.
pub(crate) fn client(config: &Arc<ClientConfig>, host: &str) -> Result<Connection, TlsError> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| TlsError::InvalidServerName(host.to_owned()))?;
    Ok(ClientConnection::new(Arc::clone(config), name)?.into())
}

/// A new server connection.
pub(crate) fn server(config: &Arc<ServerConfig>) -> Result<Connection, TlsError> {
    Ok(ServerConnection::new(Arc::clone(config))?.into())
}

/// The same identity, with the names by which a reflector that listens here is reached.
pub(crate) fn with_listen_names(
    identity: &ReflectorIdentity,
    listen_address: SocketAddr,
) -> ReflectorIdentity {
    match identity {
        ReflectorIdentity::SelfSigned(extra_names) => {
            ReflectorIdentity::SelfSigned(names::certificate_names(listen_address, extra_names))
        }
        ReflectorIdentity::Files { .. } => identity.clone(),
    }
}

/// A reflector's side of TLS.
#[derive(Debug)]
pub(crate) struct ServerSide {
    /// Its settings.
    pub(crate) config: Arc<ServerConfig>,
    /// Of its certificate.
    pub(crate) fingerprint: Fingerprint,
}

/// TLS settings of a reflector.
///
/// # Errors
/// When a file cannot be read or does not hold what it should, or key and certificate differ.
pub(crate) fn server_config(
    identity: &ReflectorIdentity,
    version: Option<TlsVersion>,
) -> Result<ServerSide, TlsError> {
    let (chain, key) = match identity {
        ReflectorIdentity::SelfSigned(names) => {
            let self_signed = rcgen::generate_simple_self_signed(names.clone())?;
            let key = PrivateKeyDer::try_from(self_signed.signing_key.serialize_der())
                .map_err(|reason| rustls::Error::General(reason.to_owned()))?;
            (vec![self_signed.cert.der().clone()], key)
        }
        ReflectorIdentity::Files { certificate, key } => (
            pem(
                "certificate",
                FileKind::Certificates,
                certificate,
                certificates,
            )?,
            private_key(key)?,
        ),
    };
    let fingerprint = fingerprint_of(&chain[0]);
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions(version))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|reason| match identity {
            ReflectorIdentity::SelfSigned(_) => TlsError::Rustls(reason),
            ReflectorIdentity::Files { certificate, key } => TlsError::KeyMismatch {
                certificate: certificate.display().to_string(),
                key: key.display().to_string(),
                reason,
            },
        })?;
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    let config = Arc::new(config);
    Ok(ServerSide {
        config,
        fingerprint,
    })
}

/// The private key in a PEM file that only its owner can read.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let pem = read_private(FileKind::PrivateKey, path)?;
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| TlsError::Pem {
        what: "key",
        path: path.display().to_string(),
        reason: error.to_string(),
    })
}

/// The certificates in PEM, at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, rustls_pki_types::pem::Error> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?;
    if certificates.is_empty() {
        return Err(rustls_pki_types::pem::Error::NoItemsFound);
    }
    Ok(certificates)
}

/// The content of a PEM file.
fn pem<T>(
    what: &'static str,
    kind: FileKind,
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<T, rustls_pki_types::pem::Error>,
) -> Result<T, TlsError> {
    let read = read_bytes(kind, path).map_err(|error| error.to_string());
    let parsed = read.and_then(|bytes| parse(&bytes).map_err(|error| error.to_string()));
    parsed.map_err(|reason| TlsError::Pem {
        what,
        path: path.display().to_string(),
        reason,
    })
}

#[cfg(test)]
mod tests;
