//! The key of a flow: addresses and ports of both ends, VLAN and tunnel.
//!
//! The same addresses in two VLANs or in two tenants' tunnels are two flows. A packet that is captured bare
//! and in its tunnel belongs to one flow each. Directions in different VLANs or tunnels are joined in mirror.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use neph_wire::dissect::{Dissected, Plain, Tunnel};
use neph_wire::ip::TCP;

/// A flow in both directions: the order of its ends does not depend on the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    /// Addresses with the upper half first, the lower end first. IPv4 is mapped into IPv6.
    addresses: [[u64; 2]; 2],
    ports: [u16; 2],
    is_v4: bool,
    protocol: u8,
    vlan: Option<u16>,
    tunnel: Option<Tunnel>,
}

impl Default for Key {
    /// The key of no packet.
    fn default() -> Self {
        Self {
            addresses: [[0; 2]; 2],
            ports: [0; 2],
            is_v4: false,
            protocol: 0,
            vlan: None,
            tunnel: None,
        }
    }
}

/// One of a key's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum KeyEnd {
    Lower,
    Upper,
}

impl KeyEnd {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Lower => Self::Upper,
            Self::Upper => Self::Lower,
        }
    }
}

impl Key {
    /// The key of a packet between these ports, and the end that sent it.
    #[inline]
    pub(super) fn from_packet(
        packet: &Dissected<'_>,
        source_port: u16,
        destination_port: u16,
    ) -> (Self, KeyEnd) {
        let source = (address_halves(packet.ip.source), source_port);
        let destination = (address_halves(packet.ip.destination), destination_port);
        let (sender, lower, upper) = if source <= destination {
            (KeyEnd::Lower, source, destination)
        } else {
            (KeyEnd::Upper, destination, source)
        };
        let key = Self {
            addresses: [lower.0, upper.0],
            ports: [lower.1, upper.1],
            is_v4: packet.ip.source.is_ipv4(),
            protocol: packet.ip.protocol,
            vlan: packet.vlan,
            tunnel: packet.tunnel,
        };
        (key, sender)
    }

    /// The same for a segment that the fast parser read.
    #[inline]
    pub(super) fn from_segment(segment: &Plain) -> (Self, KeyEnd) {
        let end_key = |index: usize| {
            u64::from(segment.addresses[index]) << 16 | u64::from(segment.ports[index])
        };
        let (source, destination) = (end_key(0), end_key(1));
        let sender = if source <= destination {
            KeyEnd::Lower
        } else {
            KeyEnd::Upper
        };
        let (lower, upper) = (source.min(destination), source.max(destination));
        let address = |end: u64| [0, end >> 16 | 0xffff_0000_0000];
        let port = |end: u64| {
            let [.., a, b] = end.to_be_bytes();
            u16::from_be_bytes([a, b])
        };
        let key = Self {
            addresses: [address(lower), address(upper)],
            ports: [lower, upper].map(port),
            is_v4: true,
            protocol: TCP,
            vlan: None,
            tunnel: None,
        };
        (key, sender)
    }

    /// Whether it has a VLAN or a tunnel.
    #[inline]
    pub(super) const fn is_tagged(&self) -> bool {
        self.vlan.is_some() || self.tunnel.is_some()
    }

    /// The same without VLAN and tunnel.
    pub(super) const fn untagged(&self) -> Self {
        Self {
            vlan: None,
            tunnel: None,
            ..*self
        }
    }

    /// Whether it is the key of no packet.
    pub(super) const fn is_vacant(&self) -> bool {
        self.protocol == 0
    }

    pub(super) fn socket_address(&self, end: KeyEnd) -> SocketAddr {
        let index = end as usize;
        SocketAddr::new(self.address(index), self.ports[index])
    }

    /// The likely server, where the opening was not captured: ports of services are low.
    pub(super) fn likely_server(&self) -> Option<KeyEnd> {
        match self.ports[0].cmp(&self.ports[1]) {
            std::cmp::Ordering::Less => Some(KeyEnd::Lower),
            std::cmp::Ordering::Greater => Some(KeyEnd::Upper),
            std::cmp::Ordering::Equal => None,
        }
    }

    pub(super) const fn vlan(&self) -> Option<u16> {
        self.vlan
    }

    pub(super) const fn tunnel(&self) -> Option<Tunnel> {
        self.tunnel
    }

    fn address(&self, index: usize) -> IpAddr {
        let [upper, lower] = self.addresses[index];
        if self.is_v4 {
            let [.., a, b, c, d] = lower.to_be_bytes();
            return Ipv4Addr::new(a, b, c, d).into();
        }
        Ipv6Addr::from_bits(u128::from(upper) << 64 | u128::from(lower)).into()
    }
}

/// Writes as few values as possible: each write costs a multiplication, and each packet has a key.
impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [lower, upper] = self.addresses;
        let ports = u64::from(self.ports[0]) << 16 | u64::from(self.ports[1]);
        let vlan = self.vlan.map_or(0, |vlan| 1 << 16 | u64::from(vlan));
        let ports_and_vlan = vlan << 32 | ports;
        let combine = |first: u64, second: u64| u128::from(first) << 64 | u128::from(second);
        if self.is_v4 {
            state.write_u128(combine(
                lower[1] << 32 | upper[1] & 0xffff_ffff,
                ports_and_vlan,
            ));
        } else {
            state.write_u128(combine(lower[0], lower[1]));
            state.write_u128(combine(upper[0], upper[1]));
            state.write_u64(ports_and_vlan);
        }
        if self.tunnel.is_some() {
            self.tunnel.hash(state);
        }
    }
}

/// Upper and lower half.
#[inline]
fn address_halves(address: IpAddr) -> [u64; 2] {
    match address {
        IpAddr::V4(address) => [0, u64::from(address.to_bits()) | 0xffff_0000_0000],
        IpAddr::V6(address) => {
            let [upper, lower] = *address.octets().as_chunks::<8>().0 else {
                return [0, 0];
            };
            [u64::from_be_bytes(upper), u64::from_be_bytes(lower)]
        }
    }
}
