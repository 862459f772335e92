//! Addresses that a NAT changed, by rule: an address at one capture point is another at the other points.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

/// A rule for one capture point: its address `outer` is `inner` at all other points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    outer: AddressPrefix,
    inner: AddressPrefix,
}

/// A prefix of addresses, with one port or with all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AddressPrefix {
    address: IpAddr,
    /// Length of the prefix, in bits.
    bits: u8,
    port: Option<u16>,
}

/// Why a text is no mapping.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MappingError {
    /// One side is missing.
    #[error(
        "write the address at the point, '=', and the address at the other points: 198.51.100.7:80=10.0.0.2:8080"
    )]
    MissingSide,
    /// One side is no address.
    #[error("'{0}' is no address; write 10.0.0.2, 10.0.0.2:80, [fd00::2]:80 or 10.0.0.0/24")]
    Address(String),
    /// The two sides do not have the same form.
    #[error(
        "'{0}' and '{1}' differ in form; both are of one IP version and as long, with a port or without"
    )]
    DifferentForms(String, String),
}

impl Mapping {
    /// The address at the other points. Unchanged if the rule does not match.
    #[must_use]
    pub fn apply(&self, observed: SocketAddr) -> SocketAddr {
        let is_matching_port = self.outer.port.is_none_or(|port| port == observed.port());
        let Some(ip) =
            replace_prefix(observed.ip(), self.outer, self.inner).filter(|_| is_matching_port)
        else {
            return observed;
        };
        SocketAddr::new(ip, self.inner.port.unwrap_or_else(|| observed.port()))
    }
}

/// The address with its prefix replaced. `None` if its prefix is not that of `from`.
fn replace_prefix(ip: IpAddr, from: AddressPrefix, to: AddressPrefix) -> Option<IpAddr> {
    match (ip, from.address, to.address) {
        (IpAddr::V4(ip), IpAddr::V4(from_ip), IpAddr::V4(to_ip)) => {
            let host_mask = u32::MAX.checked_shr(from.bits.into()).unwrap_or(0);
            let (ip, from_ip) = (ip.to_bits(), from_ip.to_bits());
            let new = to_ip.to_bits() & !host_mask | ip & host_mask;
            ((ip ^ from_ip) & !host_mask == 0).then(|| IpAddr::V4(new.into()))
        }
        (IpAddr::V6(ip), IpAddr::V6(from_ip), IpAddr::V6(to_ip)) => {
            let host_mask = u128::MAX.checked_shr(from.bits.into()).unwrap_or(0);
            let (ip, from_ip) = (ip.to_bits(), from_ip.to_bits());
            let new = to_ip.to_bits() & !host_mask | ip & host_mask;
            ((ip ^ from_ip) & !host_mask == 0).then(|| IpAddr::V6(new.into()))
        }
        _ => None,
    }
}

impl FromStr for Mapping {
    type Err = MappingError;

    fn from_str(text: &str) -> Result<Self, MappingError> {
        let (outer_text, inner_text) = text.split_once('=').ok_or(MappingError::MissingSide)?;
        let (outer, inner) = (parse_prefix(outer_text)?, parse_prefix(inner_text)?);
        let has_same_form = outer.address.is_ipv4() == inner.address.is_ipv4()
            && outer.bits == inner.bits
            && outer.port.is_some() == inner.port.is_some();
        if !has_same_form {
            return Err(MappingError::DifferentForms(
                outer_text.to_owned(),
                inner_text.to_owned(),
            ));
        }
        Ok(Self { outer, inner })
    }
}

fn parse_prefix(text: &str) -> Result<AddressPrefix, MappingError> {
    let refused = || MappingError::Address(text.to_owned());
    let full_bits = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    if let Ok(socket_address) = text.parse::<SocketAddr>() {
        return Ok(AddressPrefix {
            address: socket_address.ip(),
            bits: full_bits(socket_address.ip()),
            port: Some(socket_address.port()),
        });
    }
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| refused())?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| refused())?;
    let bits = bits.unwrap_or_else(|| full_bits(address));
    if bits > full_bits(address) {
        return Err(refused());
    }
    Ok(AddressPrefix {
        address,
        bits,
        port: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map_address(rule: &str, observed: &str) -> String {
        let rule: Mapping = rule.parse().expect("a rule");
        rule.apply(observed.parse().expect("an address"))
            .to_string()
    }

    #[test]
    fn an_address_mapping_changes_only_matching_addresses() {
        let port_rule = "198.51.100.7:80=10.0.0.2:8080";
        assert_eq!(map_address(port_rule, "198.51.100.7:80"), "10.0.0.2:8080");
        assert_eq!(map_address(port_rule, "198.51.100.7:81"), "198.51.100.7:81");
        let network_rule = "198.51.100.0/24=10.0.9.0/24";
        assert_eq!(map_address(network_rule, "198.51.100.7:80"), "10.0.9.7:80");
        assert_eq!(
            map_address(network_rule, "198.51.101.7:80"),
            "198.51.101.7:80"
        );
        assert_eq!(map_address("0.0.0.0/0=0.0.0.0/0", "1.2.3.4:5"), "1.2.3.4:5");
        let ipv6_rule = "2001:db8::/32=fd00::/32";
        assert_eq!(map_address(ipv6_rule, "[2001:db8::7]:80"), "[fd00::7]:80");
        assert_eq!(map_address(ipv6_rule, "10.0.0.1:80"), "10.0.0.1:80");
    }

    #[test]
    fn invalid_address_mappings_are_refused_with_the_reason() {
        for (text, reason) in [
            ("10.0.0.1", "'='"),
            ("10.0.0.1=host", "'host' is no address"),
            ("10.0.0.0/33=10.0.0.0/33", "no address"),
            ("10.0.0.1:80=10.0.0.2", "differ in form"),
            ("10.0.0.1=fd00::1", "differ in form"),
        ] {
            let error = text.parse::<Mapping>().expect_err("refused").to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
