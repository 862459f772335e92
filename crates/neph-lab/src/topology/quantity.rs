//! What a link can be asked for, and within which range: delays, rates, queues, shares, jitter.
//!
//! Owns the ranges. Units are read by `neph-text`.

use neph_model::{BitRate, ByteSize, Span};
use neph_text::{Fault, Node, Take, parse_duration, parse_percent, parse_rate, parse_size};

use crate::gate::{Jitter, Share};

const LONGEST_DELAY: Span = Span::from_secs(60);
const RATES: std::ops::RangeInclusive<u64> = 1_000..=100_000_000_000;
/// From one full frame on: less could never hold anything.
const QUEUES: std::ops::RangeInclusive<u64> = 1514..=1_073_741_824;

/// A delay from 0 to 60 s.
pub(super) fn delay(node: &Node) -> Result<Span, Fault> {
    delay_of(&text(node, "4ms")?)
}

fn delay_of(text: &str) -> Result<Span, Fault> {
    let span = Span::from_nanos(parse_duration(text)?);
    if span > LONGEST_DELAY {
        return Err(out_of_range(text, "a time such as \"4ms\", from 0s to 60s"));
    }
    Ok(span)
}

/// A rate from 1 kbit/s to 100 Gbit/s.
pub(super) fn rate(node: &Node) -> Result<BitRate, Fault> {
    let text = text(node, "3Mbit/s")?;
    let rate = parse_rate(&text)?;
    if !RATES.contains(&rate) {
        let wanted = "a rate such as \"3Mbit/s\", from 1kbit/s to 100Gbit/s";
        return Err(out_of_range(&text, wanted));
    }
    Ok(BitRate(rate))
}

/// A queue from one full frame (1514 B) to 1 GiB.
pub(super) fn queue(node: &Node) -> Result<ByteSize, Fault> {
    let text = text(node, "256KiB")?;
    let bytes = parse_size(&text)?;
    if !QUEUES.contains(&bytes) {
        let wanted = "a size such as \"256KiB\", from 1514B (one full frame) to 1GiB";
        return Err(out_of_range(&text, wanted));
    }
    Ok(ByteSize(bytes))
}

/// A share from 0 % to 100 %, exact to one in 10^9.
pub(super) fn share(node: &Node) -> Result<Share, Fault> {
    let percent = parse_percent(&text(node, "0.1%")?)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 100 percent are 0 to 10^9 billionths"
    )]
    let billionths = (percent * 1e7).round() as u32;
    Ok(Share::from_billionths(billionths))
}

/// `none`, `uniform 2ms` or `normal 2ms`.
pub(super) fn jitter(node: &Node) -> Result<Jitter, Fault> {
    let text = text(node, "uniform 2ms")?;
    let mut words = text.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("none"), None, None) => Ok(Jitter::None),
        (Some("uniform"), Some(time), None) => delay_of(time).map(Jitter::Uniform),
        (Some("normal"), Some(time), None) => delay_of(time).map(Jitter::Normal),
        _ => Err(Fault::new(
            format!("\"{text}\" is no jitter"),
            "write \"none\", \"uniform 2ms\" (at most 2 ms either way) or \"normal 2ms\" \
             (standard deviation 2 ms)",
        )),
    }
}

/// The text of `node`; anything else has lost its quotes or its unit.
fn text(node: &Node, example: &str) -> Result<String, Fault> {
    String::take(node).map_err(|fault| {
        let remedy = format!("write a text in quotes such as \"{example}\"");
        Fault::new(fault.what, remedy)
    })
}

fn out_of_range(text: &str, wanted: &str) -> Fault {
    Fault::new(
        format!("\"{text}\" is out of range"),
        format!("write {wanted}"),
    )
}

#[cfg(test)]
mod tests {
    use neph_text::Value;

    use super::*;

    fn node(text: &str) -> Node {
        Node {
            value: Value::Text(text.to_owned()),
            span: 0..text.len(),
        }
    }

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!(delay(&node("0.1ms")), Ok(Span::from_micros(100)));
        assert_eq!(delay(&node("20 ms")), Ok(Span::from_millis(20)));
        assert_eq!(rate(&node("3Mbit/s")), Ok(BitRate(3_000_000)));
        assert_eq!(queue(&node("256KiB")), Ok(ByteSize(262_144)));
        assert_eq!(share(&node("0.1%")), Ok(Share::from_billionths(1_000_000)));
        assert_eq!(
            share(&node("100%")),
            Ok(Share::from_billionths(1_000_000_000))
        );
        assert_eq!(
            jitter(&node("normal 2ms")),
            Ok(Jitter::Normal(Span::from_millis(2)))
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_a_remedy() {
        for (outcome, part) in [
            (delay(&node("4")), "the unit is missing"),
            (delay(&node("-4ms")), "does not begin with a number"),
            (delay(&node("61s")), "out of range"),
        ] {
            let fault = outcome.expect_err("wrong");
            assert!(fault.what.contains(part), "{fault:?}");
            assert!(fault.remedy.contains("ms\""), "{fault:?}");
        }
        assert!(rate(&node("0Mbit/s")).is_err() && queue(&node("10B")).is_err());
        assert!(share(&node("101%")).is_err() && jitter(&node("pareto 1ms")).is_err());
    }
}
