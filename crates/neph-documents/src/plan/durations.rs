//! How long a campaign takes, in words.

use neph_model::Span;

/// Hours, minutes and seconds.
pub fn time(span: Span) -> String {
    let seconds = span.nanos() / 1_000_000_000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}
