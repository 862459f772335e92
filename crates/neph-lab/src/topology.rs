//! What a lab is made of: sites and the links between them, as meaning.
//!
//! Owns the nouns and their invariants: names are unique and fit the kernel, links join two
//! different sites that exist, every site reaches every other, switches form no ring. [`read`]
//! turns TOML into them.

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
pub use reroute::{Reroute, Rerouted};
pub use service::{Ready, ReadyCheck, Service};
pub use traffic::Traffic;

/// What an Ethernet carries unless somebody says otherwise, without its header.
const ETHERNET_MTU: u32 = 1500;

/// Sites and links, and what runs there. Always connected, never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Sites, then routers, then switches; each in the order of the file.
    pub sites: Vec<Site>,
    /// In the order of the file; generated ones behind the others.
    pub links: Vec<Link>,
    /// How routes are chosen.
    pub routing: Routing,
    /// What runs at the sites, in the order of the file: so they are started.
    pub services: Vec<Service>,
    /// Overlays and boxes in the path.
    pub fixtures: Vec<Fixture>,
    /// Transfers that load the links, at their time after the lab's cue.
    pub traffic: Vec<Traffic>,
    /// What changes at which router when, where [`Routing::Ecmp`] holds.
    pub reroutes: Vec<Reroute>,
}

/// How routes are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// The path with the least delay, over however many sites.
    #[default]
    Fastest,
    /// A site that is linked directly is reached over that link, whatever the way round would
    /// take; all others as by [`Self::Fastest`]. So a measured mesh keeps its circuits.
    Direct,
    /// The paths with the fewest links, all of them: the kernel of each node chooses by a hash over
    /// addresses, protocol and ports.
    Ecmp,
}

/// What a node of the topology is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// A place where measurements start or end; it forwards if it has several links.
    #[default]
    Site,
    /// Forwards packets, always.
    Router,
    /// A bridge: whatever is linked to it are neighbours of each other. Has no address.
    Switch,
}

/// A place where measurements start or end, or a router or switch between such.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Lower-case letters, digits and hyphens; at most 24.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The index of the site that it runs inside, as a container or pod does; none for a place of
    /// its own. A pod has no links: an overlay gives it its interface.
    pub inside: Option<usize>,
    /// Its IPv4 address; `0.0.0.0/32` at a switch, which has none. Routes lead to the address
    /// itself, whatever the prefix.
    pub v4: Prefix<Ipv4Addr>,
    /// Its IPv6 address, where it has one.
    pub v6: Option<Prefix<Ipv6Addr>>,
    /// What the site stands for: provider, region, access.
    pub labels: BTreeMap<String, String>,
    /// Settings below `net.` inside the site's namespace, by dotted name.
    pub sysctls: BTreeMap<String, String>,
    /// The TCP congestion control of everything the site sends; the machine's default if absent.
    pub congestion_control: Option<String>,
    /// The CPUs that everything started here may use, numbered from 0; all if empty.
    pub cpus: Vec<u16>,
    /// The most that everything started here may take together, as a share of one CPU.
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
        let own = u32::from(self.bits.min(32));
        u32::MAX.checked_shl(32 - own).unwrap_or(0)
    }
}

impl Prefix<Ipv6Addr> {
    /// The bits of the network part.
    pub(crate) fn mask(self) -> u128 {
        let own = u32::from(self.bits.min(128));
        u128::MAX.checked_shl(128 - own).unwrap_or(0)
    }
}

/// A connection of two sites.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Also the name of the interface at both sites, so at most 15 bytes.
    pub name: String,
    /// Index of one end in [`Topology::sites`].
    pub a: usize,
    /// Index of the other end.
    pub b: usize,
    /// How it is carried, a name from the table of link kinds; whatever fits this kernel if none.
    pub kind: Option<&'static str>,
    /// What happens to packets from `a` to `b`.
    pub a_to_b: Shape,
    /// What happens to packets from `b` to `a`.
    pub b_to_a: Shape,
    /// What changes when, counted from the lab's cue; of two that hold at once, the later wins.
    pub schedule: Vec<Change>,
}

impl Link {
    /// The longest packet that its interfaces take, without Ethernet header: that of the wider
    /// direction; none where neither says.
    pub(crate) fn interface_mtu(&self) -> Option<u32> {
        let printed = [self.a_to_b.mtu, self.b_to_a.mtu];
        let widest = printed
            .map(|mtu| mtu.unwrap_or(ETHERNET_MTU))
            .into_iter()
            .max();
        widest.filter(|_| printed.iter().any(Option::is_some))
    }
}

/// A hasher that can be written to.
struct Hashing(DefaultHasher);

impl fmt::Write for Hashing {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl Topology {
    /// Reads a topology file (`version = 1`).
    ///
    /// # Errors
    /// Every mistake in the file, with its place; in the order of their places.
    pub fn parse(source: &Source) -> Result<Self, Vec<Problem>> {
        read::file(source)
    }

    /// The far end of `link` seen from the site with index `from`, and which end (0 for `a`) that
    /// is; none when the link does not touch the site.
    pub(crate) fn far_end(link: &Link, from: usize) -> Option<(usize, u8)> {
        match from {
            _ if link.a == from => Some((link.b, 1)),
            _ if link.b == from => Some((link.a, 0)),
            _ => None,
        }
    }

    /// A number that tells this topology from another; only for the same version of neph.
    pub(crate) fn fingerprint(&self) -> String {
        // Written into the hasher bit by bit: traces have a million entries, on every link of a mesh.
        let mut hashing = Hashing(DefaultHasher::new());
        let written = write!(hashing, "{self:?}");
        debug_assert!(written.is_ok(), "a hasher takes everything");
        format!("{:016x}", hashing.0.finish())
    }

    /// The guests, whether their kernels are their own or this machine's.
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
