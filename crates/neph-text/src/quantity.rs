//! Quantities with units: `25ms`, `10 KiB`, `3Mbit/s`, `0.1%`.
//!
//! Decimal arithmetic in integers: `0.1ms` is 100,000 ns and not a float near it.

use crate::Fault;

/// Unit names and their size in base units.
type Units = &'static [(&'static str, u64)];

const TIMES: Units = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
const SIZES: Units = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
const RATES: Units = &[
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
];

/// A time in nanoseconds, from 0 to 292 years.
///
/// # Errors
/// No number, no unit, an unknown unit, too large, or finer than a nanosecond.
pub fn parse_duration(text: &str) -> Result<i64, Fault> {
    let nanos = measure(text, TIMES, ("a time", "\"25ms\", \"1s\" or \"2min\""))?;
    i64::try_from(nanos).map_err(|_| {
        Fault::new(
            format!("{text} is longer than can be counted"),
            "write a time below 292 years",
        )
    })
}

/// A size in bytes.
///
/// # Errors
/// No number, no unit, an unknown unit, too large, or a fraction of a byte.
pub fn parse_size(text: &str) -> Result<u64, Fault> {
    measure(text, SIZES, ("a size", "\"64B\", \"100kB\" or \"10KiB\""))
}

/// A rate in bits per second.
///
/// # Errors
/// No number, no unit, an unknown unit, too large, or a fraction of a bit.
pub fn parse_rate(text: &str) -> Result<u64, Fault> {
    measure(text, RATES, ("a rate", "\"3Mbit/s\" or \"500kbit/s\""))
}

/// A share in percent, from 0 to 100.
///
/// # Errors
/// No number, no percent sign, or out of range.
pub fn parse_percent(text: &str) -> Result<f64, Fault> {
    text.trim()
        .strip_suffix('%')
        .and_then(|number| number.trim_end().parse::<f64>().ok())
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| {
            let message = format!("\"{text}\" is no share");
            Fault::new(message, "write a share from 0% to 100% such as \"0.1%\"")
        })
}

fn measure(text: &str, units: Units, (noun, example): (&str, &str)) -> Result<u64, Fault> {
    let invalid = |reason: &str| {
        let message = format!("\"{text}\" is not {noun}: {reason}");
        Fault::new(message, format!("write for example {example}"))
    };
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..end], trimmed[end..].trim_start());
    if number.is_empty() {
        return Err(invalid("it does not begin with a number"));
    }
    if unit.is_empty() {
        return Err(invalid("the unit is missing"));
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        let reason = format!("'{unit}' is none of {}", names.join(", "));
        return Err(invalid(&reason));
    };
    scale(&number.replace('_', ""), *factor).map_err(invalid)
}

/// `number` times `factor`, exactly.
fn scale(number: &str, factor: u64) -> Result<u64, &'static str> {
    let (integer, part) = number.split_once('.').unwrap_or((number, ""));
    let part = part.trim_end_matches('0');
    if part.len() > 18 || integer.len() > 20 {
        return Err("it has too many digits");
    }
    let digits = |text: &str| match text {
        "" => Ok(0),
        text => text
            .parse::<u128>()
            .map_err(|_| "it has more than one point"),
    };
    let places = u32::try_from(part.len()).expect("at most 18");
    let denominator = 10_u128.pow(places);
    let value = (digits(integer)? * denominator + digits(part)?) * u128::from(factor);
    if !value.is_multiple_of(denominator) {
        return Err("it is finer than can be counted");
    }
    u64::try_from(value / denominator).map_err(|_| "it is too large")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_are_parsed_exactly() {
        assert_eq!(parse_duration("25ms"), Ok(25_000_000));
        assert_eq!(parse_duration(" 1 s "), Ok(1_000_000_000));
        assert_eq!(parse_duration("2min"), Ok(120_000_000_000));
        assert_eq!(parse_duration("0.1ms"), Ok(100_000));
        assert_eq!(parse_size("10KiB"), Ok(10_240));
        assert_eq!(parse_size("100 kB"), Ok(100_000));
        assert_eq!(parse_size("1.5MiB"), Ok(1_572_864));
        assert_eq!(parse_rate("3Mbit/s"), Ok(3_000_000));
        assert_eq!(parse_percent("0.1 %"), Ok(0.1));
    }

    #[test]
    fn each_invalid_duration_is_reported_with_its_reason() {
        let message_of = |text: &str| parse_duration(text).expect_err("wrong").message;
        assert_eq!(
            message_of("ms"),
            "\"ms\" is not a time: it does not begin with a number"
        );
        assert_eq!(
            message_of("25"),
            "\"25\" is not a time: the unit is missing"
        );
        assert!(message_of("25 sec").contains("'sec' is none of ns, us"));
        assert!(message_of("0.1ns").contains("finer"));
        assert!(message_of("1.2.3s").contains("more than one point"));
        assert!(message_of("99999999999999999999s").contains("too large"));
        assert!(
            parse_duration("200000d")
                .expect_err("548 years")
                .message
                .contains("longer")
        );
        assert!(parse_percent("101%").is_err());
        assert!(parse_percent("NaN%").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in ".{0,40}") {
            let _ = (parse_duration(&text), parse_size(&text), parse_rate(&text), parse_percent(&text));
        }
    }
}
