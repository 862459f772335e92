//! Which packets are meant, and how another program is given the same choice: neph on another host, or
//! tcpdump.

use std::net::IpAddr;

use neph_model::{CaptureOrder, CaptureProtocol};
use neph_wire::filter::{Protocol, Wanted};

use crate::ListenError;

/// Which packets are meant; all of them where every list is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketChoice {
    /// Packets from or to one of these addresses.
    pub hosts: Vec<IpAddr>,
    /// Packets from or to one of these ports of TCP or UDP.
    pub ports: Vec<u16>,
    /// Packets of one of these protocols.
    pub protocols: Vec<CaptureProtocol>,
}

/// The name of a protocol on the command line.
const fn word(protocol: CaptureProtocol) -> &'static str {
    match protocol {
        CaptureProtocol::Tcp => "tcp",
        CaptureProtocol::Udp => "udp",
        CaptureProtocol::Icmp => "icmp",
    }
}

/// As tcpdump has it, where ICMP of IPv6 is another.
const fn expression_of(protocol: CaptureProtocol) -> &'static str {
    match protocol {
        CaptureProtocol::Icmp => "icmp or icmp6",
        other => word(other),
    }
}

/// A protocol as the kernel's filter has it.
const fn filtered(protocol: CaptureProtocol) -> Protocol {
    match protocol {
        CaptureProtocol::Tcp => Protocol::Tcp,
        CaptureProtocol::Udp => Protocol::Udp,
        CaptureProtocol::Icmp => Protocol::Icmp,
    }
}

impl PacketChoice {
    /// That some packet can be meant.
    ///
    /// # Errors
    /// A port of ICMP is asked for.
    pub fn check(&self) -> Result<(), ListenError> {
        let is_icmp = |protocol: &CaptureProtocol| *protocol == CaptureProtocol::Icmp;
        let is_icmp_alone = !self.protocols.is_empty() && self.protocols.iter().all(is_icmp);
        if !self.ports.is_empty() && is_icmp_alone {
            return Err(ListenError::wrong(
                "--proto icmp has no ports; leave out --port, or add --proto tcp or udp",
            ));
        }
        Ok(())
    }

    /// Which packets the kernel is to hand over.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            hosts: self.hosts.clone(),
            ports: self.ports.clone(),
            protocols: self.protocols.iter().copied().map(filtered).collect(),
        }
    }

    /// The choice of an order.
    pub fn of(order: &CaptureOrder) -> Self {
        Self {
            hosts: order.hosts.clone(),
            ports: order.ports.clone(),
            protocols: order.protocols.clone(),
        }
    }

    /// The order for a capture, with what is meant.
    pub fn order(&self, order: CaptureOrder) -> CaptureOrder {
        CaptureOrder {
            hosts: self.hosts.clone(),
            ports: self.ports.clone(),
            protocols: self.protocols.clone(),
            ..order
        }
    }

    /// The options as they are written.
    pub fn options(&self) -> Vec<String> {
        let hosts = self.hosts.iter().map(|host| format!("--host {host}"));
        let ports = self.ports.iter().map(|port| format!("--port {port}"));
        let protocols = self.protocols.iter();
        let protocols = protocols.map(|protocol| format!("--proto {}", word(*protocol)));
        hosts.chain(ports).chain(protocols).collect()
    }

    /// The same for tcpdump, which does not look behind VLAN tags; empty where all are meant.
    pub fn expression(&self) -> String {
        let hosts = self.hosts.iter().map(|host| format!("host {host}"));
        let ports = self.ports.iter().map(|port| format!("port {port}"));
        let protocols = self.protocols.iter();
        let protocols = protocols.map(|protocol| expression_of(*protocol).to_owned());
        let any = |of: Vec<String>| (!of.is_empty()).then(|| format!("({})", of.join(" or ")));
        let all = [hosts.collect(), ports.collect(), protocols.collect()];
        let all: Vec<String> = all.into_iter().filter_map(any).collect();
        all.join(" and ")
    }
}
