//! Which site of a lab has an address, by its topology.

use std::net::{IpAddr, SocketAddr};

use neph_text::Fault;

use crate::topology::{Role, Site, Topology};

/// So many sites are named as examples.
const NAMED: usize = 3;

/// The mistake that no site has this address: no way leads out of a lab. None where one may, as what a
/// service brings with it is not known.
#[must_use]
pub fn no_site_has(ip: IpAddr, topology: &Topology) -> Option<Fault> {
    if ip.is_loopback() || !topology.services.is_empty() {
        return None;
    }
    let known = |is_like: &dyn Fn(&IpAddr) -> bool| -> Vec<String> {
        let sites = topology.sites.iter().filter(|site| site.role == Role::Site);
        let sites_with_address = sites.filter_map(|site| {
            Some(format!(
                "{} ({})",
                site.addresses().find(is_like)?,
                site.name
            ))
        });
        sites_with_address.take(NAMED).collect()
    };
    let identical = known(&|address| address.is_ipv4() == ip.is_ipv4());
    let known = if identical.is_empty() {
        known(&|_| true)
    } else {
        identical
    };
    let message = format!("no site of the lab has the address {ip}");
    Some(Fault::new(
        message,
        format!("write for example {}", known.join(" or ")),
    ))
}

/// The site with this address, and its place among them.
#[must_use]
pub fn site_at(topology: &Topology, address: IpAddr) -> Option<(usize, &Site)> {
    let mut sites = topology.sites.iter().enumerate();
    sites.find(|(_, site)| site.addresses().any(|site_address| site_address == address))
}

/// Whether a socket that listens at `at` gets what is sent to `to`; `[::]` gets IPv4 too.
#[must_use]
pub fn accepts(at: SocketAddr, to: SocketAddr) -> bool {
    let same_ip = match at.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => to.is_ipv4(),
        IpAddr::V6(ip) if ip.is_unspecified() => true,
        ip => ip == to.ip(),
    };
    same_ip && at.port() == to.port()
}
