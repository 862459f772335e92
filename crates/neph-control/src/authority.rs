//! The controller's certificate authority.
//!
//! Owns its private key and the certificates that it signs: one for the controller, created at each
//! start, and one for each agent.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use neph_agent::remote::{CONTROLLER_NAME, Identity, Signer};
use neph_model::AgentName;
use neph_text::{DiskError, write_durable};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Bytes of an uncompressed P-256 point.
const POINT_BYTES: usize = 65;

/// Errors of the authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A disk operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A key or certificate cannot be created or used.
    #[error("keys and certificates of the controller: {0}")]
    Invalid(String),
}

fn invalid(error: impl std::fmt::Display) -> AuthorityError {
    AuthorityError::Invalid(error.to_string())
}

/// Signs certificates.
#[derive(Debug)]
pub(crate) struct Authority {
    key: KeyPair,
    /// Its certificate (PEM).
    certificate: String,
}

/// An agent's public key.
struct AgentKey(Vec<u8>);

impl PublicKeyData for AgentKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }
    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

fn params_of_authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "Nephoscope controller");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

impl Authority {
    /// Opens the authority in `folder`; creates it if it does not exist.
    pub(crate) fn open(folder: &Path) -> Result<Self, AuthorityError> {
        let [key_path, path] = ["authority.key.pem", "authority.pem"].map(|name| folder.join(name));
        match fs::read_to_string(&path) {
            Ok(certificate) => {
                let key =
                    fs::read_to_string(&key_path).map_err(DiskError::of("read", &key_path))?;
                let key = KeyPair::from_pem(&key).map_err(invalid)?;
                Ok(Self { key, certificate })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let key = KeyPair::generate().map_err(invalid)?;
                let certificate = params_of_authority()
                    .self_signed(&key)
                    .map_err(invalid)?
                    .pem();
                // The certificate marks a complete authority, so it is written last.
                write_private(&key_path, &key.serialize_pem())?;
                write_private(&path, &certificate)?;
                Ok(Self { key, certificate })
            }
            Err(error) => Err(DiskError::of("read", &path)(error).into()),
        }
    }

    /// The signer of orders.
    pub(crate) fn signer(&self) -> Result<Signer, AuthorityError> {
        Signer::from_pem(&self.key.serialize_pem()).map_err(invalid)
    }

    /// Its certificate (PEM).
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    fn sign(
        &self,
        params: &CertificateParams,
        key: &impl PublicKeyData,
    ) -> Result<rcgen::Certificate, AuthorityError> {
        let authority_params = params_of_authority();
        let issuer = Issuer::from_params(&authority_params, &self.key);
        params.signed_by(key, &issuer).map_err(invalid)
    }

    /// Signs a certificate for an agent with these DNS names and this public key.
    pub(crate) fn certify(
        &self,
        name: &AgentName,
        names: &[String],
        public_key: Vec<u8>,
    ) -> Result<rcgen::Certificate, AuthorityError> {
        if public_key.len() != POINT_BYTES || public_key.first() != Some(&4) {
            return Err(invalid("the public key is no uncompressed point of P-256"));
        }
        let mut params = CertificateParams::new(names).map_err(invalid)?;
        params
            .distinguished_name
            .push(DnType::CommonName, name.as_str());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params, &AgentKey(public_key))
    }

    /// A certificate (PEM) and its key for a server with these names and addresses. It is also a
    /// client certificate: servers of a cluster connect to each other.
    pub(crate) fn certificate_of_server(
        &self,
        names: &[String],
    ) -> Result<(String, String), AuthorityError> {
        use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
        let key = KeyPair::generate().map_err(invalid)?;
        let mut params = CertificateParams::new(names).map_err(invalid)?;
        params.extended_key_usages = vec![ServerAuth, ClientAuth];
        let certificate = self.sign(&params, &key)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    /// TLS configuration of the controller as a client.
    pub(crate) fn client_tls(&self) -> Result<ClientConfig, AuthorityError> {
        let names = [CONTROLLER_NAME.to_owned()];
        let (certificate, key) = self.certificate_of_server(&names)?;
        let identity = Identity::new(key, certificate, self.certificate.clone());
        let tls = identity.tls().map_err(invalid)?;
        Ok(Arc::unwrap_or_clone(tls))
    }

    /// TLS configuration of the controller as a server: agents need a certificate, except for
    /// enrolment.
    pub(crate) fn tls(&self) -> Result<Arc<ServerConfig>, AuthorityError> {
        let key = KeyPair::generate().map_err(invalid)?;
        let mut params =
            CertificateParams::new(vec![CONTROLLER_NAME.to_owned()]).map_err(invalid)?;
        params
            .distinguished_name
            .push(DnType::CommonName, CONTROLLER_NAME);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let own_certificate = self.sign(&params, &key)?;
        let mut roots = RootCertStore::empty();
        let authority =
            CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(invalid)?;
        roots.add(authority.clone()).map_err(invalid)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let verifier = verifier.allow_unauthenticated().build().map_err(invalid)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(invalid)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![own_certificate.der().clone(), authority], key)
            .map_err(invalid)?;
        Ok(Arc::new(config))
    }
}

fn write_private(path: &Path, text: &str) -> Result<(), DiskError> {
    write_durable(path, text.as_bytes()).map_err(DiskError::of("write", path))
}
