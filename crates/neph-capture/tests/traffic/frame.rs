//! A segment as bytes on the wire, in Ethernet, VLAN or VXLAN, IPv4 or IPv6.
//!
//! Written from the RFCs (791, 8200, 9293, 7323, 2018, 7348), not with what reads them. Checksums are
//! left 0, as captures of hosts with offload have them.

use super::end::Segment;
use super::random::Random;

/// What a frame wraps its packet in.
#[derive(Clone, Copy, PartialEq)]
enum Wrapping {
    Plain,
    Vlan,
    Vxlan,
}

pub(super) struct Addresses {
    hosts: [u32; 2],
    ports: [u16; 2],
    is_v6: bool,
    wrapping: Wrapping,
    /// Bytes of each frame that are kept.
    snap: usize,
}

impl Addresses {
    pub(super) fn draw(number: u32, random: &mut Random, clean: bool) -> Self {
        let odd = |random: &mut Random, one_in| random.below(one_in) == 0;
        let wrapping = match random.below(8) {
            0 if !clean => Wrapping::Vlan,
            1 if !clean => Wrapping::Vxlan,
            _ => Wrapping::Plain,
        };
        Self {
            // 60,000 client ports on each of the client's addresses.
            hosts: [0x0a00_0002 + number / 60_000, 0xc633_6402],
            ports: [u16::try_from(1025 + number % 60_000).expect("a port"), 443],
            is_v6: !clean && odd(random, 5),
            wrapping,
            snap: if odd(random, 3) && wrapping != Wrapping::Vxlan {
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
    let carried = head.len() + segment.length as usize;
    let mut bytes = wrapped(addresses, from, carried);
    bytes.extend(head);
    let length = bytes.len() + segment.length as usize;
    let captured_length = length.min(addresses.snap).min(bytes.len() + 200);
    bytes.resize(captured_length, 0);
    (bytes, length)
}

fn wrapped(addresses: &Addresses, from: usize, carried: usize) -> Vec<u8> {
    let ethertype: u16 = if addresses.is_v6 { 0x86dd } else { 0x0800 };
    let inner = if addresses.is_v6 { 40 } else { 20 };
    let mut bytes = Vec::new();
    match addresses.wrapping {
        Wrapping::Plain => bytes.extend(ethernet()),
        Wrapping::Vlan => {
            bytes.extend(ethernet());
            bytes.extend([0x81, 0x00, 0x00, 0x2a]);
        }
        Wrapping::Vxlan => {
            let datagram = 8 + 8 + 14 + inner + carried;
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
        bytes.extend(v6(addresses.hosts, from, carried));
    } else {
        bytes.extend(v4(addresses.hosts, from, 6, carried));
    }
    bytes
}

fn ethernet() -> [u8; 12] {
    [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]
}

fn v4(hosts: [u32; 2], from: usize, protocol: u8, carried: usize) -> Vec<u8> {
    let total = u16::try_from(20 + carried).expect("fits").to_be_bytes();
    let mut bytes = vec![
        0x45, 0, total[0], total[1], 0, 0, 0x40, 0, 64, protocol, 0, 0,
    ];
    bytes.extend(hosts[from].to_be_bytes());
    bytes.extend(hosts[1 - from].to_be_bytes());
    bytes
}

fn v6(hosts: [u32; 2], from: usize, carried: usize) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend(u16::try_from(carried).expect("fits").to_be_bytes());
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
