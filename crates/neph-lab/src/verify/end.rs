//! One end of a link at its site: sends timed packets, and reads packets with timestamps.
//!
//! Owns the frames' bytes. Frames are built here and bypass the site's routing, so that links without a route
//! can be tested too.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use neph_sys::ring::{BLOCK_BYTES, PacketRing, RingMode};
use neph_sys::{clock, netns};

use crate::engine::EngineError;
use crate::gate::{Flow, flow_of_frame};
use crate::lab::{Lab, LabError};
use crate::links::mac_bytes;

/// Bytes of a small packet's frame, Ethernet header included.
pub(super) const PROBE_BYTES: u32 = 64;
/// Blocks of the capture ring: 8 MiB, 4096 frames.
const CAPTURE_BLOCKS: usize = (8 << 20) / BLOCK_BYTES;
/// The offset of the mark in a packet of the verification: behind Ethernet, IPv4 and UDP headers.
const MARK_OFFSET: usize = 42;
const MARK: [u8; 6] = *b"nephv2";
/// Bytes of side and number, which follow the mark three times, so that a flipped bit does not count as a
/// loss.
const MARK_COPY_BYTES: usize = 5;
const MARK_BYTES: usize = MARK.len() + 3 * MARK_COPY_BYTES;

/// A packet of the verification that was observed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservedPacket {
    /// Whether this end sent it.
    pub(super) is_own: bool,
    /// Its number.
    pub(super) number: u32,
    /// Kernel timestamp: wall-clock nanoseconds.
    pub(super) timestamp: i64,
}

/// The source of departure timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DepartureSource {
    /// The kernel's, at the interface.
    Kernel,
    /// The sender's, just before sending. netem works on this interface, and the kernel shows packets only
    /// behind it. Observed with tbf: four frames sent at once had timestamps 0, 114, 196 and 235 ms later.
    Sender,
}

/// One end of a link.
#[derive(Debug)]
pub(super) struct LinkEnd {
    departure_source: DepartureSource,
    capture_ring: PacketRing,
    send_ring: PacketRing,
    /// Accepts the packets, so that the kernel sends no unreachable messages; never read.
    sink: UdpSocket,
    side: u8,
    header: [u8; MARK_OFFSET],
}

impl LinkEnd {
    /// Opens both ends of the link with this index.
    pub(super) fn both_ends(lab: &Lab, number: usize) -> Result<[Self; 2], LabError> {
        let link = &lab.topology().links[number];
        let [a, b] = [link.a, link.b].map(|index| &lab.topology().sites[index]);
        let open_end = |side: u8, site: &str, address: Ipv4Addr| -> Result<Self, LabError> {
            let namespace = lab.namespace(site)?;
            netns::with_namespace(&namespace, || Self::open(&link.name, side, address))?
        };
        let mut ends = [
            open_end(0, &a.name, a.v4.address)?,
            open_end(1, &b.name, b.v4.address)?,
        ];
        let ports = [ends[0].port(), ends[1].port()];
        for (end, (sender, receiver)) in ends.iter_mut().zip([(0_u8, 1_u8), (1, 0)]) {
            let macs = [mac_bytes(number, sender), mac_bytes(number, receiver)];
            let site_addresses = [a.v4.address, b.v4.address];
            let addresses = [
                site_addresses[usize::from(sender)],
                site_addresses[usize::from(receiver)],
            ];
            end.header = frame_header(macs, addresses, ports[usize::from(receiver)]);
        }
        if lab.counters(number).is_none() {
            for end in &mut ends {
                end.departure_source = DepartureSource::Sender;
            }
        }
        Ok(ends)
    }

    fn open(link: &str, side: u8, address: Ipv4Addr) -> Result<Self, LabError> {
        let ring = |blocks| {
            PacketRing::open(link, blocks, RingMode::Tap).map_err(|source| EngineError::LinkEnd {
                link: link.to_owned(),
                source,
            })
        };
        let sink = UdpSocket::bind(SocketAddr::new(IpAddr::V4(address), 0)).map_err(|source| {
            LabError::Thread {
                task: link.to_owned(),
                source,
            }
        })?;
        let (capture_ring, send_ring) = (ring(CAPTURE_BLOCKS)?, ring(1)?);
        Ok(Self {
            departure_source: DepartureSource::Kernel,
            capture_ring,
            send_ring,
            sink,
            side,
            header: [0; MARK_OFFSET],
        })
    }

    /// Sets the source port; returns the flow as a link identifies it.
    pub(super) fn set_source_port(&mut self, port: u16) -> Option<Flow> {
        self.header[34..36].copy_from_slice(&port.to_be_bytes());
        flow_of_frame(&self.header)
    }

    fn port(&self) -> u16 {
        self.sink.local_addr().map_or(9, |address| address.port())
    }

    /// Sends packet `number` as a frame of `bytes` (64 to 1514). Returns its departure if the sender provides
    /// it, and if the kernel had room for the packet.
    pub(super) fn send(&self, number: u32, bytes: u32) -> Option<i64> {
        let mut frame = [0; 1514];
        frame[..MARK_OFFSET].copy_from_slice(&self.header);
        let length = u16::try_from(bytes.clamp(PROBE_BYTES, 1514)).expect("at most 1514");
        frame[16..18].copy_from_slice(&(length - 14).to_be_bytes());
        frame[38..40].copy_from_slice(&(length - 34).to_be_bytes());
        let checksum = checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        frame[MARK_OFFSET..MARK_OFFSET + MARK_BYTES]
            .copy_from_slice(&mark_bytes(self.side, number));
        let now = (self.departure_source == DepartureSource::Sender).then(|| clock::pair().wall.0);
        let sent = self.send_ring.send(&frame[..usize::from(length)]);
        now.filter(|_| sent.is_ok())
    }

    /// The next packet of the verification at this end, sent or received; `None` for now.
    pub(super) fn next_observed(&mut self) -> Option<ObservedPacket> {
        loop {
            let frame = self.capture_ring.next_frame()?;
            let bytes = frame.bytes().get(MARK_OFFSET..MARK_OFFSET + MARK_BYTES);
            let Some((side, number)) = bytes.and_then(read_mark) else {
                continue;
            };
            if side == self.side && self.departure_source == DepartureSource::Sender {
                continue;
            }
            return Some(ObservedPacket {
                is_own: side == self.side,
                number,
                timestamp: frame.stamp(),
            });
        }
    }
}

/// The mark of a packet of the verification.
fn mark_bytes(side: u8, number: u32) -> [u8; MARK_BYTES] {
    let mut bytes = [0; MARK_BYTES];
    bytes[..MARK.len()].copy_from_slice(&MARK);
    for copy in bytes[MARK.len()..].chunks_exact_mut(MARK_COPY_BYTES) {
        copy[0] = side;
        copy[1..].copy_from_slice(&number.to_be_bytes());
    }
    bytes
}

/// Side and number of a packet of the verification, with at most one flipped bit.
fn read_mark(bytes: &[u8]) -> Option<(u8, u32)> {
    let (mark, copies) = bytes.split_at(MARK.len());
    let flipped_bits: u32 = mark
        .iter()
        .zip(MARK)
        .map(|(byte, expected)| (byte ^ expected).count_ones())
        .sum();
    if flipped_bits > 1 {
        return None;
    }
    let copies: Vec<&[u8]> = copies.chunks_exact(MARK_COPY_BYTES).collect();
    let repeated_copy = copies
        .iter()
        .find(|copy| copies.iter().filter(|other| other == copy).count() > 1)?;
    let [side, number @ ..] = *repeated_copy else {
        return None;
    };
    Some((*side, u32::from_be_bytes(number.try_into().ok()?)))
}

/// Everything before the payload, without lengths and IPv4 checksum. The UDP checksum is zero: none.
fn frame_header(macs: [[u8; 6]; 2], addresses: [Ipv4Addr; 2], port: u16) -> [u8; MARK_OFFSET] {
    let mut header = [0; MARK_OFFSET];
    header[..6].copy_from_slice(&macs[1]);
    header[6..12].copy_from_slice(&macs[0]);
    header[12] = 0x08;
    header[14] = 0x45;
    header[22] = 64;
    header[23] = 17;
    header[26..30].copy_from_slice(&addresses[0].octets());
    header[30..34].copy_from_slice(&addresses[1].octets());
    header[34..36].copy_from_slice(&port.to_be_bytes());
    header[36..38].copy_from_slice(&port.to_be_bytes());
    header
}

/// RFC 1071.
fn checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !u16::try_from((folded & 0xffff) + (folded >> 16)).expect("twenty bytes fold into one word")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_packet_is_recognised_with_any_single_bit_flipped() {
        let bytes = mark_bytes(1, 0x0102_0304);
        assert_eq!(read_mark(&bytes), Some((1, 0x0102_0304)));
        for bit in 0..MARK_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_mark(&flipped), Some((1, 0x0102_0304)), "bit {bit}");
        }
        assert_eq!(read_mark(&[0; MARK_BYTES]), None);
        let mut damaged = bytes;
        damaged[0] ^= 3;
        assert_eq!(read_mark(&damaged), None);
    }

    #[test]
    fn the_checksum_of_a_header_with_its_checksum_is_zero() {
        let mut bytes = frame_header(
            [[1; 6], [2; 6]],
            [Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST],
            9,
        );
        let sum = checksum(&bytes[14..34]);
        assert_ne!(sum, 0);
        bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(&bytes[14..34]), 0);
    }
}
