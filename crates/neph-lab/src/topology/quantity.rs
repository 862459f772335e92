//! Quantities as people write them: `4ms`, `3Mbit/s`, `256KiB`, `0.1%`.
//!
//! Owns units and ranges. Does not know where in a file the text stood.

use neph_model::{BitRate, ByteSize, Span};

use crate::gate::{Jitter, Share};

/// What is wrong with a quantity: the sentence, then the remedy.
pub(crate) type Wrong = (String, String);

const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const RATES: [(&str, f64); 4] = [
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
];
const SIZES: [(&str, f64); 6] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// A delay from 0 to 60 s.
pub(crate) fn delay(text: &str) -> Result<Span, Wrong> {
    let nanos = measure(
        text,
        &TIMES,
        (0.0, 60e9),
        "a time such as \"4ms\", from 0s to 60s",
    )?;
    Ok(Span::from_nanos(nanos.cast_signed()))
}

/// A rate from 1 kbit/s to 100 Gbit/s.
pub(crate) fn rate(text: &str) -> Result<BitRate, Wrong> {
    let wanted = "a rate such as \"3Mbit/s\", from 1kbit/s to 100Gbit/s";
    measure(text, &RATES, (1e3, 100e9), wanted).map(BitRate)
}

/// A queue from one full frame (1514 B) to 1 GiB.
pub(crate) fn queue(text: &str) -> Result<ByteSize, Wrong> {
    let wanted = "a size such as \"256KiB\", from 1514B (one full frame) to 1GiB";
    measure(text, &SIZES, (1514.0, 1_073_741_824.0), wanted).map(ByteSize)
}

/// A share from 0 % to 100 %, exact to one in 10^9.
pub(crate) fn share(text: &str) -> Result<Share, Wrong> {
    let wanted = "a share such as \"0.1%\", from 0% to 100%";
    let billionths = measure(text, &[("%", 1e7)], (0.0, 1e9), wanted)?;
    Ok(Share::from_billionths(
        u32::try_from(billionths).expect("at most 10^9"),
    ))
}

/// `none`, `uniform 2ms` or `normal 2ms`.
pub(crate) fn jitter(text: &str) -> Result<Jitter, Wrong> {
    let mut words = text.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("none"), None, None) => Ok(Jitter::None),
        (Some("uniform"), Some(time), None) => delay(time).map(Jitter::Uniform),
        (Some("normal"), Some(time), None) => delay(time).map(Jitter::Normal),
        _ => Err((
            format!("\"{text}\" is no jitter"),
            "write \"none\", \"uniform 2ms\" (at most 2 ms either way) or \"normal 2ms\" \
             (standard deviation 2 ms)"
                .to_owned(),
        )),
    }
}

/// A number with one of `units`, within `range` in the smallest unit, rounded to a whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to lie in a range of non-negative numbers below 2^53"
)]
fn measure(
    text: &str,
    units: &[(&str, f64)],
    range: (f64, f64),
    wanted: &str,
) -> Result<u64, Wrong> {
    let wrong = |why: &str| Err((format!("\"{text}\" {why}"), format!("write {wanted}")));
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let Ok(number) = number.parse::<f64>() else {
        return wrong("does not begin with a number");
    };
    let Some(&(_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let names: Vec<&str> = units.iter().map(|&(name, _)| name).collect();
        return wrong(&format!("needs a unit: {}", names.join(", ")));
    };
    let value = (number * factor).round();
    if (range.0..=range.1).contains(&value) {
        Ok(value as u64)
    } else {
        wrong("is out of range")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!(delay("0.1ms"), Ok(Span::from_micros(100)));
        assert_eq!(delay("20 ms"), Ok(Span::from_millis(20)));
        assert_eq!(rate("3Mbit/s"), Ok(BitRate(3_000_000)));
        assert_eq!(queue("256KiB"), Ok(ByteSize(262_144)));
        assert_eq!(share("0.1%"), Ok(Share::from_billionths(1_000_000)));
        assert_eq!(
            jitter("normal 2ms"),
            Ok(Jitter::Normal(Span::from_millis(2)))
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_a_remedy() {
        for (outcome, part) in [
            (delay("4"), "needs a unit"),
            (delay("-4ms"), "does not begin with a number"),
            (delay("61s"), "out of range"),
            (delay("1.2.3ms"), "does not begin with a number"),
        ] {
            let (what, remedy) = outcome.expect_err("wrong");
            assert!(what.contains(part), "{what}");
            assert!(remedy.contains("4ms"), "{remedy}");
        }
        assert!(rate("0Mbit/s").is_err() && queue("10B").is_err() && share("101%").is_err());
        assert!(jitter("pareto 1ms").is_err());
    }
}
