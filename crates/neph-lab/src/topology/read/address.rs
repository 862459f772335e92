//! Addresses: as written, and allotted in the file's order to nodes that were given none.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use neph_text::{Fault, Fields, FromNode, Node};

use crate::topology::Prefix;

/// The networks that addresses are allotted from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Networks {
    pub(super) v4: Prefix<Ipv4Addr>,
    pub(super) v6: Option<Prefix<Ipv6Addr>>,
}

/// Where the file names no network.
const DEFAULT_NETWORK: Prefix<Ipv4Addr> = Prefix {
    address: Ipv4Addr::new(10, 78, 0, 0),
    bits: 16,
};

/// The keys `network` and `network_v6` at the top of the file.
pub(super) fn networks(fields: &mut Fields<'_>) -> Networks {
    let v4 = fields.optional_with("network", network);
    let v6 = fields.optional_with("network_v6", |node| {
        let network_v6 = v6(node)?;
        let address = Ipv6Addr::from_bits(network_v6.address.to_bits() & network_v6.mask());
        check_network(network_v6, address, 120)
    });
    Networks {
        v4: v4.map_or(DEFAULT_NETWORK, |v4| v4.value),
        v6: v6.map(|v6| v6.value),
    }
}

/// An IPv4 network that sites get addresses in, written `"10.30.0.0/24"`.
pub(crate) fn network(node: &Node) -> Result<Prefix<Ipv4Addr>, Fault> {
    let network_prefix = v4(node)?;
    let address = Ipv4Addr::from_bits(network_prefix.address.to_bits() & network_prefix.mask());
    check_network(network_prefix, address, 30)
}

/// A network of at most this many bits, that has room for nodes, given by its own address.
fn check_network<A: Copy + PartialEq + std::fmt::Display>(
    network: Prefix<A>,
    address: A,
    max_bits: u8,
) -> Result<Prefix<A>, Fault> {
    let bits = network.bits;
    if bits > max_bits {
        let message = format!("a network of {bits} bits has no room for sites");
        return Err(Fault::new(message, format!("write at most /{max_bits}")));
    }
    if address != network.address {
        let message = format!(
            "{}/{bits} is not the network's own address",
            network.address
        );
        return Err(Fault::new(message, format!("write \"{address}/{bits}\"")));
    }
    Ok(Prefix { address, bits })
}

impl Networks {
    /// The first IPv4 address that is free; none when the network is used up.
    pub(super) fn next_v4(&self, used: &mut BTreeSet<Ipv4Addr>) -> Option<Prefix<Ipv4Addr>> {
        let (base, bits) = (self.v4.address.to_bits(), self.v4.bits);
        // The last is the network's broadcast address.
        let last = base | !self.v4.mask();
        let free = (base + 1..last)
            .map(Ipv4Addr::from_bits)
            .find(|address| !used.contains(address))?;
        used.insert(free);
        Some(Prefix {
            address: free,
            bits,
        })
    }

    /// The first IPv6 address that is free, where there is a network to take it from.
    pub(super) fn next_v6(&self, used: &mut BTreeSet<Ipv6Addr>) -> Option<Prefix<Ipv6Addr>> {
        let network = self.v6?;
        let (base, bits) = (network.address.to_bits(), network.bits);
        let free = (base + 1..=base | !network.mask())
            .map(Ipv6Addr::from_bits)
            .find(|address| !used.contains(address))?;
        used.insert(free);
        Some(Prefix {
            address: free,
            bits,
        })
    }
}

/// An IPv4 address with or without the length of its network.
pub(super) fn v4(node: &Node) -> Result<Prefix<Ipv4Addr>, Fault> {
    prefix(node, 32, "\"10.0.0.1/24\"")
}

/// An IPv6 address with or without the length of its network.
pub(super) fn v6(node: &Node) -> Result<Prefix<Ipv6Addr>, Fault> {
    prefix(node, 128, "\"fd00::1/64\"")
}

fn prefix<A: FromStr>(node: &Node, bits: u8, example: &str) -> Result<Prefix<A>, Fault> {
    let text = String::from_node(node)?;
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address.parse(), length.parse().ok()),
        None => (text.parse(), Some(bits)),
    };
    match address.ok().zip(length.filter(|length| *length <= bits)) {
        Some((address, bits)) => Ok(Prefix { address, bits }),
        None => Err(Fault::new(
            format!("\"{text}\" is no address"),
            format!("write for example {example}"),
        )),
    }
}
