//! Options that only some targets can follow: one that cannot is refused, never ignored.
//!
//! The scheme of a bare host is not known yet, nor the last target of one that redirects: they accept
//! every option that may fit.

use neph_model::{ExpectedStatus, Target};

use super::Args;
use crate::exit::Failure;

/// An option, and what it needs.
struct Need {
    name: &'static str,
    is_given: fn(&Args) -> bool,
    fits: fn(&Target) -> bool,
    /// Whom it is for, as the end of a sentence.
    of: &'static str,
}

const OPTIONS: &[Need] = &[
    Need {
        name: "--tls-version",
        is_given: |args| args.tls_version.is_some(),
        fits: Target::is_secure,
        of: "only targets over TLS have a version of it",
    },
    Need {
        name: "--insecure",
        is_given: |args| args.insecure,
        fits: Target::is_secure,
        of: "only targets over TLS have a certificate",
    },
    Need {
        name: "--ca-file",
        is_given: |args| args.ca_file.is_some(),
        fits: Target::is_secure,
        of: "only targets over TLS have a certificate",
    },
    Need {
        name: "--pin",
        is_given: |args| !args.pin.is_empty(),
        fits: Target::is_secure,
        of: "only targets over TLS have a certificate",
    },
    Need {
        name: "--new-connection",
        is_given: |args| args.new_connection,
        fits: Target::on_connection,
        of: "only targets over TCP have connections",
    },
    Need {
        name: "--congestion",
        is_given: |args| args.congestion.is_some(),
        fits: Target::on_connection,
        of: "only targets over TCP have congestion control",
    },
    Need {
        name: "--expect-status",
        is_given: |args| args.expect_status != ExpectedStatus::default(),
        fits: |target| target.kind().facts().has_status,
        of: "http:// and https:// alone have an HTTP status",
    },
    Need {
        name: "--stamp-key",
        is_given: |args| args.stamp_key.is_some(),
        fits: |target| target.kind().facts().has_key,
        of: "udp:// alone speaks STAMP",
    },
    Need {
        name: "--source-port",
        is_given: |args| args.source_port.is_some(),
        fits: |target| target.kind().has_ports(),
        of: "ICMP has no ports",
    },
];

/// Whether this target can follow all options that were given.
///
/// # Errors
/// The first that it cannot, and whom it is for.
pub(super) fn check(args: &Args, target: &Target) -> Result<(), Failure> {
    let unfit = OPTIONS
        .iter()
        .find(|option| (option.is_given)(args) && !(option.fits)(target));
    match unfit {
        // A redirect may lead to TLS.
        Some(_) if args.follow => Ok(()),
        Some(Need { name, of, .. }) => Err(Failure::Usage(format!(
            "{name}: {of}; leave it out for {target}"
        ))),
        None => Ok(()),
    }
}
