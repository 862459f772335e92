//! Which packets a packet socket receives, as a classic BPF program for the kernel.
//!
//! Owns the match of hosts, ports and protocols, and the program. Does not own sockets.
//! The outermost IP packet is matched, after up to three VLAN tags and one more that the kernel has
//! removed: a program has no loops.

mod build;

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use crate::ip::{ICMP, ICMPV6, TCP, UDP};
use build::{Builder, Label, Load, Operation, Test};

/// Maximum number of VLAN tags before the IP header.
const TAGS: u32 = 3;
/// Maximum number of IPv6 extension headers, as in `ip`, and one step for the end.
const EXTENSIONS: u32 = 9;
/// Scratch memory for the protocol, and for whether this is a fragment without transport header.
const PROTOCOL: u32 = 0;
const FRAGMENT: u32 = 1;

/// An instruction of classic BPF (Documentation/networking/filter.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// The opcode.
    pub code: u16,
    /// Instructions to skip if a comparison is true.
    pub jt: u8,
    /// Instructions to skip if it is false.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

/// The first header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// An Ethernet header.
    Ethernet,
    /// An IP header.
    Ip,
}

/// The protocol of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP of either version.
    Icmp,
}

/// The selected packets: those that match each list that is not empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Source or destination address.
    pub hosts: Vec<IpAddr>,
    /// Source or destination port of TCP or UDP; a fragment without ports does not match.
    pub ports: Vec<u16>,
    /// Protocol.
    pub protocols: Vec<Protocol>,
}

impl Wanted {
    /// Whether every packet is selected, IP or not.
    pub const fn matches_all_packets(&self) -> bool {
        self.hosts.is_empty() && self.ports.is_empty() && self.protocols.is_empty()
    }

    /// The program that accepts the first `kept` bytes of selected packets, and rejects others.
    pub fn program(&self, start: Start, snaplen: u32) -> Vec<Instruction> {
        let mut builder = Builder::default();
        if self.matches_all_packets() {
            builder.give(snaplen);
            return builder.finish();
        }
        let [ip, v4, v6, transport, accept, reject] = builder.labels();
        match start {
            Start::Ethernet => skip_ethernet(&mut builder, ip, reject),
            Start::Ip => builder.index(0),
        }
        // The index is the start of the IP header.
        builder.define(ip);
        builder.load(Load::Byte, 0);
        builder.calculate(Operation::ShiftRight, 4);
        builder.jump(Test::Equal, 4, v4);
        builder.jump(Test::Equal, 6, v6);
        builder.go(reject);
        builder.define(v4);
        self.version_4(&mut builder, transport, reject);
        builder.define(v6);
        self.version_6(&mut builder, transport, reject);
        builder.define(transport);
        self.match_transport(&mut builder, accept, reject);
        builder.define(reject);
        builder.give(0);
        builder.define(accept);
        builder.give(snaplen);
        builder.finish()
    }

    fn version_4(&self, builder: &mut Builder, transport: Label, reject: Label) {
        let [known] = builder.labels();
        for host in &self.hosts {
            if let IpAddr::V4(host) = host {
                for at in [12, 16] {
                    builder.load(Load::Word, at);
                    builder.jump(Test::Equal, host.to_bits(), known);
                }
            }
        }
        builder.go(if self.hosts.is_empty() { known } else { reject });
        builder.define(known);
        builder.load(Load::Byte, 9);
        builder.remember(PROTOCOL);
        builder.load(Load::Half, 6);
        builder.calculate(Operation::And, 0x1fff);
        builder.remember(FRAGMENT);
        builder.load(Load::Byte, 0);
        builder.calculate(Operation::And, 0x0f);
        builder.calculate(Operation::ShiftLeft, 2);
        builder.move_index();
        builder.go(transport);
    }

    fn version_6(&self, builder: &mut Builder, transport: Label, reject: Label) {
        let [known] = builder.labels();
        for host in &self.hosts {
            if let IpAddr::V6(host) = host {
                for at in [8, 24] {
                    let [other] = builder.labels();
                    for (word, octets) in (0..).zip(host.octets().chunks(4)) {
                        let bits = octets
                            .iter()
                            .fold(0, |bits, octet| bits << 8 | u32::from(*octet));
                        builder.load(Load::Word, at + 4 * word);
                        builder.jump(Test::Differs, bits, other);
                    }
                    builder.go(known);
                    builder.define(other);
                }
            }
        }
        builder.go(if self.hosts.is_empty() { known } else { reject });
        builder.define(known);
        builder.constant(0);
        builder.remember(FRAGMENT);
        builder.load(Load::Byte, 6);
        builder.remember(PROTOCOL);
        builder.constant(40);
        builder.move_index();
        skip_extensions(builder, transport, reject);
    }

    /// Matches protocols and ports; the index is at the transport header.
    fn match_transport(&self, builder: &mut Builder, accept: Label, reject: Label) {
        let [known, with_ports] = builder.labels();
        builder.recall(PROTOCOL);
        for number in self
            .protocols
            .iter()
            .flat_map(|protocol| protocol.numbers())
        {
            builder.jump(Test::Equal, u32::from(*number), known);
        }
        builder.go(if self.protocols.is_empty() {
            known
        } else {
            reject
        });
        builder.define(known);
        if self.ports.is_empty() {
            return builder.go(accept);
        }
        for protocol in [TCP, UDP] {
            builder.jump(Test::Equal, protocol.into(), with_ports);
        }
        builder.go(reject);
        builder.define(with_ports);
        builder.recall(FRAGMENT);
        builder.jump(Test::Differs, 0, reject);
        for at in [0, 2] {
            builder.load(Load::Half, at);
            for port in &self.ports {
                builder.jump(Test::Equal, (*port).into(), accept);
            }
        }
    }
}

impl Protocol {
    const fn numbers(self) -> &'static [u8] {
        match self {
            Self::Tcp => &[TCP],
            Self::Udp => &[UDP],
            Self::Icmp => &[ICMP, ICMPV6],
        }
    }
}

/// Jumps to `ip` with the index after the Ethernet header and its tags.
fn skip_ethernet(builder: &mut Builder, ip: Label, reject: Label) {
    builder.index(0);
    for _ in 0..=TAGS {
        let [found, tagged] = builder.labels();
        builder.load(Load::Half, 12);
        for kind in [0x0800, 0x86dd] {
            builder.jump(Test::Equal, kind, found);
        }
        for kind in [0x8100, 0x88a8, 0x9100] {
            builder.jump(Test::Equal, kind, tagged);
        }
        builder.go(reject);
        builder.define(found);
        builder.constant(14);
        builder.move_index();
        builder.go(ip);
        builder.define(tagged);
        builder.constant(4);
        builder.move_index();
    }
    builder.go(reject);
}

/// Jumps to `transport` with the index after the extension headers.
fn skip_extensions(builder: &mut Builder, transport: Label, reject: Label) {
    for _ in 0..EXTENSIONS {
        let [options, authentication, fragment, next] = builder.labels();
        builder.recall(PROTOCOL);
        for kind in [0, 43, 60] {
            builder.jump(Test::Equal, kind, options);
        }
        builder.jump(Test::Equal, 51, authentication);
        builder.jump(Test::Equal, 44, fragment);
        builder.go(transport);
        // Options: units of 8 bytes, plus 1. Authentication header: units of 4 bytes, plus 2.
        for (label, more, shift) in [(options, 1, 3), (authentication, 2, 2)] {
            builder.define(label);
            builder.load(Load::Byte, 0);
            builder.remember(PROTOCOL);
            builder.load(Load::Byte, 1);
            builder.calculate(Operation::Add, more);
            builder.calculate(Operation::ShiftLeft, shift);
            builder.move_index();
            builder.go(next);
        }
        builder.define(fragment);
        builder.load(Load::Byte, 0);
        builder.remember(PROTOCOL);
        builder.load(Load::Half, 2);
        builder.calculate(Operation::And, 0xfff8);
        builder.remember(FRAGMENT);
        builder.constant(8);
        builder.move_index();
        builder.recall(FRAGMENT);
        // Only the first fragment contains further headers.
        builder.jump(Test::Differs, 0, transport);
        builder.define(next);
    }
    builder.go(reject);
}
