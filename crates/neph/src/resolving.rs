//! Finds the address that a command measures, and reports addresses that do not answer.

use std::io;
use std::net::SocketAddr;

use neph_model::{IpVersion, Span, Target};
use neph_probe::{Placement, Resolve, Resolved, Resolving, TargetError};

use crate::exit::Failure;
use crate::output;

/// Time limit for each address of a host.
const RESOLVE_TIMEOUT: Span = Span::from_secs(2);

/// The address of `target`, as `site` reaches it; addresses that do not answer are reported.
///
/// # Errors
/// Exit 2 where the target cannot be meant, 1 where its name has no address.
pub(crate) fn find(
    target: &Target,
    version: Option<IpVersion>,
    site: Option<Placement>,
) -> Result<Resolved, Failure> {
    let resolving = Resolving {
        version,
        patience: RESOLVE_TIMEOUT,
        site,
        ..Resolving::here(None)
    };
    let resolution = target.find(&resolving).map_err(failure)?;
    if let Some(remark) = resolution.remark(target) {
        output::say(&format!("neph: {remark}"));
    }
    Ok(resolution)
}

/// Exit 2 where the target cannot be meant, 1 where its name has no address.
pub(crate) fn failure(error: TargetError) -> Failure {
    match error {
        TargetError::Unresolved { .. } | TargetError::Site { .. } => Failure::refused(error),
        other => Failure::usage(other),
    }
}

/// The addresses of a host in the order of attempts, for anything that is not a measurement.
pub(crate) fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let target = Target::tcp(host, port).map_err(io::Error::other)?;
    target.addresses(None).map_err(io::Error::other)
}
