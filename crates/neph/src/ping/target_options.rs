//! Options that only some targets support: for other targets they are refused, never ignored.
//!
//! Without a scheme, or with redirects, the final target is not known yet: then every option that
//! may apply is accepted.

use neph_model::{ExpectedStatus, Target};

use super::Args;
use crate::exit::Failure;

/// An option and the targets that support it.
struct OptionRule {
    name: &'static str,
    is_used: fn(&Args) -> bool,
    is_supported_by: fn(&Target) -> bool,
    /// These targets, as the end of a sentence.
    reason: &'static str,
}

const OPTIONS: &[OptionRule] = &[
    OptionRule {
        name: "--tls-version",
        is_used: |args| args.tls_version.is_some(),
        is_supported_by: Target::is_secure,
        reason: "only targets over TLS have a version of it",
    },
    OptionRule {
        name: "--insecure",
        is_used: |args| args.insecure,
        is_supported_by: Target::is_secure,
        reason: "only targets over TLS have a certificate",
    },
    OptionRule {
        name: "--ca-file",
        is_used: |args| args.ca_file.is_some(),
        is_supported_by: Target::is_secure,
        reason: "only targets over TLS have a certificate",
    },
    OptionRule {
        name: "--pin",
        is_used: |args| !args.pin.is_empty(),
        is_supported_by: Target::is_secure,
        reason: "only targets over TLS have a certificate",
    },
    OptionRule {
        name: "--new-connection",
        is_used: |args| args.new_connection,
        is_supported_by: Target::uses_connection,
        reason: "only targets over TCP have connections",
    },
    OptionRule {
        name: "--congestion",
        is_used: |args| args.congestion.is_some(),
        is_supported_by: Target::uses_connection,
        reason: "only targets over TCP have congestion control",
    },
    OptionRule {
        name: "--expect-status",
        is_used: |args| args.expect_status != ExpectedStatus::default(),
        is_supported_by: |target| target.kind().properties().has_status,
        reason: "only http:// and https:// have an HTTP status",
    },
    OptionRule {
        name: "--stamp-key",
        is_used: |args| args.stamp_key.is_some(),
        is_supported_by: |target| target.kind().properties().has_key,
        reason: "only udp:// uses STAMP",
    },
    OptionRule {
        name: "--source-port",
        is_used: |args| args.source_port.is_some(),
        is_supported_by: |target| target.kind().has_ports(),
        reason: "ICMP has no ports",
    },
];

/// Checks that this target supports all given options.
///
/// # Errors
/// The first unsupported option, and the targets that support it.
pub(super) fn check(args: &Args, target: &Target) -> Result<(), Failure> {
    let violated_rule = OPTIONS
        .iter()
        .find(|option| (option.is_used)(args) && !(option.is_supported_by)(target));
    match violated_rule {
        // A redirect may lead to TLS.
        Some(_) if args.follow => Ok(()),
        Some(OptionRule { name, reason, .. }) => Err(Failure::Usage(format!(
            "{name}: {reason}; leave it out for {target}"
        ))),
        None => Ok(()),
    }
}
