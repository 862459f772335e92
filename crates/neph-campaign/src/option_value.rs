//! Values as they are typed behind options, on the command line and in a plan's flags of a reflector.

use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};

use neph_model::{BitRate, ByteSize, Span};
use neph_text::{Fault, parse_duration, parse_rate, parse_size};

/// The least memory with which a reflector answers messages of the usual size.
const MIN_MEMORY: ByteSize = ByteSize(4 << 20);

/// `25ms`, `1s`, `2min`; a bare number is seconds, as in ping.
///
/// # Errors
/// What it should be instead.
pub fn span(text: &str) -> Result<Span, String> {
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
///
/// # Errors
/// What it should be instead.
pub fn positive_span(text: &str) -> Result<Span, String> {
    match span(text)? {
        Span::ZERO => Err("a time above zero is needed".to_owned()),
        span => Ok(span),
    }
}

/// `64`, `10KiB`, `100kB`; a bare number is bytes.
///
/// # Errors
/// What it should be instead.
pub fn size(text: &str) -> Result<ByteSize, String> {
    if let Ok(bytes) = text.parse() {
        return Ok(ByteSize(bytes));
    }
    parse_size(text)
        .map(ByteSize)
        .map_err(|fault| sentence(&fault))
}

/// The memory of a reflector.
///
/// # Errors
/// What it should be instead.
pub fn memory_size(text: &str) -> Result<ByteSize, String> {
    let size = size(text)?;
    if size < MIN_MEMORY {
        return Err(format!("the minimum is {}", MIN_MEMORY.exact()));
    }
    Ok(size)
}

/// `3Mbit/s`
///
/// # Errors
/// What it should be instead.
pub fn rate(text: &str) -> Result<BitRate, String> {
    parse_rate(text)
        .map(BitRate)
        .map_err(|fault| sentence(&fault))
}

/// Where to listen: an address of this host, and a port.
///
/// # Errors
/// What it should be instead.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let remedy = "write an address of this host and a port: 127.0.0.1:8080, [::1]:8080, [::]:8080 \
                  for all of its addresses, or 0.0.0.0:8080 for all of IPv4";
    let parse_with_zone = || {
        let (host, port) = text.strip_prefix('[')?.split_once("]:")?;
        // An address with a zone, and no name: no server is asked.
        let (ip, _) = host.split_once('%')?;
        let _: Ipv6Addr = ip.parse().ok()?;
        let host = neph_model::ascii_host(host)?;
        // The resolver knows interfaces by their names.
        let addresses = (host.as_str(), port.parse::<u16>().ok()?).to_socket_addrs();
        addresses.ok()?.next()
    };
    let address: Option<SocketAddr> = text.parse().ok().or_else(parse_with_zone);
    address.ok_or_else(|| remedy.to_owned())
}

/// A name or an address that a certificate can be valid for.
///
/// # Errors
/// What it should be instead.
pub fn certificate_name(text: &str) -> Result<String, String> {
    neph_model::ascii_host(text)
        .filter(|name| !name.contains('%'))
        .ok_or_else(|| "write a host name or an address: probe.example.com, 192.0.2.7".to_owned())
}

fn sentence(fault: &Fault) -> String {
    format!("{}; {}", fault.message, fault.remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listen_address_needs_a_port_and_a_wrong_one_is_reported_with_a_remedy() {
        assert_eq!(listen_address("[::1]:80").map(|at| at.port()), Ok(80));
        let zone = |text: &str| match listen_address(text) {
            Ok(SocketAddr::V6(address)) => Some(address.scope_id()),
            _ => None,
        };
        assert_eq!(zone("[::1]:80"), Some(0));
        assert_eq!(zone("[fe80::1%lo]:80"), Some(1));
        for invalid in [
            "nonsense",
            "8080",
            "127.0.0.1",
            "localhost:80",
            "[localhost]:80",
            "[a%lo]:80",
        ] {
            assert!(
                listen_address(invalid).is_err_and(|message| message.contains("127.0.0.1:8080"))
            );
        }
    }

    #[test]
    fn bare_numbers_have_the_units_of_ping() {
        assert_eq!(span("0.2"), Ok(Span::from_millis(200)));
        assert_eq!(span("25ms"), Ok(Span::from_millis(25)));
        assert_eq!(size("100"), Ok(ByteSize(100)));
        assert_eq!(size("10KiB"), Ok(ByteSize(10_240)));
        assert!(span("-1").is_err() && span("nan").is_err() && positive_span("0").is_err());
    }
}
