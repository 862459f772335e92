//! Converts decimal numbers to integers, without floating point.

/// `text` times 10^`digits`, truncated; `None` if it is no plain decimal number or does not fit.
/// `parse_scaled("43.745733", 6)` converts milliseconds to nanoseconds.
pub(super) fn parse_scaled(text: &str, digits: usize) -> Option<i64> {
    let text = text.trim();
    let (negative, plain) = match text.strip_prefix('-') {
        Some(plain) => (true, plain),
        None => (false, text),
    };
    let (integer, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    if integer.is_empty() && fraction.is_empty() {
        return None;
    }
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(integer) || !all_digits(fraction) {
        return None;
    }
    let mut value = 0_i64;
    let padded = fraction.bytes().chain(std::iter::repeat(b'0')).take(digits);
    for digit in integer.bytes().chain(padded) {
        value = value
            .checked_mul(10)?
            .checked_add(i64::from(digit - b'0'))?;
    }
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::parse_scaled;

    #[test]
    fn decimals_are_parsed_exactly() {
        assert_eq!(parse_scaled("43.745733", 6), Some(43_745_733));
        assert_eq!(parse_scaled("44.20757", 6), Some(44_207_570));
        assert_eq!(parse_scaled("71.8", 6), Some(71_800_000));
        assert_eq!(parse_scaled("-0.5", 3), Some(-500));
        assert_eq!(
            parse_scaled("1611336442.750143006", 9),
            Some(1_611_336_442_750_143_006)
        );
        assert_eq!(parse_scaled("0.1234567899", 9), Some(123_456_789));
    }

    #[test]
    fn invalid_numbers_are_none() {
        for text in [
            "",
            ".",
            "-",
            "1e9",
            "NaN",
            "1.2.3",
            "12 3",
            "99999999999999999999",
        ] {
            assert_eq!(parse_scaled(text, 6), None, "{text}");
        }
    }
}
