//! Objects on top of sites and links: overlays, balancers, and guests.
//!
//! Owns the interface of their kinds. A kind reads its own table, so that faults have a place, and lists the
//! operations and services that build it. Each kind is one file below [`crate::links`] and one line in a
//! table there; this module knows none of them.

use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;

use neph_text::{Fault, Fields, FromNode, Node, Spanned, did_you_mean};

use super::{Link, Service, Site, Topology};
use crate::guest::Guest;
use crate::plan::Operation;
use crate::tunnel::TunnelConfig;

/// A kind of overlay, balancer or guest.
pub(crate) trait FixtureKind: Sync + Debug {
    /// Its name in a topology (`kind = "..."`).
    fn name(&self) -> &'static str;
    /// Reads its own table; `kind` and `name` are read already, and the caller reports unknown keys. `None`
    /// after a fault.
    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>>;
}

/// An overlay, balancer or guest as a topology describes it.
pub(crate) trait FixtureBuilder: Debug + Send + Sync {
    /// How to build it. Links, addresses and routes of all sites exist by then. Services start after all
    /// operations of all fixtures, before those of the topology.
    fn build(&self, context: &FixtureContext<'_>) -> FixtureParts;
    /// The indices of the pods that it gives an interface.
    fn pods(&self) -> Vec<usize> {
        Vec::new()
    }
    /// Those pods that are guests.
    fn guests(&self) -> Vec<Guest> {
        Vec::new()
    }
    /// Shell lines of its table, for its guests.
    fn lines(&self) -> &[String] {
        &[]
    }
    /// How to check whether this host can build it; `None` if every host can.
    fn trial(&self) -> Option<Trial> {
        None
    }
}

/// A check of this host's abilities, and the fallback.
#[derive(Debug)]
pub(crate) struct Trial {
    /// Programs that must exist.
    pub(crate) programs: Vec<&'static str>,
    /// Programs that must run without other files.
    pub(crate) static_programs: Vec<&'static str>,
    /// A shell line that exits with status 0 if it can be built; else its last line is the reason. It may
    /// create files in its working directory.
    pub(crate) line: String,
    /// The fallback; if there is none, the remedy.
    pub(crate) fallback: Result<Arc<dyn FixtureBuilder>, &'static str>,
}

/// The parts of a fixture.
#[derive(Debug, Default)]
pub(crate) struct FixtureParts {
    /// In order.
    pub(crate) operations: Vec<Operation>,
    /// In order; each is ready before the next is started.
    pub(crate) services: Vec<Service>,
    /// Programs that its services run in addition to the one that each names.
    pub(crate) programs: Vec<&'static str>,
    /// Programs that must run without other files, such as libraries.
    pub(crate) static_programs: Vec<&'static str>,
    /// Control groups that its services create, by their name below every mount: they are removed with the
    /// lab.
    pub(crate) groups: Vec<String>,
    /// Tunnels, run by threads of the lab after the operations.
    pub(crate) tunnels: Vec<TunnelEnd>,
}

impl FixtureParts {
    /// The parts of a fixture that has operations only.
    pub(crate) fn from_operations(operations: Vec<Operation>) -> Self {
        Self {
            operations,
            ..Self::default()
        }
    }
}

/// An end of a tunnel in user space.
#[derive(Clone, Debug)]
pub(crate) struct TunnelEnd {
    /// The index of its site.
    pub(crate) site: usize,
    /// Its configuration.
    pub(crate) config: TunnelConfig,
    /// Operations after it listens: its interface must not be up before.
    pub(crate) operations_after_start: Vec<Operation>,
}

/// Where a fixture is built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixtureContext<'t> {
    /// The fixture's own name.
    pub(crate) name: &'t str,
    /// Its index among the topology's fixtures.
    pub(crate) number: usize,
    /// The network.
    pub(crate) topology: &'t Topology,
    /// The namespace of each site, by its index.
    pub(crate) namespaces: &'t [String],
    /// The lab's folder: [`Operation::file`] writes there, and services find it there.
    pub(crate) folder: &'t Path,
}

impl FixtureContext<'_> {
    /// The name of a service or file of the fixture at a site. Neither part has an underscore, so the name is
    /// unique.
    pub(crate) fn name_at(&self, site: usize) -> String {
        format!("{}_{}", self.name, self.topology.sites[site].name)
    }

    /// A file of the fixture itself: names have no dot, so no service has such a file.
    pub(crate) fn own_file(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.name)
    }
}

/// An overlay, balancer or guest of a topology.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// Its name, unique among the fixtures.
    pub name: String,
    /// Its kind, a name from the tables of kinds.
    pub kind: &'static str,
    pub(crate) build: Arc<dyn FixtureBuilder>,
}

impl PartialEq for Fixture {
    /// Compares `Debug` output, which contains everything of a kind.
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

/// The nodes that a fixture can name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nodes<'s> {
    /// Those that could be read.
    pub(crate) sites: &'s [Site],
    /// The links between them.
    pub(crate) links: &'s [Link],
    /// Whether these are all. If not, an unknown name may be one of the others.
    pub(crate) is_complete: bool,
}

impl Nodes<'_> {
    /// The index of the site or router that `key` names.
    pub(crate) fn site<'f>(self, table: &mut Fields<'f>, key: &'f str) -> Option<usize> {
        let site_name = table.required::<String>(key)?;
        self.resolve_site(&site_name, table)
    }

    /// The index of the site or router with that name.
    pub(crate) fn resolve_site(self, name: &Spanned<String>, table: &Fields<'_>) -> Option<usize> {
        match self.site_index(&name.value) {
            Ok(index) => index,
            Err(fault) => {
                table.problems().add(name.span.clone(), fault);
                None
            }
        }
    }

    /// The index of the site called `name`; `None` if it may be one that could not be read.
    fn site_index(self, name: &str) -> Result<Option<usize>, Fault> {
        let position = self.sites.iter().position(|site| site.name == name);
        match position {
            Some(index) if self.sites[index].is_switch() => {
                let message = format!("'{name}' is a switch");
                Err(Fault::new(message, "name a site or a router"))
            }
            None if self.is_complete => {
                let sites = self.sites.iter();
                let known_names: Vec<&str> = sites.map(|site| site.name.as_str()).collect();
                let message = format!("there is no site '{name}'");
                Err(Fault::new(message, did_you_mean(name, &known_names)))
            }
            position => Ok(position),
        }
    }

    /// An address and a port, written `"site:8080"` or `"10.0.0.2:8080"`.
    pub(crate) fn endpoint(self, node: &Node) -> Result<SocketAddrV4, Fault> {
        let text = String::from_node(node)?;
        let endpoint_fault = || {
            let message = format!("\"{text}\" is no endpoint");
            Fault::new(message, "write a site and a port, such as \"server:8080\"")
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(endpoint_fault)?;
        let port = port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(endpoint_fault)?;
        if let Ok(address) = host.parse::<Ipv4Addr>() {
            return Ok(SocketAddrV4::new(address, port));
        }
        let site = self.site_index(host)?;
        let address = site.map_or(Ipv4Addr::UNSPECIFIED, |site| self.sites[site].v4.address);
        Ok(SocketAddrV4::new(address, port))
    }
}
