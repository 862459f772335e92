//! Hosts as they are typed: names, international names, addresses with and without a zone.
//!
//! Owns their one form inside of neph. Resolves nothing.

use std::net::{IpAddr, Ipv6Addr};

/// The kind of an address of many hosts, as text; `None` for any other address.
pub fn of_many_hosts(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) if v4.is_broadcast() => Some("the broadcast address of a network"),
        any if any.is_multicast() => Some("a multicast address"),
        _ => None,
    }
}

/// A host as targets write it: an IPv6 address, with its zone if it has one, in brackets.
pub fn bracketed(host: &str) -> String {
    if bare(host).parse::<Ipv6Addr>().is_ok() {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// An address without its zone; any other host unchanged.
pub fn bare(host: &str) -> &str {
    host.split('%').next().unwrap_or(host)
}

/// A host for resolvers and headers: an international name in its ASCII form (IDNA, UTS 46), an
/// address in its canonical form, with a zone after one `%`. `None` if the text is no host.
pub fn ascii_host(host: &str) -> Option<String> {
    let (address, zone) = match host.split_once('%') {
        Some((address, zone)) => (address, Some(zone.strip_prefix("25").unwrap_or(zone))),
        None => (host, None),
    };
    match (address.parse::<IpAddr>(), zone) {
        (Ok(address), None) => return Some(address.to_string()),
        (Ok(IpAddr::V6(address)), Some(zone)) if is_zone(zone) => {
            return Some(format!("{address}%{zone}"));
        }
        (_, Some(_)) => return None,
        (Err(_), None) => {}
    }
    let ascii = if host.is_ascii() {
        host.to_owned()
    } else {
        idna::domain_to_ascii(host).ok()?
    };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let fits = (1..=253).contains(&ascii.len()) && ascii.bytes().all(is_allowed);
    fits.then_some(ascii)
}

/// An interface's name or index.
fn is_zone(zone: &str) -> bool {
    (1..=15).contains(&zone.len())
        && zone
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'%' | b'[' | b']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_host_have_one_canonical_form() {
        for (typed, form) in [
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("localhost", "localhost"),
            ("192.0.2.1", "192.0.2.1"),
            ("2001:DB8:0:0::1", "2001:db8::1"),
            ("fe80::1%eth0", "fe80::1%eth0"),
            ("fe80::1%25eth0", "fe80::1%eth0"),
        ] {
            assert_eq!(ascii_host(typed).as_deref(), Some(form), "{typed}");
        }
        for none in [
            "",
            "a b",
            "a/b",
            "fe80::1%",
            "h%eth0",
            "fe80::1%a/b",
            "user@h",
        ] {
            assert_eq!(ascii_host(none), None, "{none}");
        }
        assert_eq!(bracketed("fe80::1%eth0"), "[fe80::1%eth0]");
        assert_eq!(bracketed("h"), "h");
    }
}
