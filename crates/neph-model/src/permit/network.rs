//! A network as a policy names it, and which of them an address is in.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address and the length of its prefix: `10.0.0.0/8`, `2001:db8::/32`, `192.0.2.7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// 0 to 32, or to 128.
    prefix: u8,
}

/// A text that is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseNetworkError {
    /// Neither an address nor one with a prefix.
    #[error("'{0}' is no network")]
    Text(String),
    /// The address has bits beyond its prefix.
    #[error("'{given}' has bits beyond its prefix; the network is {masked}")]
    HostBitsSet {
        /// What was given.
        given: String,
        /// The network that it lies in.
        masked: Network,
    },
}

impl Network {
    /// Whether the address lies in it. An IPv4 address that is written as IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, plain(address)) {
            (IpAddr::V4(network_address), IpAddr::V4(other)) => {
                masked_v4(network_address, self.prefix) == masked_v4(other, self.prefix)
            }
            (IpAddr::V6(address), IpAddr::V6(other)) => {
                masked_v6(address, self.prefix) == masked_v6(other, self.prefix)
            }
            _ => false,
        }
    }
}

/// The address that packets go to. An IPv4 address can be written as IPv6 (RFC 4291, 2.5.5.2), or
/// NAT64 leads to it (RFC 6052, 2.1). "Any address" leads to this host.
pub(super) fn plain(address: IpAddr) -> IpAddr {
    const TRANSLATED: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];
    match address {
        IpAddr::V6(v6) if v6.segments()[..6] == TRANSLATED => {
            let [.., a, b, c, d] = v6.octets();
            plain(Ipv4Addr::new(a, b, c, d).into())
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => plain(v4.into()),
            None if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            None => address,
        },
        IpAddr::V4(v4) if v4.octets()[0] == 0 => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V4(_) => address,
    }
}

fn masked_v4(address: Ipv4Addr, prefix: u8) -> u32 {
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
    u32::from(address) & mask
}

fn masked_v6(address: Ipv6Addr, prefix: u8) -> u128 {
    let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
    u128::from(address) & mask
}

impl FromStr for Network {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, ParseNetworkError> {
        let invalid_text = || ParseNetworkError::Text(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (
                address,
                Some(prefix.parse::<u8>().map_err(|_| invalid_text())?),
            ),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| invalid_text())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(longest);
        if prefix > longest {
            return Err(invalid_text());
        }
        if let (IpAddr::V6(v6), 96..) = (address, prefix)
            && let IpAddr::V4(v4) = plain(v6.into())
        {
            // As addresses are compared.
            return format!("{v4}/{}", prefix - 96).parse();
        }
        let base: IpAddr = match address {
            IpAddr::V4(v4) => Ipv4Addr::from(masked_v4(v4, prefix)).into(),
            IpAddr::V6(v6) => Ipv6Addr::from(masked_v6(v6, prefix)).into(),
        };
        let masked = Self {
            address: base,
            prefix,
        };
        if base == address {
            Ok(masked)
        } else {
            Err(ParseNetworkError::HostBitsSet {
                given: text.to_owned(),
                masked,
            })
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn network(text: &str) -> Network {
        text.parse().expect("a network")
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_network_contains_its_addresses_in_every_notation() {
        let private = network("10.0.0.0/8");
        for inside in [
            "10.0.0.0",
            "10.255.255.255",
            "::ffff:10.1.2.3",
            "64:ff9b::a01:203",
        ] {
            assert!(private.contains(ip(inside)), "{inside}");
        }
        for outside in ["9.255.255.255", "11.0.0.0", "::a01:203", "2001:db8::1"] {
            assert!(!private.contains(ip(outside)), "{outside}");
        }
        let loopback = network("127.0.0.0/8");
        assert!(loopback.contains(ip("0.0.0.0")), "it leads to this host");
        assert!(network("::1").contains(ip("::")));
        assert!(network("0.0.0.0/0").contains(ip("203.0.113.9")));
        assert!(network("::/0").contains(ip("2001:db8::1")));
    }

    #[test]
    fn an_ipv4_mapped_network_equals_its_ipv4_network() {
        for same in ["::ffff:10.0.0.0/104", "64:ff9b::a00:0/104"] {
            assert_eq!(network(same), network("10.0.0.0/8"), "{same}");
        }
        assert!(network("::ffff:10.0.0.7").contains(ip("10.0.0.7")));
    }

    #[test]
    fn invalid_networks_are_refused_and_host_bits_are_reported() {
        for invalid in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "10.0.0/8",
            "::/129",
            "a/8",
        ] {
            assert!(
                matches!(invalid.parse::<Network>(), Err(ParseNetworkError::Text(_))),
                "{invalid}"
            );
        }
        let slip = "10.1.0.0/8".parse::<Network>().expect_err("a slip");
        assert_eq!(
            slip.to_string(),
            "'10.1.0.0/8' has bits beyond its prefix; the network is 10.0.0.0/8"
        );
    }

    proptest! {
        #[test]
        fn an_address_is_in_the_network_of_each_prefix_of_its_own(bits: u32, prefix in 0_u8..=32) {
            let address = Ipv4Addr::from(bits | 0x0100_0000);
            let base = Ipv4Addr::from(masked_v4(address, prefix));
            let network = network(&format!("{base}/{prefix}"));
            prop_assert!(network.contains(address.into()));
            prop_assert_eq!(network.to_string().parse(), Ok(network));
            if prefix > 0 {
                let other = Ipv4Addr::from(u32::from(address) ^ (1 << (32 - prefix)));
                prop_assert!(other.octets()[0] == 0 || !network.contains(other.into()));
            }
        }
    }
}
