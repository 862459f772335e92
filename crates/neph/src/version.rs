//! The version of neph.

/// The version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit of the build, or `unknown` outside a checkout; see build.rs.
pub(crate) const COMMIT: &str = env!("NEPH_COMMIT");

/// Version and commit.
pub(crate) const LONG_VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("NEPH_COMMIT"), ")");
