//! Which network a peer's address is in. A host that has one IPv6 address usually has all of its /64, and
//! a site has a /56.
//!
//! Owns the prefixes only; what a network may take is in [`super::budget`] and [`super::connection_slots`].

use std::net::{IpAddr, Ipv6Addr};

/// A peer's address and the networks around it, widest first. An IPv4 address is a network of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Networks(pub(crate) [IpAddr; 3]);

impl Networks {
    /// Of this address: its /56, its /64, itself.
    pub(crate) fn of(address: IpAddr) -> Self {
        Self([site(address), host(address), address])
    }
}

/// Whom a budget belongs to: an IPv4 address, or the /64 of an IPv6 address.
pub(crate) fn host(address: IpAddr) -> IpAddr {
    prefix(address, 64)
}

/// The site of an address: the /56 of an IPv6 address, an IPv4 address itself.
pub(crate) fn site(address: IpAddr) -> IpAddr {
    prefix(address, 56)
}

fn prefix(address: IpAddr, bits: u32) -> IpAddr {
    // An address of IPv4 in the form of IPv6 is one of IPv4.
    match address.to_canonical() {
        v4 @ IpAddr::V4(_) => v4,
        IpAddr::V6(address) => {
            let mask = u128::MAX << (128 - bits);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_peers_are_grouped_by_56_and_64_and_ipv4_by_address() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert_eq!(
            Networks::of(ip("2001:db8:1:2fff::9")).0,
            [
                ip("2001:db8:1:2f00::"),
                ip("2001:db8:1:2fff::"),
                ip("2001:db8:1:2fff::9")
            ]
        );
        assert_eq!(host(ip("::ffff:192.0.2.7")), ip("192.0.2.7"));
        assert_eq!(Networks::of(ip("192.0.2.7")).0, [ip("192.0.2.7"); 3]);
        assert_eq!(host(ip("2001:db8::1")), host(ip("2001:db8::ffff:1")));
    }
}
