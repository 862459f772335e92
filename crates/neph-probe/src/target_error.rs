//! Why a target cannot be meant or has no address, each in one sentence with a remedy.

use crate::kinds;

/// A target that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No such scheme.
    #[error(
        "target '{text}': scheme '{scheme}' is not known; use one of {}",
        kinds::scheme_list()
    )]
    Scheme {
        /// The whole target.
        text: String,
        /// Its scheme.
        scheme: String,
    },
    /// There is no host.
    #[error("target '{text}' has no host; write it as scheme://host:port/path")]
    Host {
        /// The whole target.
        text: String,
    },
    /// The port is missing or no number from 1 to 65535.
    #[error("target '{text}': {what}; write it as {scheme}://host:port")]
    Port {
        /// The whole target.
        text: String,
        /// What is wrong with the port.
        what: String,
        /// Its scheme.
        scheme: &'static str,
    },
    /// The path has characters that a request line cannot carry.
    #[error("target '{text}': the path has a space or control character; percent-encode it")]
    Path {
        /// The whole target.
        text: String,
    },
    /// It has a part that its scheme knows nothing of.
    #[error("target '{text}': {scheme} has no {what}; drop '{part}'")]
    Superfluous {
        /// The whole target.
        text: String,
        /// Its scheme.
        scheme: &'static str,
        /// What the part would be.
        what: &'static str,
        /// The part.
        part: String,
    },
    /// The name has no address.
    #[error(
        "target '{host}' cannot be resolved{version}: {reason}; check the name, or give an address"
    )]
    Unresolved {
        /// The name.
        host: String,
        /// ` to IPv4` or ` to IPv6` where one was demanded.
        version: &'static str,
        /// What the resolver said.
        reason: String,
    },
    /// The site to look from cannot be entered.
    #[error("{reason}")]
    Site {
        /// Why not.
        reason: String,
    },
    /// An address of the version that was not asked for.
    #[error("target '{host}' is an {is} address: drop {option}, or give an {asked} address")]
    OtherVersion {
        /// The address.
        host: String,
        /// Its version, in words.
        is: &'static str,
        /// The version that was asked for, in words.
        asked: &'static str,
        /// The option that asks for it.
        option: &'static str,
    },
}
