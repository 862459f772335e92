//! Trust in a certificate that was itself given as an authority.
//!
//! Owns one exception to the rules of RFC 5280: `openssl req -x509` makes a certificate that is marked as an
//! authority, and servers show it as their own. A user who gives this very certificate as `--ca-file` trusts
//! it. Its name and its validity are checked as always.

use std::sync::Arc;

use rustls::CertificateError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::refusal::is_an_authority;

/// The rules of web servers, and certificates that are trusted directly.
#[derive(Debug)]
pub(super) struct CaFileVerifier {
    pub(super) verifier: Arc<WebPkiServerVerifier>,
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for CaFileVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.verifier.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // Validity in time was checked before this error.
            Err(Error::InvalidCertificate(reason))
                if is_an_authority(&reason) && self.certificates.contains(end_entity) =>
            {
                let parsed = ParsedCertificate::try_from(end_entity)
                    .map_err(|_| CertificateError::BadEncoding)?;
                verify_server_name(&parsed, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
