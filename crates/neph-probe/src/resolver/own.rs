//! Where to listen: an address of this host with its port, whose zone may be the name of an interface.

use std::net::{SocketAddr, ToSocketAddrs};

/// `127.0.0.1:8080`, `[::1]:8080`, `[fe80::1%eth0]:8080`; no name of a host.
pub fn own_address(text: &str) -> Option<SocketAddr> {
    text.parse().ok().or_else(|| zoned(text))
}

/// The system's resolver knows interfaces by their names.
fn zoned(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.strip_prefix('[')?.split_once("]:")?;
    let is_zoned = host.contains('%');
    let host = neph_model::ascii_host(host).filter(|_| is_zoned)?;
    let mut found = (host.as_str(), port.parse::<u16>().ok()?)
        .to_socket_addrs()
        .ok()?;
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_host_may_have_a_zone_and_is_no_name() {
        let zone = |text: &str| match own_address(text) {
            Some(SocketAddr::V6(address)) => Some(address.scope_id()),
            _ => None,
        };
        assert_eq!(zone("[::1]:80"), Some(0));
        assert_eq!(zone("[fe80::1%lo]:80"), Some(1));
        for wrong in [
            "nonsense",
            "8080",
            "127.0.0.1",
            "localhost:80",
            "[localhost]:80",
        ] {
            assert_eq!(own_address(wrong), None, "{wrong}");
        }
    }
}
