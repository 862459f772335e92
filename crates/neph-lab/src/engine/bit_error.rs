//! A bit error on the wire.
//!
//! Owns which bits may flip: those that a checksum of the receiver covers. This emulates a faulty cable in
//! front of a switch that calculates a new frame checksum. The Internet checksum detects every single-bit
//! error.

use crate::gate::ETHERNET_HEADER_BYTES;

const IPV6_HEADER: usize = 40;

/// Flips one bit of `frame`, selected by `draw`. In an IPv4 packet any bit; in an IPv6 packet any behind its
/// header, which has no checksum; else any behind the Ethernet header. Returns its index in the frame; `None`
/// if there is no such bit.
pub(super) fn flip_bit(frame: &mut [u8], draw: u64) -> Option<u16> {
    let (first, last) = checksummed_range(frame)?;
    let bits = u64::try_from((last - first) * 8).ok()?;
    let bit = first * 8 + usize::try_from(draw.checked_rem(bits)?).ok()?;
    frame[bit / 8] ^= 0x80 >> (bit % 8);
    u16::try_from(bit).ok()
}

/// The range of bytes that may be hit, without padding.
fn checksummed_range(frame: &[u8]) -> Option<(usize, usize)> {
    let ethernet = usize::try_from(ETHERNET_HEADER_BYTES).ok()?;
    let packet = frame.get(ethernet..)?;
    let length = |at: usize| {
        let bytes = packet.get(at..at + 2)?;
        Some(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    };
    let (first, last) = match frame[ethernet - 2..ethernet] {
        [0x08, 0x00] => (ethernet, ethernet + length(2)?),
        [0x86, 0xdd] => {
            let first = ethernet + IPV6_HEADER;
            (first, first + length(4)?)
        }
        _ => (ethernet, frame.len()),
    };
    let last = last.min(frame.len());
    (first < last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of `length` bytes with a packet whose length field is `length_field` bytes.
    fn frame(ethertype: [u8; 2], length: usize, (at, length_field): (usize, u16)) -> Vec<u8> {
        let mut frame = vec![0; length];
        frame[12..14].copy_from_slice(&ethertype);
        frame[14 + at..16 + at].copy_from_slice(&length_field.to_be_bytes());
        frame
    }

    /// The first and the last byte that are ever corrupted.
    fn flipped_bytes(frame: &[u8]) -> Option<(usize, usize)> {
        let mut bytes = (0..20_000).filter_map(|draw| {
            let mut corrupted = frame.to_vec();
            let bit = usize::from(flip_bit(&mut corrupted, draw)?);
            let flipped_count: u32 = std::iter::zip(&corrupted, frame)
                .map(|(a, b)| (a ^ b).count_ones())
                .sum();
            assert_eq!(flipped_count, 1, "one bit");
            assert_ne!(corrupted[bit / 8], frame[bit / 8], "the returned bit");
            Some(bit / 8)
        });
        let first = bytes.next()?;
        Some(bytes.fold((first, first), |(low, high), byte| {
            (low.min(byte), high.max(byte))
        }))
    }

    #[test]
    fn only_bytes_covered_by_a_checksum_are_corrupted() {
        let v4 = frame([8, 0], 60, (2, 40));
        assert_eq!(flipped_bytes(&v4), Some((14, 53)), "not the padding");
        let v6 = frame([0x86, 0xdd], 100, (4, 46));
        assert_eq!(flipped_bytes(&v6), Some((54, 99)), "not the header");
        assert_eq!(flipped_bytes(&frame([8, 6], 42, (2, 0))), Some((14, 41)));
        let oversized_length = frame([8, 0], 60, (2, 9_000));
        assert_eq!(flipped_bytes(&oversized_length), Some((14, 59)));
    }

    #[test]
    fn a_frame_without_payload_stays_unchanged() {
        for mut empty in [
            vec![0; 14],
            vec![0; 3],
            frame([0x86, 0xdd], 54, (4, 0)),
            frame([8, 0], 60, (2, 0)),
        ] {
            let before = empty.clone();
            assert_eq!(flip_bit(&mut empty, 7), None);
            assert_eq!(empty, before);
        }
    }
}
