//! `neph reflect`: a line when it listens, and one each time its counters have changed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// A line of NDJSON.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and written at once"
)]
pub enum ReflectLine {
    /// It listens.
    Listening {
        /// The address and port.
        address: String,
        /// Where throughput tests are served beside.
        #[serde(skip_serializing_if = "Option::is_none")]
        throughput: Option<String>,
        /// Where media streams are served beside.
        #[serde(skip_serializing_if = "Option::is_none")]
        media: Option<String>,
        /// The certificate, where it offers TLS.
        certificate: Option<CertificateDocument>,
        /// The privileges that it has.
        privileges: PrivilegesDocument,
    },
    /// What was counted since the start.
    Counted {
        /// Counters by name.
        counts: BTreeMap<String, u64>,
    },
}

/// A certificate that clients can pin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CertificateDocument {
    /// SHA-256 of the certificate, in hex.
    pub sha256: String,
    /// The names that it is for.
    pub names: Vec<String>,
}

/// The privileges of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PrivilegesDocument {
    /// The user that it became; null where it stayed the same.
    pub user: Option<String>,
    /// Capabilities that it kept.
    pub capabilities: Vec<String>,
    /// Always `on`.
    pub no_new_privs: &'static str,
    /// `on`, or `off` with the reason.
    pub seccomp: String,
    /// `on`, or `off` with the reason.
    pub landlock: String,
}
