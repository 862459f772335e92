//! Formats numbers. Values in figures and tables are milliseconds.

use neph_model::{Quantity, Unanswered};
use neph_stats::Level;

/// The unit of a time axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Below half a millisecond.
    Micros,
    /// Most latencies.
    Millis,
    /// From 20 s.
    Seconds,
}

impl TimeUnit {
    /// The most readable unit for values up to `high` milliseconds.
    pub fn up_to(high: f64) -> Self {
        if high < 0.5 {
            Self::Micros
        } else if high < 20_000.0 {
            Self::Millis
        } else {
            Self::Seconds
        }
    }
    /// The name on screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Micros => "µs",
            Self::Millis => "ms",
            Self::Seconds => "s",
        }
    }
    /// Number of units in a millisecond.
    pub const fn per_milli(self) -> f64 {
        match self {
            Self::Micros => 1000.0,
            Self::Millis => 1.0,
            Self::Seconds => 0.001,
        }
    }
}

/// Seconds per unit for a duration of this many seconds, and the unit's name.
pub fn duration_unit(seconds: f64) -> (f64, &'static str) {
    match seconds {
        l if l <= 300.0 => (1.0, "s"),
        l if l <= 3.0 * 3600.0 => (60.0, "min"),
        l if l <= 3.0 * 86_400.0 => (3600.0, "h"),
        _ => (86_400.0, "days"),
    }
}

/// A number with a typographic minus sign; a rounded zero has no sign.
pub fn signed(rounded: &str) -> String {
    let is_zero = !rounded.contains(|digit: char| ('1'..='9').contains(&digit));
    rounded.replacen('-', if is_zero { "" } else { "−" }, 1)
}

/// A value of a quantity; microseconds are µs, as in all texts and figures of a report.
pub fn quantity_text(quantity: Quantity, value: f64) -> String {
    with_micro_signs(&quantity.to_text(value))
}

/// The text with µs for the unit us, which terminals show.
pub fn with_micro_signs(text: &str) -> String {
    let mut pieces = text.split(" us");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_unit = out.ends_with(|last: char| last.is_ascii_digit())
            && !piece.starts_with(char::is_alphanumeric);
        out.push_str(if is_unit { " µs" } else { " us" });
        out.push_str(piece);
    }
    out
}

/// Milliseconds in the most readable unit: `0.8 µs`, `26.8 µs`, `4.21 ms`, `267.4 ms`, `1.80 s`.
pub fn millis(value: f64) -> String {
    let text = match value.abs() {
        // A value above zero is never shown as zero.
        v if value > 0.0 && v < 0.000_05 => format!("{:.0} ns", value * 1e6),
        v if v < 0.1 => format!("{:.1} µs", value * 1e3),
        v if v < 0.999_5 => format!("{:.0} µs", value * 1e3),
        v if v < 99.995 => format!("{value:.2} ms"),
        v if v < 999.95 => format!("{value:.1} ms"),
        _ => format!("{:.2} s", value / 1e3),
    };
    signed(&text)
}

/// A level in milliseconds, or the word for the messages without a reply that decide it.
pub fn level(level: Level, unanswered: Unanswered) -> String {
    match level {
        Level::At(value) => millis(value),
        Level::Censored => unanswered.word().to_owned(),
    }
}

/// A share as a percentage with a suitable number of digits: `0 %`, `0.004 %`, `0.04 %`, `2.5 %`, `96 %`.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        v if v < 0.000_5 => "< 0.001 %".to_owned(),
        v if v < 0.005 => format!("{v:.3} %"),
        v if v < 1.0 => format!("{v:.2} %"),
        v if v < 10.0 => format!("{v:.1} %"),
        v if v < 99.5 => format!("{v:.0} %"),
        v if v < 99.995 => format!("{v:.2} %"),
        v => format!("{v:.0} %"),
    }
}

/// A number with thin spaces between thousands: `1 234 567`.
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && digits.len() > 4 {
            out.push('\u{a0}');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_unit_gets_a_micro_sign() {
        assert_eq!(
            with_micro_signs("by 419.0 us (3 used it, 5 us; 7 usual us)"),
            "by 419.0 µs (3 used it, 5 µs; 7 usual us)"
        );
    }

    #[test]
    fn numbers_have_readable_units_and_digits() {
        assert_eq!(
            [0.0268, 4.2149, 0.812, 267.42, 1800.0]
                .map(millis)
                .join("|"),
            "26.8 µs|4.21 ms|812 µs|267.4 ms|1.80 s"
        );
        assert_eq!([-1e-6, -1e-3].map(millis), ["0.0 µs", "−1.0 µs"]);
        assert_eq!(
            [0.0, 1e-7, 4e-5, 0.0004, 0.025, 0.962, 0.9999, 2.9]
                .map(percent)
                .join("|"),
            "0 %|< 0.001 %|0.004 %|0.04 %|2.5 %|96 %|99.99 %|290 %"
        );
        assert_eq!(
            (count(1234), count(1_234_567)),
            ("1234".into(), "1\u{a0}234\u{a0}567".into())
        );
        let not_sent = Unanswered {
            not_sent: 3,
            ..Unanswered::default()
        };
        assert_eq!(level(Level::Censored, not_sent), "not sent");
    }
}
