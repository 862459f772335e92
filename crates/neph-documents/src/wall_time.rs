//! Wall-clock time as text, to the second, in UTC or at a given offset.

use neph_model::{UtcOffset, Wall};

/// `2026-11-21 21:58:54 UTC`; nanoseconds where the year has five digits.
pub fn utc(wall: Wall) -> String {
    local_text(wall, UtcOffset::UTC)
}

/// `2026-11-21 23:58:54 UTC+02:00`.
pub fn local_text(wall: Wall, offset: UtcOffset) -> String {
    let nanos = wall.unix_nanos();
    let local = i128::from(nanos) + i128::from(offset.seconds()) * 1_000_000_000;
    jiff::Timestamp::from_nanosecond(local).map_or_else(
        |_| format!("{nanos} ns"),
        |timestamp| format!("{} {offset}", timestamp.strftime("%Y-%m-%d %H:%M:%S")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_shown_in_utc_or_at_an_offset() {
        let wall = Wall::from_unix_nanos(1_700_000_000_999_999_999);
        assert_eq!(utc(wall), "2023-11-14 22:13:20 UTC");
        let offset = |text: &str| text.parse().expect(text);
        assert_eq!(
            local_text(wall, offset("+02:00")),
            "2023-11-15 00:13:20 UTC+02:00"
        );
        assert_eq!(
            local_text(wall, offset("-05:30")),
            "2023-11-14 16:43:20 UTC-05:30"
        );
    }
}
