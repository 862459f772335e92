//! The `--utc-offset` option: the time zone in which a command shows times.
//!
//! The default is UTC, because campaigns of several hosts are compared. The local time zone is not
//! used.

use clap::Args as ClapArgs;
use neph_model::UtcOffset;

/// The time zone of displayed times.
#[derive(Clone, Copy, Debug, Default, ClapArgs)]
pub(crate) struct Zone {
    /// Show times of day with this offset from UTC, such as +02:00 [default: UTC]
    #[arg(
        long = "utc-offset",
        value_name = "OFFSET",
        default_value_t = UtcOffset::UTC,
        allow_hyphen_values = true,
        hide_default_value = true
    )]
    pub(crate) offset: UtcOffset,
}
