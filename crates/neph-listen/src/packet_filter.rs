//! Which packets are captured, and the same filter as options of neph on another host, or as a
//! tcpdump expression.

use std::net::IpAddr;

use neph_model::{CaptureOrder, CaptureProtocol};
use neph_wire::filter::{Protocol, Wanted};

use crate::ListenError;

/// Which packets are captured: all, if every list is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketFilter {
    /// Source or destination address.
    pub hosts: Vec<IpAddr>,
    /// Source or destination port of TCP or UDP.
    pub ports: Vec<u16>,
    /// Protocol.
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

/// The tcpdump expression, where ICMP of IPv6 is another protocol.
const fn expression_of(protocol: CaptureProtocol) -> &'static str {
    match protocol {
        CaptureProtocol::Icmp => "icmp or icmp6",
        other => word(other),
    }
}

/// The protocol in the kernel's filter.
const fn filtered(protocol: CaptureProtocol) -> Protocol {
    match protocol {
        CaptureProtocol::Tcp => Protocol::Tcp,
        CaptureProtocol::Udp => Protocol::Udp,
        CaptureProtocol::Icmp => Protocol::Icmp,
    }
}

impl PacketFilter {
    /// Checks that a packet can match.
    ///
    /// # Errors
    /// Ports are combined with ICMP only.
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

    /// The filter for the kernel.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            hosts: self.hosts.clone(),
            ports: self.ports.clone(),
            protocols: self.protocols.iter().copied().map(filtered).collect(),
        }
    }

    /// The filter of an order.
    pub fn of(order: &CaptureOrder) -> Self {
        Self {
            hosts: order.hosts.clone(),
            ports: order.ports.clone(),
            protocols: order.protocols.clone(),
        }
    }

    /// Adds this filter to an order.
    pub fn order(&self, order: CaptureOrder) -> CaptureOrder {
        CaptureOrder {
            hosts: self.hosts.clone(),
            ports: self.ports.clone(),
            protocols: self.protocols.clone(),
            ..order
        }
    }

    /// The filter as command line options.
    pub fn options(&self) -> Vec<String> {
        let hosts = self.hosts.iter().map(|host| format!("--host {host}"));
        let ports = self.ports.iter().map(|port| format!("--port {port}"));
        let protocols = self.protocols.iter();
        let protocols = protocols.map(|protocol| format!("--proto {}", word(*protocol)));
        hosts.chain(ports).chain(protocols).collect()
    }

    /// The filter for tcpdump, which does not match inside VLAN tags; empty for all packets.
    pub fn expression(&self) -> String {
        let hosts = self.hosts.iter().map(|host| format!("host {host}"));
        let ports = self.ports.iter().map(|port| format!("port {port}"));
        let protocols = self.protocols.iter();
        let protocols = protocols.map(|protocol| expression_of(*protocol).to_owned());
        let any = |of: Vec<String>| (!of.is_empty()).then(|| format!("({})", of.join(" or ")));
        let conditions = [hosts.collect(), ports.collect(), protocols.collect()];
        let conditions: Vec<String> = conditions.into_iter().filter_map(any).collect();
        conditions.join(" and ")
    }
}
