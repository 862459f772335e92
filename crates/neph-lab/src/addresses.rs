//! Which site of a lab has an address, by its topology.

use std::net::{IpAddr, SocketAddr};

use neph_text::Fault;

use crate::topology::{Role, Site, Topology};

/// Number of sites in a message, at most.
const MAX_EXAMPLES: usize = 3;

/// The mistake that no site has this address: a lab has no routes to other networks. `None` where a
/// service may have it: its addresses are not known.
#[must_use]
pub fn unknown_address_fault(ip: IpAddr, topology: &Topology) -> Option<Fault> {
    if ip.is_loopback() || !topology.services.is_empty() {
        return None;
    }
    let example_addresses = |is_like: &dyn Fn(&IpAddr) -> bool| -> Vec<String> {
        let sites = topology.sites.iter().filter(|site| site.role == Role::Site);
        let sites_with_address = sites.filter_map(|site| {
            Some(format!(
                "{} ({})",
                site.addresses().find(is_like)?,
                site.name
            ))
        });
        sites_with_address.take(MAX_EXAMPLES).collect()
    };
    let same_version = example_addresses(&|address| address.is_ipv4() == ip.is_ipv4());
    let examples = if same_version.is_empty() {
        example_addresses(&|_| true)
    } else {
        same_version
    };
    let message = format!("no site of the lab has the address {ip}");
    Some(Fault::new(
        message,
        format!("write for example {}", examples.join(" or ")),
    ))
}

/// The site with this address, and its place among them.
#[must_use]
pub fn site_at(topology: &Topology, address: IpAddr) -> Option<(usize, &Site)> {
    let mut sites = topology.sites.iter().enumerate();
    sites.find(|(_, site)| site.addresses().any(|site_address| site_address == address))
}

/// Whether a socket at `listening` receives what is sent to `destination`; `[::]` receives IPv4 too.
#[must_use]
pub fn accepts(listening: SocketAddr, destination: SocketAddr) -> bool {
    let is_same_ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => destination.is_ipv4(),
        IpAddr::V6(ip) if ip.is_unspecified() => true,
        ip => ip == destination.ip(),
    };
    is_same_ip && listening.port() == destination.port()
}
