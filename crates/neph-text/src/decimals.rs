//! Numbers with a fixed number of decimals, without a minus sign for values that round to 0.
//!
//! Owns the sign of zero. Does not own the choice of the number of decimals.

/// `-0.25`, `0.50`.
pub fn fixed(value: f64, digits: usize) -> String {
    without_negative_zero(format!("{value:.digits$}"), "")
}

/// `-0.25`, `+0.50`.
pub fn signed(value: f64, digits: usize) -> String {
    without_negative_zero(format!("{value:+.digits$}"), "+")
}

/// Replaces the minus sign by `sign` if all digits are zeros.
fn without_negative_zero(text: String, sign: &str) -> String {
    match text.strip_prefix('-') {
        Some(digits)
            if digits
                .chars()
                .all(|character| matches!(character, '0' | '.')) =>
        {
            format!("{sign}{digits}")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_rounds_to_zero_has_no_minus() {
        assert_eq!([-0.4, -0.0, 0.4].map(|value| fixed(value, 0)), ["0"; 3]);
        assert_eq!([-0.4, -0.0, 0.4].map(|value| signed(value, 0)), ["+0"; 3]);
        assert_eq!(
            [-0.000_4, -0.06].map(|value| fixed(value, 3)),
            ["0.000", "-0.060"]
        );
        assert_eq!([-0.6, 0.6].map(|value| signed(value, 0)), ["-1", "+1"]);
        assert_eq!(signed(f64::NEG_INFINITY, 1), "-inf");
    }
}
