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

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// What an IP packet carries: an echo, a datagram or a segment, with so many bytes of payload.
pub(crate) fn body(protocol: u8, index: u8, bytes: u16) -> Vec<u8> {
    let mut body = match protocol {
        UDP => vec![0x30, 1, 0, 53, 0, 0, 0, 0],
        TCP => vec![
            0x30, 1, 0, 80, 0, 0, 0, index, 0, 0, 0, 9, 0x50, 16, 1, 0, 0, 0, 0, 0,
        ],
        _ => vec![8, 0, 0, 0, 0, 7, 0, index],
    };
    let length = body.len() + usize::from(bytes);
    body.resize(length, index);
    if protocol == UDP {
        body[4..6].copy_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
    }
    body
}

/// The packets that carry it from host 1 to host 2, none with more than `max` bytes of it.
pub(crate) fn packets(
    is_ipv6: bool,
    protocol: u8,
    number: u8,
    body: &[u8],
    max: usize,
) -> Vec<Vec<u8>> {
    let pieces = body.chunks(max);
    let last = pieces.len() - 1;
    let packet = |(index, piece): (usize, &[u8])| {
        let at = u16::try_from(index * max).unwrap();
        let (more, is_fragment) = (index < last, last > 0);
        let mut packet = if is_ipv6 {
            let extension = if is_fragment { 8 } else { 0 };
            let length = u16::try_from(piece.len() + extension).unwrap();
            let mut packet = vec![0x60, 0, 0, 0];
            packet.extend(length.to_be_bytes());
            packet.extend([if is_fragment { 44 } else { protocol }, 64]);
            for host in [1, 2] {
                packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
            }
            if is_fragment {
                packet.extend([protocol, 0]);
                packet.extend((at | u16::from(more)).to_be_bytes());
                packet.extend([9, 9, 9, number]);
            }
            packet
        } else {
            let length = u16::try_from(20 + piece.len()).unwrap();
            let mut packet = vec![0x45, 0];
            packet.extend(length.to_be_bytes());
            packet.extend([0, number]);
            packet.extend(((at / 8) | if more { 0x2000 } else { 0 }).to_be_bytes());
            packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            packet
        };
        packet.extend(piece);
        packet
    };
    pieces.enumerate().map(packet).collect()
}
