//! A segment as bytes on the wire, in Ethernet, VLAN or VXLAN, IPv4 or IPv6.
//!
//! Written from the RFCs (791, 8200, 9293, 7323, 2018, 7348), not with what reads them. Checksums are
//! left 0, as captures of hosts with offload have them.

use super::end::Segment;
use super::random::Random;

/// What a frame wraps its packet in.
#[derive(Clone, Copy, PartialEq)]
enum Encapsulation {
    Plain,
    Vlan,
    Vxlan,
}

pub(super) struct Addresses {
    hosts: [u32; 2],
    ports: [u16; 2],
    is_v6: bool,
    encapsulation: Encapsulation,
    /// Bytes of each frame that are kept.
    snap_bytes: usize,
}

impl Addresses {
    pub(super) fn draw(number: u32, random: &mut Random, is_clean: bool) -> Self {
        let is_drawn = |random: &mut Random, one_in| random.below(one_in) == 0;
        let encapsulation = match random.below(8) {
            0 if !is_clean => Encapsulation::Vlan,
            1 if !is_clean => Encapsulation::Vxlan,
            _ => Encapsulation::Plain,
        };
        Self {
            // 60,000 client ports on each of the client's addresses.
            hosts: [0x0a00_0002 + number / 60_000, 0xc633_6402],
            ports: [u16::try_from(1025 + number % 60_000).expect("a port"), 443],
            is_v6: !is_clean && is_drawn(random, 5),
            encapsulation,
            snap_bytes: if is_drawn(random, 3) && encapsulation != Encapsulation::Vxlan {
                128
            } else {
                65_535
            },
        }
    }
}

/// The bytes that were captured, and how many there were on the wire. Payload is kept up to 200 bytes:
/// nobody reads it.
pub(super) fn frame(
    addresses: &Addresses,
    from: usize,
    segment: &Segment,
    iss: [u32; 2],
) -> (Vec<u8>, usize) {
    let head = tcp(addresses, from, segment, iss);
    let carried_bytes = head.len() + segment.length as usize;
    let mut bytes = headers_below_tcp(addresses, from, carried_bytes);
    bytes.extend(head);
    let length = bytes.len() + segment.length as usize;
    let captured_length = length.min(addresses.snap_bytes).min(bytes.len() + 200);
    bytes.resize(captured_length, 0);
    (bytes, length)
}

fn headers_below_tcp(addresses: &Addresses, from: usize, carried_bytes: usize) -> Vec<u8> {
    let ethertype: u16 = if addresses.is_v6 { 0x86dd } else { 0x0800 };
    let inner = if addresses.is_v6 { 40 } else { 20 };
    let mut bytes = Vec::new();
    match addresses.encapsulation {
        Encapsulation::Plain => bytes.extend(ethernet()),
        Encapsulation::Vlan => {
            bytes.extend(ethernet());
            bytes.extend([0x81, 0x00, 0x00, 0x2a]);
        }
        Encapsulation::Vxlan => {
            let datagram = 8 + 8 + 14 + inner + carried_bytes;
            bytes.extend(ethernet());
            bytes.extend([0x08, 0x00]);
            let hosts = addresses.hosts.map(|host| host ^ 0x00ff_0000);
            bytes.extend(v4(hosts, from, 17, datagram));
            bytes.extend([0xd0, 0x01, 0x12, 0xb5]);
            bytes.extend(u16::try_from(datagram).expect("fits").to_be_bytes());
            bytes.extend([0, 0, 8, 0, 0, 0, 0, 0, 7, 0]);
            bytes.extend(ethernet());
        }
    }
    bytes.extend(ethertype.to_be_bytes());
    if addresses.is_v6 {
        bytes.extend(v6(addresses.hosts, from, carried_bytes));
    } else {
        bytes.extend(v4(addresses.hosts, from, 6, carried_bytes));
    }
    bytes
}

fn ethernet() -> [u8; 12] {
    [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]
}

fn v4(hosts: [u32; 2], from: usize, protocol: u8, carried_bytes: usize) -> Vec<u8> {
    let total = u16::try_from(20 + carried_bytes)
        .expect("fits")
        .to_be_bytes();
    let mut bytes = vec![
        0x45, 0, total[0], total[1], 0, 0, 0x40, 0, 64, protocol, 0, 0,
    ];
    bytes.extend(hosts[from].to_be_bytes());
    bytes.extend(hosts[1 - from].to_be_bytes());
    bytes
}

fn v6(hosts: [u32; 2], from: usize, carried_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend(u16::try_from(carried_bytes).expect("fits").to_be_bytes());
    bytes.extend([6, 64]);
    for host in [hosts[from], hosts[1 - from]] {
        bytes.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(host.to_be_bytes());
    }
    bytes
}

fn tcp(addresses: &Addresses, from: usize, segment: &Segment, iss: [u32; 2]) -> Vec<u8> {
    let options = options(segment, iss[1 - from]);
    let wrap = |first: u32, position: u64| {
        let low = u32::try_from(position & 0xffff_ffff).expect("32 bits");
        first.wrapping_add(low)
    };
    let ack = segment.ack.map_or(0, |ack| wrap(iss[1 - from], ack));
    let offset = u8::try_from((20 + options.len()) / 4).expect("small") << 4;
    let mut bytes = Vec::new();
    bytes.extend(addresses.ports[from].to_be_bytes());
    bytes.extend(addresses.ports[1 - from].to_be_bytes());
    bytes.extend(wrap(iss[from], segment.position).to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    bytes.extend([offset, segment.flags()]);
    bytes.extend(segment.window.to_be_bytes());
    bytes.extend([0, 0, 0, 0]);
    bytes.extend(options);
    bytes
}

fn options(segment: &Segment, peer: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    if segment.syn {
        bytes.extend([2, 4, 5, 0xa8, 4, 2, 3, 3, 7, 1]);
    }
    if let Some((value, echo)) = segment.stamps {
        bytes.extend([1, 1, 8, 10]);
        bytes.extend(value.to_be_bytes());
        bytes.extend(echo.to_be_bytes());
    }
    let blocks = &segment.sack[..segment.sack.len().min(3)];
    if !blocks.is_empty() {
        bytes.extend([1, 1, 5, u8::try_from(2 + 8 * blocks.len()).expect("small")]);
        for edge in blocks.iter().flat_map(|(from, to)| [from, to]) {
            let low = u32::try_from(edge & 0xffff_ffff).expect("32 bits");
            bytes.extend(peer.wrapping_add(low).to_be_bytes());
        }
    }
    while bytes.len() % 4 != 0 {
        bytes.push(1);
    }
    bytes
}
