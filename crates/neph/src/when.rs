//! Wall-clock time as people read it: UTC, to the second.
//!
//! UTC because campaigns are compared between machines; the local zone is not looked up.

use neph_model::Wall;

/// `2026-11-21 21:58:54 UTC`; nanoseconds where the year has five digits.
pub(crate) fn utc(wall: Wall) -> String {
    let nanos = wall.unix_nanos();
    jiff::Timestamp::from_nanosecond(nanos.into()).map_or_else(
        |_| format!("{nanos} ns"),
        |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_told_in_utc() {
        let wall = Wall::from_unix_nanos(1_700_000_000_999_999_999);
        assert_eq!(utc(wall), "2023-11-14 22:13:20 UTC");
    }
}
