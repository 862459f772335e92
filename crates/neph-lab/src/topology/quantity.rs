//! The quantities of a link and their ranges: delays, rates, queues, shares, jitter.
//!
//! Owns the ranges. `neph-text` reads the units.

use std::ops::RangeInclusive;
use std::sync::Arc;

use neph_model::{BitRate, ByteSize, Span};
use neph_text::{Fault, FromNode, Node, parse_duration, parse_percent, parse_rate, parse_size};

use crate::gate::{Jitter, QueueLimit, Share, Trace};

pub(super) const MAX_DELAY: Span = Span::from_secs(60);
const RATE_RANGE: RangeInclusive<u64> = 1_000..=100_000_000_000;
/// At least one full frame, or it could never contain anything.
const QUEUE_BYTES_RANGE: RangeInclusive<u64> = 1514..=1_073_741_824;
const QUEUE_PACKETS_RANGE: RangeInclusive<u32> = 1..=1_000_000;
/// From the minimum of every IPv4 host to the maximum of a frame here.
const MTU_RANGE: RangeInclusive<u32> = 576..=1500;

/// A delay from 0 to 60 s.
pub(super) fn delay(node: &Node) -> Result<Span, Fault> {
    parse_delay(&text(node, "4ms")?)
}

fn parse_delay(text: &str) -> Result<Span, Fault> {
    let span = Span::from_nanos(parse_duration(text)?);
    if span > MAX_DELAY {
        return Err(out_of_range_fault(
            text,
            "a time such as \"4ms\", from 0s to 60s",
        ));
    }
    Ok(span)
}

/// A rate from 1 kbit/s to 100 Gbit/s.
pub(crate) fn rate(node: &Node) -> Result<BitRate, Fault> {
    let text = text(node, "3Mbit/s")?;
    let rate = parse_rate(&text)?;
    if !RATE_RANGE.contains(&rate) {
        let expected_form = "a rate such as \"3Mbit/s\", from 1kbit/s to 100Gbit/s";
        return Err(out_of_range_fault(&text, expected_form));
    }
    Ok(BitRate(rate))
}

/// A queue from one full frame (1514 B) to 1 GiB, or from 1 to 1,000,000 packets.
pub(super) fn queue(node: &Node) -> Result<QueueLimit, Fault> {
    let text = text(node, "256KiB")?;
    if let Some(number) = text.trim().strip_suffix("packets") {
        let packets = number.trim().parse().ok();
        let packets = packets.filter(|packets| QUEUE_PACKETS_RANGE.contains(packets));
        let expected_form = "a number of packets such as \"100 packets\", from 1 to 1000000";
        return packets
            .map(QueueLimit::Packets)
            .ok_or_else(|| out_of_range_fault(&text, expected_form));
    }
    let bytes = parse_size(&text)?;
    if !QUEUE_BYTES_RANGE.contains(&bytes) {
        let expected_form = "a size such as \"256KiB\", from 1514B (one full frame) to 1GiB";
        return Err(out_of_range_fault(&text, expected_form));
    }
    Ok(QueueLimit::Bytes(ByteSize(bytes)))
}

/// Times of CoDel: from 10 us, about the accuracy of an engine, to 60 s.
pub(super) fn codel_time(node: &Node) -> Result<Span, Fault> {
    let text = text(node, "5ms")?;
    let span = parse_delay(&text)?;
    if span < Span::from_micros(10) {
        return Err(out_of_range_fault(
            &text,
            "a time such as \"5ms\", from 10us to 60s",
        ));
    }
    Ok(span)
}

/// An MTU from 576 to 1500 bytes.
pub(super) fn mtu(node: &Node) -> Result<u32, Fault> {
    let bytes = u32::from_node(node)?;
    if MTU_RANGE.contains(&bytes) {
        return Ok(bytes);
    }
    let expected_form =
        "the longest packet without its Ethernet header such as 1400, from 576 to 1500";
    Err(out_of_range_fault(&bytes.to_string(), expected_form))
}

/// A share from 0 % to 100 %, exact to 10^-9.
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

/// `none`, `uniform 2ms`, `normal 2ms`, `pareto 2ms` or `trace FILE`, which `read_trace` reads.
pub(super) fn jitter(
    node: &Node,
    read_trace: &impl Fn(&str) -> Result<Arc<Trace>, Fault>,
) -> Result<Jitter, Fault> {
    let text = text(node, "uniform 2ms")?;
    let (kind, argument) = match text.trim().split_once(char::is_whitespace) {
        Some((kind, argument)) => (kind, argument.trim()),
        None => (text.trim(), ""),
    };
    match (kind, argument) {
        ("none", "") => Ok(Jitter::None),
        ("uniform", time) if !time.is_empty() => parse_delay(time).map(Jitter::Uniform),
        ("normal", time) if !time.is_empty() => parse_delay(time).map(Jitter::Normal),
        ("pareto", time) if !time.is_empty() => parse_delay(time).map(Jitter::Pareto),
        ("trace", file) if !file.is_empty() => read_trace(file).map(Jitter::Trace),
        _ => Err(Fault::new(
            format!("\"{text}\" is no jitter"),
            "write \"none\", \"uniform 2ms\" (at most 2 ms more or less), \"normal 2ms\" \
             (standard deviation 2 ms), \"pareto 2ms\" (2 ms longer in the mean) or \
             \"trace delays.csv\"",
        )),
    }
}

/// The text of `node`; other values lack their quotes or unit.
fn text(node: &Node, example: &str) -> Result<String, Fault> {
    String::from_node(node).map_err(|fault| {
        let remedy = format!("write a text in quotes such as \"{example}\"");
        Fault::new(fault.message, remedy)
    })
}

fn out_of_range_fault(text: &str, expected_form: &str) -> Fault {
    Fault::new(
        format!("\"{text}\" is out of range"),
        format!("write {expected_form}"),
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

    fn parse_jitter(text: &str) -> Result<Jitter, Fault> {
        jitter(&node(text), &|file| Err(Fault::new(file, "no trace here")))
    }

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!(delay(&node("0.1ms")), Ok(Span::from_micros(100)));
        assert_eq!(delay(&node("20 ms")), Ok(Span::from_millis(20)));
        assert_eq!(rate(&node("3Mbit/s")), Ok(BitRate(3_000_000)));
        let bytes = QueueLimit::Bytes(ByteSize(262_144));
        assert_eq!(queue(&node("256KiB")), Ok(bytes));
        let packets = QueueLimit::Packets(100);
        assert_eq!(queue(&node("100 packets")), Ok(packets));
        assert_eq!(share(&node("0.1%")), Ok(Share::from_billionths(1_000_000)));
        assert_eq!(
            share(&node("100%")),
            Ok(Share::from_billionths(1_000_000_000))
        );
        let two_millis = Span::from_millis(2);
        assert_eq!(parse_jitter("normal 2ms"), Ok(Jitter::Normal(two_millis)));
        assert_eq!(parse_jitter("pareto  2 ms"), Ok(Jitter::Pareto(two_millis)));
        assert_eq!(parse_jitter("none"), Ok(Jitter::None));
    }

    #[test]
    fn invalid_quantities_are_refused_with_a_remedy() {
        for (outcome, part) in [
            (delay(&node("4")), "the unit is missing"),
            (delay(&node("-4ms")), "does not begin with a number"),
            (delay(&node("61s")), "out of range"),
        ] {
            let fault = outcome.expect_err("wrong");
            assert!(fault.message.contains(part), "{fault:?}");
            assert!(fault.remedy.contains("ms\""), "{fault:?}");
        }
        assert!(rate(&node("0Mbit/s")).is_err() && queue(&node("10B")).is_err());
        assert!(queue(&node("0 packets")).is_err() && queue(&node("x packets")).is_err());
        assert!(share(&node("101%")).is_err() && parse_jitter("weibull 1ms").is_err());
        assert!(parse_jitter("pareto").is_err() && parse_jitter("none 1ms").is_err());
        assert_eq!(
            parse_jitter("trace a.csv b").expect_err("none").message,
            "a.csv b"
        );
        assert!(mtu(&node("1400")).is_err());
    }
}
