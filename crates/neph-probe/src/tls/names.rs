//! The names of a self-signed certificate: those by which clients reach the reflector.
//!
//! Owns the choice of names. A client checks the name that it connects to, so a certificate for 0.0.0.0 or
//! [::] is valid for no client. Every client sees the certificate: it has the host's name and other addresses
//! only with `--tls-name`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

const LOCALHOST: &str = "localhost";

/// The names by which a reflector that listens here is reached, and those of `extra_names`.
pub(super) fn certificate_names(listen_address: SocketAddr, extra_names: &[String]) -> Vec<String> {
    let mut names = extra_names.to_vec();
    let mut put = |name: String| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    let address = listen_address.ip();
    if address.is_unspecified() {
        put(LOCALHOST.to_owned());
        put(Ipv4Addr::LOCALHOST.to_string());
        if address.is_ipv6() {
            put(Ipv6Addr::LOCALHOST.to_string());
        }
    } else {
        if address.is_loopback() {
            put(LOCALHOST.to_owned());
        }
        put(address.to_string());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_of_a_wildcard_listener_names_no_address() {
        for listen_address in ["0.0.0.0:1", "[::]:1"] {
            let names = certificate_names(
                listen_address.parse().expect("an address"),
                &["me.example".to_owned()],
            );
            let mut expected = vec!["me.example", LOCALHOST, "127.0.0.1"];
            expected.extend(listen_address.starts_with('[').then_some("::1"));
            assert_eq!(names, expected);
        }
        let v4 = certificate_names("0.0.0.0:1".parse().expect("an address"), &[]);
        assert!(!v4.iter().any(|name| name.contains(':')), "{v4:?}");
    }

    #[test]
    fn the_certificate_of_a_listener_names_its_address() {
        let at = |text: &str| certificate_names(text.parse().expect("an address"), &[]);
        assert_eq!(at("192.0.2.7:1"), ["192.0.2.7"]);
        assert_eq!(at("[::1]:1"), [LOCALHOST, "::1"]);
    }
}
