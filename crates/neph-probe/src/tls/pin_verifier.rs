//! Trust without certificate authorities: any certificate, or certificates that are pinned.
//!
//! Owns whether the server's own certificate is accepted. Its issuer, its names and its validity are
//! not looked at. The handshake's signatures are verified all the same: a server must have the key
//! of the certificate that it shows.

use std::fmt;
use std::sync::Arc;

use neph_model::Fingerprint;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::fingerprint_of;

/// Accepts certificates by themselves.
#[derive(Debug)]
pub(super) struct PinVerifier {
    pub(super) provider: Arc<CryptoProvider>,
    /// The only ones that are accepted; `None` accepts any.
    pub(super) pinned: Option<Vec<Fingerprint>>,
}

/// A certificate that is none of the pinned ones.
#[derive(Debug)]
pub(super) struct NotPinned {
    found: Fingerprint,
    expected: Vec<Fingerprint>,
}

impl std::error::Error for NotPinned {}

impl fmt::Display for NotPinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected: Vec<String> = self.expected.iter().map(ToString::to_string).collect();
        write!(
            f,
            "its SHA-256 fingerprint is {}, and pinned is {}",
            self.found,
            expected.join(" or ")
        )
    }
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let fingerprint = fingerprint_of(end_entity);
        match &self.pinned {
            Some(expected) if !expected.contains(&fingerprint) => {
                let reason = NotPinned {
                    found: fingerprint,
                    expected: expected.clone(),
                };
                Err(CertificateError::Other(OtherError(Arc::new(reason))).into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
