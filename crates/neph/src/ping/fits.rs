//! Options that only some targets support: for other targets they are refused, never ignored.
//!
//! Without a scheme, or with redirects, the final target is not known yet: then every option that
//! may apply is accepted.

use neph_model::{ExpectedStatus, Target};

use super::Args;
use crate::exit::Failure;

/// An option and the targets that support it.
struct Need {
    name: &'static str,
    is_given: fn(&Args) -> bool,
    is_supported_by: fn(&Target) -> bool,
    /// These targets, as the end of a sentence.
    of: &'static str,
}

const OPTIONS: &[Need] = &[
    Need {
        name: "--tls-version",
        is_given: |args| args.tls_version.is_some(),
        is_supported_by: Target::is_secure,
        of: "only targets over TLS have a version of it",
    },
    Need {
        name: "--insecure",
        is_given: |args| args.insecure,
        is_supported_by: Target::is_secure,
        of: "only targets over TLS have a certificate",
    },
    Need {
        name: "--ca-file",
        is_given: |args| args.ca_file.is_some(),
        is_supported_by: Target::is_secure,
        of: "only targets over TLS have a certificate",
    },
    Need {
        name: "--pin",
        is_given: |args| !args.pin.is_empty(),
        is_supported_by: Target::is_secure,
        of: "only targets over TLS have a certificate",
    },
    Need {
        name: "--new-connection",
        is_given: |args| args.new_connection,
        is_supported_by: Target::uses_connection,
        of: "only targets over TCP have connections",
    },
    Need {
        name: "--congestion",
        is_given: |args| args.congestion.is_some(),
        is_supported_by: Target::uses_connection,
        of: "only targets over TCP have congestion control",
    },
    Need {
        name: "--expect-status",
        is_given: |args| args.expect_status != ExpectedStatus::default(),
        is_supported_by: |target| target.kind().properties().has_status,
        of: "only http:// and https:// have an HTTP status",
    },
    Need {
        name: "--stamp-key",
        is_given: |args| args.stamp_key.is_some(),
        is_supported_by: |target| target.kind().properties().has_key,
        of: "only udp:// uses STAMP",
    },
    Need {
        name: "--source-port",
        is_given: |args| args.source_port.is_some(),
        is_supported_by: |target| target.kind().has_ports(),
        of: "ICMP has no ports",
    },
];

/// Checks that this target supports all given options.
///
/// # Errors
/// The first unsupported option, and the targets that support it.
pub(super) fn check(args: &Args, target: &Target) -> Result<(), Failure> {
    let unsupported_reason = OPTIONS
        .iter()
        .find(|option| (option.is_given)(args) && !(option.is_supported_by)(target));
    match unsupported_reason {
        // A redirect may lead to TLS.
        Some(_) if args.follow => Ok(()),
        Some(Need { name, of, .. }) => Err(Failure::Usage(format!(
            "{name}: {of}; leave it out for {target}"
        ))),
        None => Ok(()),
    }
}
