//! The names of a self-signed certificate: those by which clients reach the reflector.
//!
//! Owns which names these are. A client checks the name that it connects to, so a certificate for
//! 0.0.0.0 or [::] is valid for no client.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use neph_sys::addresses;

/// Addresses of one certificate at most: each makes the handshake longer by some 10 bytes, and a
/// host of containers has thousands.
const MAX_ADDRESSES: usize = 64;
const LOCALHOST: &str = "localhost";

/// The names by which a reflector that listens here is reached, and those of `more`.
pub(super) fn names(listening: SocketAddr, more: &[String]) -> Vec<String> {
    let mut names = more.to_vec();
    let mut put = |name: String| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    let address = listening.ip();
    if address.is_unspecified() {
        put(LOCALHOST.to_owned());
        host_name().into_iter().for_each(&mut put);
        let addresses = of_interfaces(address);
        addresses.for_each(|address| put(address.to_string()));
    } else {
        if address.is_loopback() {
            put(LOCALHOST.to_owned());
        }
        put(address.to_string());
    }
    names
}

/// Addresses of this host that `listening` stands for: those of IPv4 for 0.0.0.0, all for [::].
fn of_interfaces(listening: IpAddr) -> impl Iterator<Item = IpAddr> {
    // Without the list there are still loopback, and what --tls-name gives.
    let found = addresses::local()
        .unwrap_or_else(|_| vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    let fits = move |address: &IpAddr| listening.is_ipv6() || address.is_ipv4();
    found.into_iter().filter(fits).take(MAX_ADDRESSES)
}

/// This host's name, if it is one that a certificate can have.
fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim().trim_end_matches('.').to_ascii_lowercase();
    let is_name = rustls_pki_types::DnsName::try_from(name.as_str()).is_ok();
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reflector_at_all_addresses_has_no_name_that_no_client_uses() {
        for listening in ["0.0.0.0:1", "[::]:1"] {
            let names = names(
                listening.parse().expect("an address"),
                &["me.example".to_owned()],
            );
            assert_eq!(names[..2], ["me.example", LOCALHOST]);
            assert!(names.iter().any(|name| name == "127.0.0.1"), "{names:?}");
            assert!(!names.iter().any(|name| name == "0.0.0.0" || name == "::"));
        }
        let v4 = names("0.0.0.0:1".parse().expect("an address"), &[]);
        assert!(!v4.iter().any(|name| name.contains(':')), "{v4:?}");
    }

    #[test]
    fn a_reflector_at_one_address_has_that_name() {
        let at = |text: &str| names(text.parse().expect("an address"), &[]);
        assert_eq!(at("192.0.2.7:1"), ["192.0.2.7"]);
        assert_eq!(at("[::1]:1"), [LOCALHOST, "::1"]);
    }
}
