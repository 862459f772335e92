//! `neph reflect`: a line when the reflector listens, and one each time its counters have changed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// An NDJSON line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and written at once"
)]
pub enum ReflectLine {
    /// The reflector listens.
    Listening {
        /// Address and port.
        address: String,
        /// Address and port of the throughput server; null without one.
        #[serde(skip_serializing_if = "Option::is_none")]
        throughput: Option<String>,
        /// Address and port of the media server; null without one.
        #[serde(skip_serializing_if = "Option::is_none")]
        media: Option<String>,
        /// Address and port of the HTTP service with known service times; null without one.
        #[serde(skip_serializing_if = "Option::is_none")]
        service: Option<String>,
        /// Certificate; null without TLS.
        certificate: Option<CertificateDocument>,
        /// Privileges of the process.
        privileges: PrivilegesDocument,
    },
    /// Counters since the start.
    Counted {
        /// Counters by name.
        counts: BTreeMap<String, u64>,
    },
}

/// A certificate that clients can pin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CertificateDocument {
    /// SHA-256 of the certificate, hexadecimal.
    pub sha256: String,
    /// Names and addresses for which it is valid.
    pub names: Vec<String>,
}

/// The privileges of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PrivilegesDocument {
    /// User to which the process changed; null if it did not change.
    pub user: Option<String>,
    /// Capabilities that the process still has.
    pub capabilities: Vec<String>,
    /// Always `on`.
    pub no_new_privs: &'static str,
    /// `on`, or `off` with the reason.
    pub seccomp: String,
    /// `on`, or `off` with the reason.
    pub landlock: String,
}
