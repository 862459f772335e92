//! What a lab is made of: sites and the links between them, as meaning.
//!
//! Owns the nouns and their invariants: names are unique and fit the kernel, links join two
//! different sites that exist, every site reaches every other. [`read`] turns TOML into them.

mod quantity;
mod read;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use neph_text::{Problem, Source};

use crate::gate::{Change, Shape};

/// Sites and links. Always connected, never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// In the order of the file.
    pub sites: Vec<Site>,
    /// In the order of the file.
    pub links: Vec<Link>,
}

/// A place where measurements start or end, or a router between such.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Lower-case letters, digits and hyphens; at most 24.
    pub name: String,
    /// Its IPv4 address. Routes lead to the address itself, whatever the prefix.
    pub v4: Prefix<Ipv4Addr>,
    /// Its IPv6 address, where it has one.
    pub v6: Option<Prefix<Ipv6Addr>>,
    /// What the site stands for: provider, region, access.
    pub labels: BTreeMap<String, String>,
    /// Settings below `net.` inside the site's namespace, by dotted name.
    pub sysctls: BTreeMap<String, String>,
    /// The TCP congestion control of everything the site sends; the machine's default if absent.
    pub congestion_control: Option<String>,
}

impl Site {
    /// Its addresses, IPv4 first.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        std::iter::once(self.v4.address.into()).chain(self.v6.map(|v6| v6.address.into()))
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

impl Topology {
    /// Reads a topology file (`version = 1`).
    ///
    /// # Errors
    /// Every mistake in the file, with its place; in the order of their places.
    pub fn parse(source: &Source) -> Result<Self, Vec<Problem>> {
        read::file(source)
    }

    /// The index of the site called `name`.
    pub fn site_index(&self, name: &str) -> Option<usize> {
        self.sites.iter().position(|site| site.name == name)
    }
}
