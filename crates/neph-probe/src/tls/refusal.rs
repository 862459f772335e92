//! Why TLS failed: one sentence and one remedy for each cause.
//!
//! Owns the wording. Does not own the certificate policy (tls).

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
use rustls_pki_types::UnixTime;

use super::pin_verifier::NotPinned;

const ANY: &str = "or accept any certificate with --insecure";

/// Whether the certificate is marked as an authority and was shown as a server's own.
pub(super) fn is_an_authority(reason: &CertificateError) -> bool {
    let CertificateError::Other(other) = reason else {
        return false;
    };
    other.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

/// The certificate was compared with pinned fingerprints, and is none of them.
fn not_pinned(reason: &CertificateError) -> Option<&NotPinned> {
    match reason {
        CertificateError::Other(other) => other.0.downcast_ref(),
        _ => None,
    }
}

/// Why a certificate is not trusted, and the remedy.
pub(crate) fn describe_certificate_error(reason: &CertificateError) -> String {
    if let Some(not_pinned) = not_pinned(reason) {
        return format!(
            "the server's certificate is not the pinned one: {not_pinned}. If it was replaced on purpose, compare the new fingerprint with the server's output and pin it. Otherwise the connection may be intercepted"
        );
    }
    let (message, remedy) = causes(reason);
    format!("the server's certificate is not trusted: {message}; {remedy}, {ANY}")
}

fn causes(reason: &CertificateError) -> (String, &'static str) {
    let renew = "renew it at the server";
    match reason {
        CertificateError::Expired => ("it has expired".to_owned(), renew),
        CertificateError::ExpiredContext { time, not_after } => {
            let (end, now) = (moment(*not_after), moment(*time));
            (format!("it expired on {end}, and it is {now} here"), renew)
        }
        CertificateError::NotValidYet => (
            "it is not valid yet".to_owned(),
            "set this host's clock right",
        ),
        CertificateError::NotValidYetContext { time, not_before } => {
            let (begin, now) = (moment(*not_before), moment(*time));
            let message = format!("it is valid from {begin} on, and it is {now} here");
            (message, "set this host's clock right, or wait")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            of_names(reason)
        }
        CertificateError::UnknownIssuer => (
            "no authority that is known here issued it".to_owned(),
            "give its authority's certificate with --ca-file, or its own fingerprint with --pin",
        ),
        CertificateError::Revoked => (
            "its authority has revoked it".to_owned(),
            "have a new one issued",
        ),
        reason if is_an_authority(reason) => (
            "it is a certificate of an authority, used as a server's (openssl req -x509 creates these)"
                .to_owned(),
            "give this very certificate with --ca-file",
        ),
        reason if is_weak(reason) => (
            "its signature or its key is too weak or unknown (SHA-1, a short RSA key)".to_owned(),
            "have it reissued with SHA-256 and a key of 2048 bits or more",
        ),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => (
            "it is not meant for servers (extended key usage)".to_owned(),
            "have it reissued for server authentication",
        ),
        CertificateError::BadSignature => (
            "its signature is not its authority's: another key signed it".to_owned(),
            "give the authority's present certificate with --ca-file",
        ),
        CertificateError::BadEncoding => (
            "it cannot be read (an old version, or damaged)".to_owned(),
            "have it reissued as X.509 version 3",
        ),
        other => (other.to_string(), "have it reissued"),
    }
}

/// For a certificate with other names than the requested one.
fn of_names(reason: &CertificateError) -> (String, &'static str) {
    match reason {
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let requested = expected.to_str();
            if presented.is_empty() {
                let message =
                    format!("it has no name (subjectAltName), and {requested} was requested");
                (message, "recreate it with a subjectAltName")
            } else {
                let names = names(presented);
                let message = format!("it is for {names} and not for {requested}");
                (message, "use a name that it is for")
            }
        }
        _ => (
            "it is for another name".to_owned(),
            "use a name that it is for",
        ),
    }
}

fn is_weak(reason: &CertificateError) -> bool {
    #[expect(
        deprecated,
        reason = "rustls may still return it, and means the same by it"
    )]
    let of_old = matches!(reason, CertificateError::UnsupportedSignatureAlgorithm);
    of_old
        || matches!(
            reason,
            CertificateError::UnsupportedSignatureAlgorithmContext { .. }
                | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. }
        )
}

/// The names of a certificate without their types, three at most.
fn names(presented: &[String]) -> String {
    let bare = |name: &String| {
        let inner = name
            .split_once('(')
            .and_then(|(_, rest)| rest.strip_suffix(')'));
        inner.unwrap_or(name).trim_matches('"').to_owned()
    };
    let shown: Vec<String> = presented.iter().take(3).map(bare).collect();
    match presented.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn moment(at: UnixTime) -> String {
    let seconds = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| "a far day".to_owned(), |at| at.to_string())
}

/// Why else TLS failed, with a remedy if there is one.
pub(crate) fn describe_handshake_error(reason: &Error) -> String {
    let (message, remedy) = match reason {
        Error::AlertReceived(AlertDescription::CertificateRequired) => (
            "the server requires a client certificate".to_owned(),
            "neph has none: measure at a port that does not require one",
        ),
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => (
            "the server does not support HTTP/1.1 (ALPN), maybe only HTTP/2".to_owned(),
            "allow HTTP/1.1 at the server, or measure tcp:// connections to it",
        ),
        Error::AlertReceived(AlertDescription::ProtocolVersion)
        | Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => (
            "the server does not support the requested TLS version".to_owned(),
            "drop --tls-version (neph supports TLS 1.2 and 1.3), or update the server",
        ),
        Error::AlertReceived(AlertDescription::UnrecognisedName) => (
            "the server does not know the requested name (SNI)".to_owned(),
            "use a name that the server serves",
        ),
        Error::AlertReceived(AlertDescription::HandshakeFailure) => (
            "the server refuses the handshake: it has no cipher or key exchange that neph has, or it \
             wants a client certificate"
                .to_owned(),
            "see the server's log",
        ),
        other => return format!("TLS: {other}"),
    };
    format!("TLS: {message}; {remedy}")
}
