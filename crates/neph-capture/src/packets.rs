//! Packets that tests of several modules capture.

/// A datagram with this number from one host to the other.
pub(crate) fn datagram(number: u16, from: u8, to: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 44];
    packet.extend(number.to_be_bytes());
    packet.extend([0x40, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    packet.extend([0x30, from, 0x30, to, 0, 24, 0, 0]);
    packet.extend([7; 16]);
    packet
}
