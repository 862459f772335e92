//! Values as they are typed behind options.

use std::net::{IpAddr, SocketAddr};

use neph_model::{BitRate, ByteSize, Span};
use neph_probe::Secret;
use neph_text::{parse_duration, parse_percent, parse_rate, parse_size};

/// `25ms`, `1s`, `2min`; a bare number is seconds, as in ping.
pub(crate) fn span(text: &str) -> Result<Span, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return seconds_to_span(seconds).ok_or_else(|| format!("'{text}' is no time"));
    }
    parse_duration(text)
        .map(Span::from_nanos)
        .map_err(|fault| sentence(&fault))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked first"
)]
fn seconds_to_span(seconds: f64) -> Option<Span> {
    let nanos = (seconds * 1e9).round();
    (0.0..9e18)
        .contains(&nanos)
        .then(|| Span::from_nanos(nanos as i64))
}

/// A time longer than nothing.
pub(crate) fn positive_span(text: &str) -> Result<Span, String> {
    match span(text)? {
        Span::ZERO => Err("a time above zero is needed".to_owned()),
        span => Ok(span),
    }
}

/// `80%` or `80`: a share from 1 % to 100 %, as a number from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let percent = match text.parse() {
        Ok(percent) => percent,
        Err(_) => parse_percent(text).unwrap_or(f64::NAN),
    };
    if (1.0..=100.0).contains(&percent) {
        return Ok(percent / 100.0);
    }
    Err("write a share from 1% to 100%".to_owned())
}

/// A number of things, one of them at least.
pub(crate) fn at_least_one(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("write a whole number, at least 1".to_owned()),
    }
}

/// Flows at a time: one of them at least.
pub(crate) fn flows(text: &str) -> Result<usize, String> {
    let flows = at_least_one(text)?;
    usize::try_from(flows).map_err(|error| error.to_string())
}

/// Where to listen: an address of this host, and a port.
pub(crate) fn listening(text: &str) -> Result<SocketAddr, String> {
    let remedy = "write an address of this host and a port: 127.0.0.1:8080, [::1]:8080, [::]:8080 \
                  for all of its addresses, or 0.0.0.0:8080 for all of IPv4";
    neph_probe::own_address(text).ok_or_else(|| remedy.to_owned())
}

/// The address of one host, as packets have it: of IPv4 where IPv6 writes one of IPv4 (`::ffff:10.0.0.1`).
pub(crate) fn address(text: &str) -> Result<IpAddr, String> {
    let address: Result<IpAddr, _> = text.parse();
    let parted = |by| text.split_once(by);
    address
        .map(|address| address.to_canonical())
        .map_err(|_| match (parted('/'), parted('%')) {
            (Some((host, length)), _) => {
                format!(
                    "no network is taken; write the address of one host: {host} without /{length}"
                )
            }
            (None, Some((host, zone))) => {
                format!("packets have addresses without an interface; write {host} without %{zone}")
            }
            (None, None) => {
                format!("no name is taken; write its address, as getent hosts {text} tells it")
            }
        })
}

/// A port that packets have.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("write a port from 1 to 65535".to_owned()),
        Ok(port) => Ok(port),
    }
}

/// `64`, `10KiB`, `100kB`; a bare number is bytes.
pub(crate) fn size(text: &str) -> Result<ByteSize, String> {
    if let Ok(bytes) = text.parse() {
        return Ok(ByteSize(bytes));
    }
    parse_size(text)
        .map(ByteSize)
        .map_err(|fault| sentence(&fault))
}

/// `3Mbit/s`
pub(crate) fn rate(text: &str) -> Result<BitRate, String> {
    parse_rate(text)
        .map(BitRate)
        .map_err(|fault| sentence(&fault))
}

/// A name or an address that a certificate can be valid for.
pub(crate) fn certificate_name(text: &str) -> Result<String, String> {
    neph_model::ascii_host(text)
        .filter(|name| !name.contains('%'))
        .ok_or_else(|| "write a host name or an address: probe.example.com, 192.0.2.7".to_owned())
}

/// A secret, which `file:PATH` or `env:NAME` names.
pub(crate) fn secret(source: &str) -> Result<Secret, String> {
    Secret::find(source).map_err(|error| error.to_string())
}

fn sentence(fault: &neph_text::Fault) -> String {
    format!("{}; {}", fault.what, fault.remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_listen_is_an_address_with_a_port_and_what_is_none_is_told_how() {
        assert_eq!(listening("[::1]:80").map(|at| at.port()), Ok(80));
        for wrong in ["nonsense", "8080", "127.0.0.1", "localhost:80"] {
            assert!(listening(wrong).is_err_and(|told| told.contains("127.0.0.1:8080")));
        }
    }

    #[test]
    fn bare_numbers_mean_what_ping_means() {
        assert_eq!(span("0.2"), Ok(Span::from_millis(200)));
        assert_eq!(span("25ms"), Ok(Span::from_millis(25)));
        assert_eq!(size("100"), Ok(ByteSize(100)));
        assert_eq!(size("10KiB"), Ok(ByteSize(10_240)));
        assert!(
            [share("80%"), share("80")]
                .iter()
                .all(|share| *share == Ok(0.8))
        );
        assert!(share("0").is_err() && share("101%").is_err() && share("x").is_err());
        assert!(span("-1").is_err() && span("nan").is_err() && positive_span("0").is_err());
    }
}
