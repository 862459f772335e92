//! Writes pcap with nanosecond times: a file header, then a record header before each packet.
//!
//! Owns the headers. Does not own files.

/// `LINKTYPE_ETHERNET` of the pcap registry.
pub const ETHERNET: u32 = 1;
/// `LINKTYPE_RAW`: IP packets without a link header.
pub const RAW_IP: u32 = 101;

/// `LINKTYPE_LINUX_SLL2`: packets of several interfaces, each after a [`CookedHeader`].
pub const COOKED: u32 = 276;

/// Replaces the link header of a packet when several interfaces are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CookedHeader {
    /// The ethertype of the packet.
    pub protocol: u16,
    /// The index of the interface.
    pub interface: u32,
    /// The type of the interface (`linux/if_arp.h`).
    pub hardware: u16,
    /// The packet type (`linux/if_packet.h`).
    pub passage: u8,
}

impl CookedHeader {
    /// Length in bytes.
    pub const LENGTH: u32 = 20;

    /// The bytes in a file, without link addresses.
    pub fn bytes(self) -> [u8; Self::LENGTH as usize] {
        let mut bytes = [0; Self::LENGTH as usize];
        bytes[..2].copy_from_slice(&self.protocol.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.interface.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.hardware.to_be_bytes());
        bytes[10] = self.passage;
        bytes
    }
}

/// The file header for packets with link type `link` and at most `kept` captured bytes.
pub fn pcap_header(link: u32, captured_length: u32) -> [u8; 24] {
    let mut header = [0; 24];
    let fields = [super::pcap::NANOS, 0x0004_0002, 0, 0, captured_length, link];
    for (into, field) in header.chunks_exact_mut(4).zip(fields) {
        into.copy_from_slice(&field.to_le_bytes());
    }
    header
}

/// The record header of a packet with `length` bytes, of which `kept` are captured. `at` is in
/// nanoseconds since 1970, limited to the range of pcap (1970 to 2106).
pub fn pcap_record(at: i64, captured_length: u32, length: u32) -> [u8; 16] {
    const NANOS_IN_SECOND: i64 = 1_000_000_000;
    let at = at.clamp(0, i64::from(u32::MAX) * NANOS_IN_SECOND);
    let within = |number| u32::try_from(number).unwrap_or(0);
    let fields = [
        within(at / NANOS_IN_SECOND),
        within(at % NANOS_IN_SECOND),
        captured_length,
        length,
    ];
    let mut record = [0; 16];
    for (into, field) in record.chunks_exact_mut(4).zip(fields) {
        into.copy_from_slice(&field.to_le_bytes());
    }
    record
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capture::{CaptureReader, Step};
    use crate::dissect::{Link, dissect};

    proptest! {
        #[test]
        fn a_written_record_is_read_back(
            at in 0..i64::from(u32::MAX) * 1_000_000_000,
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            more in 0_u32..2000,
        ) {
            let captured_length = u32::try_from(bytes.len()).expect("small");
            let mut reader = CaptureReader::new();
            let header = pcap_header(ETHERNET, 256);
            let step = reader.step(&header).expect("a header");
            prop_assert_eq!(step, Step::Skip(header.len()));
            let record = [&pcap_record(at, captured_length, captured_length + more)[..], &bytes].concat();
            let Step::Packet(packet, used) = reader.step(&record).expect("a packet") else {
                return Err(TestCaseError::fail("no packet"));
            };
            prop_assert_eq!(used, record.len());
            prop_assert_eq!((packet.at, packet.link), (Some(at), Link::Ethernet));
            prop_assert_eq!((packet.bytes, packet.length), (&bytes[..], captured_length + more));
        }

        #[test]
        fn a_cooked_header_contains_interface_and_protocol(
            interface in any::<u32>(),
            hardware in any::<u16>(),
            passage in any::<u8>(),
        ) {
            let header = CookedHeader { protocol: 0x0800, interface, hardware, passage };
            let mut packet = header.bytes().to_vec();
            packet.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 64, 99, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            let link = Link::numbered(COOKED);
            prop_assert_eq!(link.interface(&packet), Some(interface));
            let observed = dissect(link, &packet, 40).expect("a packet");
            prop_assert_eq!(observed.ip.protocol, 99);
        }
    }
}
