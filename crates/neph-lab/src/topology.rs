//! The topology of a lab: sites and the links between them, as values.
//!
//! Owns the types and their invariants. Names are unique and fit the kernel, links connect two different
//! existing sites, every site reaches every other, switches form no ring. [`read`] parses TOML.

mod command;
pub(crate) mod fixture;
pub(crate) mod quantity;
mod read;
pub(crate) mod reroute;
pub(crate) mod service;
pub(crate) mod traffic;

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use neph_text::{Problem, Source};

use crate::gate::{Change, Shape, Share};
use crate::guest::Guest;
pub use command::Command;
pub use fixture::Fixture;
pub(crate) use read::network;
pub use reroute::{Reroute, RerouteAction};
pub use service::{Ready, ReadyCheck, Service};
pub use traffic::Traffic;

/// The default MTU of Ethernet, without its header.
const ETHERNET_MTU: u32 = 1500;

/// Sites, links, and their programs. Always connected, never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Sites, then routers, then switches; each in the order of the file.
    pub sites: Vec<Site>,
    /// In the order of the file; generated links come last.
    pub links: Vec<Link>,
    /// How routes are chosen.
    pub routing: Routing,
    /// Programs at the sites, in the order of the file, which is that of starting.
    pub services: Vec<Service>,
    /// Overlays, balancers and guests.
    pub fixtures: Vec<Fixture>,
    /// Background traffic, scheduled after the lab's cue.
    pub traffic: Vec<Traffic>,
    /// Scheduled route changes at routers, with [`Routing::Ecmp`].
    pub reroutes: Vec<Reroute>,
}

/// How routes are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// The path with the least delay, over any number of sites.
    #[default]
    Fastest,
    /// A directly linked site is reached over that link, even if another path is faster; all others as with
    /// [`Self::Fastest`]. So a measured mesh keeps its circuits.
    Direct,
    /// All paths with the fewest links: the kernel of each node chooses by a hash over addresses, protocol
    /// and ports.
    Ecmp,
}

/// The role of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// A place where measurements start or end; it forwards packets if it has several links.
    #[default]
    Site,
    /// Always forwards packets.
    Router,
    /// A bridge: all nodes linked to it are neighbours. Has no address.
    Switch,
}

/// A place where measurements start or end, or a router or switch between such places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Lower-case letters, digits and hyphens; at most 24.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// The index of the site that it runs inside, like a container or pod; `None` for an independent site. A
    /// pod has no links: an overlay creates its interface.
    pub inside: Option<usize>,
    /// Its IPv4 address; `0.0.0.0/32` at a switch, which has none. Routes lead to the address itself,
    /// independent of the prefix.
    pub v4: Prefix<Ipv4Addr>,
    /// Its IPv6 address, if it has one.
    pub v6: Option<Prefix<Ipv6Addr>>,
    /// Labels of the site: provider, region, access.
    pub labels: BTreeMap<String, String>,
    /// Settings below `net.` inside the site's namespace, by dotted name.
    pub sysctls: BTreeMap<String, String>,
    /// The TCP congestion control of all sent data; `None`: the default of the host.
    pub congestion_control: Option<String>,
    /// The CPUs for everything that runs at the site, numbered from 0; empty: all.
    pub cpus: Vec<u16>,
    /// Maximum CPU time of everything that runs at the site, as a share of one CPU.
    pub cpu_share: Option<Share>,
}

impl Site {
    /// Its addresses, IPv4 first; none at a switch.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let v4 = (self.role != Role::Switch).then(|| self.v4.address.into());
        v4.into_iter().chain(self.v6.map(|v6| v6.address.into()))
    }

    /// Whether it is a switch.
    pub fn is_switch(&self) -> bool {
        self.role == Role::Switch
    }
}

/// An address and the length of its network's prefix in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix<A> {
    /// The site's own address.
    pub address: A,
    /// Bits of the network part.
    pub bits: u8,
}

impl Prefix<Ipv4Addr> {
    /// Whether `address` lies in this network.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        (self.address.to_bits() ^ address.to_bits()) & self.mask() == 0
    }

    /// The bits of the network part.
    pub(crate) fn mask(self) -> u32 {
        let prefix_bits = u32::from(self.bits.min(32));
        u32::MAX.checked_shl(32 - prefix_bits).unwrap_or(0)
    }
}

impl Prefix<Ipv6Addr> {
    /// The bits of the network part.
    pub(crate) fn mask(self) -> u128 {
        let prefix_bits = u32::from(self.bits.min(128));
        u128::MAX.checked_shl(128 - prefix_bits).unwrap_or(0)
    }
}

/// A link between two sites.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Also the name of the interface at both sites, so at most 15 bytes.
    pub name: String,
    /// Index of one end in [`Topology::sites`].
    pub a: usize,
    /// Index of the other end.
    pub b: usize,
    /// The name of its kind from the table of link kinds; `None`: the first that fits this kernel.
    pub kind: Option<&'static str>,
    /// The effects on packets from `a` to `b`.
    pub a_to_b: Shape,
    /// The effects on packets from `b` to `a`.
    pub b_to_a: Shape,
    /// Scheduled changes, relative to the lab's cue; of two active ones the later entry wins.
    pub schedule: Vec<Change>,
}

impl Link {
    /// The MTU of its interfaces, without Ethernet header: that of the larger direction; `None` if neither
    /// has one.
    pub(crate) fn interface_mtu(&self) -> Option<u32> {
        let mtus = [self.a_to_b.mtu, self.b_to_a.mtu];
        let largest_mtu = mtus
            .map(|mtu| mtu.unwrap_or(ETHERNET_MTU))
            .into_iter()
            .max();
        largest_mtu.filter(|_| mtus.iter().any(Option::is_some))
    }
}

/// A hasher that implements `Write`.
struct FingerprintHasher(DefaultHasher);

impl fmt::Write for FingerprintHasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl Topology {
    /// Reads a topology file (`version = 1`).
    ///
    /// # Errors
    /// Every fault in the file, in the order of their places.
    pub fn parse(source: &Source) -> Result<Self, Vec<Problem>> {
        read::read_file(source)
    }

    /// The other end of `link` from the site with index `from`, with its number (0 for `a`); `None` if the
    /// link is not at the site.
    pub(crate) fn far_end(link: &Link, from: usize) -> Option<(usize, u8)> {
        match from {
            _ if link.a == from => Some((link.b, 1)),
            _ if link.b == from => Some((link.a, 0)),
            _ => None,
        }
    }

    /// A fingerprint of the topology, for the same version of neph only.
    pub(crate) fn fingerprint(&self) -> String {
        // Written into the hasher piece by piece: traces have a million entries, on every link of a mesh.
        let mut hasher = FingerprintHasher(DefaultHasher::new());
        let written = write!(hasher, "{self:?}");
        debug_assert!(written.is_ok(), "a hasher takes everything");
        format!("{:016x}", hasher.0.finish())
    }

    /// The guests, with a kernel of their own or that of this host.
    pub fn guests(&self) -> Vec<Guest> {
        let fixtures = self.fixtures.iter();
        fixtures
            .flat_map(|fixture| fixture.build.guests())
            .collect()
    }

    /// Whether the site called `name` is a guest.
    pub fn is_guest(&self, name: &str) -> bool {
        let guests = self.guests();
        let site = self.site_index(name);
        guests.iter().any(|guest| Some(guest.site) == site)
    }

    /// The index of the site called `name`.
    pub fn site_index(&self, name: &str) -> Option<usize> {
        self.sites.iter().position(|site| site.name == name)
    }
}
