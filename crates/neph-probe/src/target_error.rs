//! Why a target has no address, each in one sentence with a remedy.

use neph_model::{Forbidden, ParseTargetError};

/// A target without an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Its text is no target.
    #[error(transparent)]
    Text(#[from] ParseTargetError),
    /// The name has no address.
    #[error(
        "target '{host}' cannot be resolved{version}: {reason}; check the name, or give an address"
    )]
    Unresolved {
        /// The name.
        host: String,
        /// ` to IPv4` or ` to IPv6` where one was required.
        version: &'static str,
        /// The resolver's error.
        reason: String,
    },
    /// None of its addresses may be sent to.
    #[error("target '{host}' may not be measured: {reason}")]
    Forbidden {
        /// The name.
        host: String,
        /// Why the first of them may not.
        reason: Forbidden,
    },
    /// The site to resolve from cannot be entered.
    #[error("{reason}")]
    Site {
        /// The error.
        reason: String,
    },
    /// An address of the version that was not asked for.
    #[error("target '{host}' is an {is} address: drop {option}, or give an {requested} address")]
    OtherVersion {
        /// The address.
        host: String,
        /// Its version, in words.
        is: &'static str,
        /// The requested version, in words.
        requested: &'static str,
        /// The option that requests it.
        option: &'static str,
    },
}
