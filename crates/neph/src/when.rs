//! The `--utc-offset` option: the time zone in which a command shows times.
//!
//! UTC unless it is given, because campaigns are compared between machines; the local zone is not
//! looked up.

use clap::Args as ClapArgs;
use neph_model::UtcOffset;

pub(crate) use neph_documents::when::utc;

/// In which time zone a command shows times.
#[derive(Clone, Copy, Debug, Default, ClapArgs)]
pub(crate) struct Zone {
    /// Show times at this offset from UTC, such as +02:00
    #[arg(
        long = "utc-offset",
        value_name = "OFFSET",
        default_value_t = UtcOffset::UTC,
        allow_hyphen_values = true,
        hide_default_value = true
    )]
    pub(crate) offset: UtcOffset,
}
