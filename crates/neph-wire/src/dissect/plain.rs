//! The fast path for nearly all packets of a capture: unfragmented TCP over IPv4 in untagged
//! Ethernet.
//!
//! Owns the conditions of the fast path. Returns what [`dissect`](super::dissect) would return for
//! the same packet, in a third of the time. Returns `None` for every other packet.

use super::Link;

/// Length of the Ethernet, IPv4 and TCP headers before the TCP options, bytes.
const HEADERS: usize = 14 + 20 + 20;
/// Length and first bytes of the options that nearly all segments have.
const STAMPS: usize = 12;
const TWO_PADS_AND_STAMPS: [u8; 4] = [1, 1, 8, 10];

/// A TCP segment over IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// Source and destination.
    pub addresses: [u32; 2],
    /// Source and destination.
    pub ports: [u16; 2],
    /// The sequence number of the payload's first byte.
    pub seq: u32,
    /// The acknowledgement number.
    pub ack: u32,
    /// As in [`TcpHeader`](crate::ip::TcpHeader).
    pub flags: u8,
    /// The window field, not scaled.
    pub window: u16,
    /// Value and echo reply of the timestamp option.
    pub stamps: Option<(u32, u32)>,
    /// Length of the payload on the wire, bytes.
    pub payload_len: u32,
    /// Length of the IP packet on the wire, bytes.
    pub total_len: u16,
}

/// Reads a packet of the common form; `None` means that [`dissect`](super::dissect) must read it.
#[inline]
pub fn plain(link: Link, bytes: &[u8]) -> Option<Plain> {
    let (head, after_fixed) = bytes.split_first_chunk::<HEADERS>()?;
    let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let u32_at =
        |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    // More-fragments bit and fragment offset, all but the two upper bits, are 0: no fragment.
    let is_whole = u16_at(20) << 2 == 0;
    if link != Link::Ethernet
        || u16_at(12) != 0x0800
        || head[14] != 0x45
        || !is_whole
        || head[23] != 6
    {
        return None;
    }
    let (total_len, flags) = (u16_at(16), head[47]);
    let (stamps, header_len) = match head[46] >> 4 {
        5 => (None, 40),
        8 => {
            let options = after_fixed.first_chunk::<STAMPS>()?;
            let [begin, value, echo] = *options.as_chunks::<4>().0 else {
                return None;
            };
            if begin != TWO_PADS_AND_STAMPS {
                return None;
            }
            let stamps = (u32::from_be_bytes(value), u32::from_be_bytes(echo));
            (Some(stamps), 40 + 12)
        }
        _ => return None,
    };
    Some(Plain {
        addresses: [u32_at(26), u32_at(30)],
        ports: [u16_at(34), u16_at(36)],
        seq: u32_at(38),
        ack: u32_at(42),
        flags,
        window: u16_at(48),
        stamps,
        payload_len: u32::from(total_len.checked_sub(header_len)?),
        total_len,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Transport, dissect};
    use super::*;
    use crate::ip::tcp_options;

    /// A segment with these options, in a packet with this total length.
    fn segment(options: &[u8], total_len: u16, payload: usize) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        bytes.extend([8, 0, 0x45, 0]);
        bytes.extend(total_len.to_be_bytes());
        bytes.extend([0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([0x9c, 0x40, 1, 0xbb, 0, 0, 0, 9, 0, 0, 0, 8]);
        let text = u8::try_from(5 + options.len() / 4).expect("few");
        bytes.extend([text << 4, 0x18, 1, 0, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes.resize(bytes.len() + payload, 0);
        bytes
    }

    const STAMPED: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 3, 0, 0, 0, 4];

    #[test]
    fn a_segment_with_timestamps_or_without_options_takes_the_fast_path() {
        let stamped = plain(Link::Ethernet, &segment(&STAMPED, 62, 10)).expect("plain");
        assert_eq!((stamped.stamps, stamped.payload_len), (Some((3, 4)), 10));
        let bare = plain(Link::Ethernet, &segment(&[], 40, 0)).expect("plain");
        assert_eq!((bare.stamps, bare.payload_len), (None, 0));
        assert_eq!(
            (bare.addresses, bare.ports),
            ([0x0a00_0001, 0x0a00_0002], [40_000, 443])
        );
    }

    #[test]
    fn complex_packets_take_the_full_dissection() {
        // Segmentation offload: total length 0.
        assert_eq!(plain(Link::Ethernet, &segment(&STAMPED, 0, 10)), None);
        // A SYN.
        assert_eq!(
            plain(Link::Ethernet, &segment(&[2, 4, 5, 180], 44, 0)),
            None
        );
        assert_eq!(plain(Link::Ip, &segment(&STAMPED, 52, 0)), None);
    }

    proptest! {
        #[test]
        fn the_fast_path_equals_the_full_dissection(
            options in prop::sample::select(vec![vec![], STAMPED.to_vec(), vec![1; 12], vec![8, 10, 0, 0]]),
            total_len in 0_u16..200,
            payload in 0_usize..150,
            kept in 0_usize..220,
            changed in prop::collection::vec((0_usize..80, any::<u8>()), 0..3),
        ) {
            let mut bytes = segment(&options, total_len, payload);
            for (at, byte) in changed {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            let length = u32::try_from(bytes.len()).expect("short");
            let bytes = &bytes[..kept.min(bytes.len())];
            if let Some(plain) = plain(Link::Ethernet, bytes) {
                let whole = dissect(Link::Ethernet, bytes, length).expect("IP");
                let Transport::Tcp { header, payload_len } = whole.transport else {
                    panic!("not TCP: {whole:?}");
                };
                prop_assert_eq!((whole.vlan, whole.tunnel), (None, None));
                prop_assert_eq!(plain.addresses.map(|address| std::net::IpAddr::V4(address.into())), [whole.ip.source, whole.ip.destination]);
                prop_assert_eq!(plain.ports, [header.source, header.destination]);
                prop_assert_eq!((plain.seq, plain.ack, plain.flags, plain.window), (header.seq, header.ack, header.flags, header.window));
                let options = tcp_options(header.options);
                prop_assert_eq!((plain.stamps, None), (options.timestamps, options.largest_segment));
                prop_assert_eq!((plain.payload_len, usize::from(plain.total_len)), (payload_len, whole.ip.total_len));
            }
        }
    }
}
