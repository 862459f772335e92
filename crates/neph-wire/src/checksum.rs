//! The Internet checksum (RFC 1071) and the pseudo header of transport checksums.

use std::net::IpAddr;

/// The Internet checksum (RFC 1071) over the concatenated `parts`; all but the last must have an
/// even length. Over a message that contains its own checksum, the result is 0 if that is correct.
pub fn internet_checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        let (text, tail) = part.as_chunks::<2>();
        sum += text
            .iter()
            .map(|word| u64::from(u16::from_be_bytes(*word)))
            .sum::<u64>();
        sum += tail.first().map_or(0, |byte| u64::from(*byte) << 8);
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !((sum & 0xffff) as u16)
}

/// The pseudo header in the checksums of UDP, TCP and `ICMPv6`: addresses, length and protocol (RFC
/// 768, 9293, 8200). IPv4 has the length in two bytes and the protocol in one; the sum over four
/// bytes each is the same.
#[derive(Clone, Copy, Debug)]
pub struct PseudoHeader {
    bytes: [u8; 40],
    len: usize,
}

impl PseudoHeader {
    /// For `len` bytes after the IP header. `None` if the IP versions differ, or the length exceeds
    /// 32 bits.
    pub fn new(source: IpAddr, destination: IpAddr, protocol: u8, len: usize) -> Option<Self> {
        let len = u32::try_from(len).ok()?;
        let mut pseudo = Self {
            bytes: [0; 40],
            len: 0,
        };
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                pseudo.push(&source.octets());
                pseudo.push(&destination.octets());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                pseudo.push(&source.octets());
                pseudo.push(&destination.octets());
            }
            _ => return None,
        }
        pseudo.push(&len.to_be_bytes());
        pseudo.push(&[0, 0, 0, protocol]);
        Some(pseudo)
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// A part for [`internet_checksum`].
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_matches_the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(internet_checksum(&[&bytes]), !0xddf2);
        assert_eq!(internet_checksum(&[&bytes[..4], &bytes[4..]]), !0xddf2);
        assert_eq!(internet_checksum(&[&[0xff]]), 0x00ff);
    }
}
