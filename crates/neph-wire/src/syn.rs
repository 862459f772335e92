//! TCP SYN probes and the answers to them (RFC 9293), without completing a handshake.
//!
//! Owns the segments without their IP header: writes SYN and RST with a checksum for either IP
//! version, reads answers. Does not own sockets or streams. The checksum of an answer is not
//! verified, because virtual interfaces often leave it out. The sequence numbers are enough to
//! recognise an answer.
//!
//! The sequence number of a SYN identifies the probe: the answer acknowledges it. Consecutive
//! probes of a flow must not have adjacent numbers: a target that remembers the last SYN would
//! accept the next one as part of it. [`Numbers`] scatters them reversibly.

use std::net::SocketAddr;

use crate::checksum::{PseudoHeader, internet_checksum};
use crate::ip::{TCP, TcpHeader, parse_tcp};

/// Length of a TCP header without options, bytes.
const HEADER_LEN: usize = 20;
/// Length of the MSS option, bytes.
const MSS_OPTION_LEN: usize = 4;
/// The initial window of Linux.
const WINDOW_SIZE: u16 = 64_240;

/// Length of a [`syn`] without its IP header, bytes.
pub const SYN_LEN: usize = HEADER_LEN + MSS_OPTION_LEN;

/// Source and target of a segment, of the same IP version; otherwise the checksum is meaningless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEnds {
    /// The prober.
    pub source: SocketAddr,
    /// The target.
    pub target: SocketAddr,
}

/// Appends a SYN with this sequence number.
pub fn syn(ends: &SegmentEnds, seq: u32, out: &mut Vec<u8>) {
    // The 1500 bytes of an Ethernet frame minus both headers.
    let mss: u16 = if ends.target.is_ipv4() { 1460 } else { 1440 };
    let [high, low] = mss.to_be_bytes();
    let fields = Fields {
        seq,
        flags: TcpHeader::SYN,
        window: WINDOW_SIZE,
        options: &[2, 4, high, low],
    };
    segment(ends, &fields, out);
}

/// Appends a SYN without options, with a window of 0 so that the peer sends no data.
pub(crate) fn bare_syn(ends: &SegmentEnds, seq: u32, out: &mut Vec<u8>) {
    let fields = Fields {
        seq,
        flags: TcpHeader::SYN,
        window: 0,
        options: &[],
    };
    segment(ends, &fields, out);
}

/// Appends a SYN that is forwarded like any other and that its target drops without an answer: it
/// claims to be signed (RFC 2385), with an unknown key.
pub(crate) fn mute_syn(ends: &SegmentEnds, seq: u32, out: &mut Vec<u8>) {
    let mut options = [0; 20];
    // Kind and length of the signature option; two no-ops fill the last word.
    options[..2].copy_from_slice(&[19, 18]);
    options[18..].fill(1);
    let fields = Fields {
        seq,
        flags: TcpHeader::SYN,
        window: 0,
        options: &options,
    };
    segment(ends, &fields, out);
}

/// Appends a RST with this sequence number: the acknowledgement number of the refused segment.
pub fn rst(ends: &SegmentEnds, seq: u32, out: &mut Vec<u8>) {
    let fields = Fields {
        seq,
        flags: TcpHeader::RST,
        window: 0,
        options: &[],
    };
    segment(ends, &fields, out);
}

/// The fields that differ between segments.
struct Fields<'a> {
    seq: u32,
    flags: u8,
    window: u16,
    /// In whole words.
    options: &'a [u8],
}

fn segment(ends: &SegmentEnds, fields: &Fields<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    // The header length in words of four bytes is in the upper half of its byte.
    let words = (HEADER_LEN + fields.options.len()) / 4;
    let offset = u8::try_from(words << 4).unwrap_or(u8::MAX);
    out.extend_from_slice(&ends.source.port().to_be_bytes());
    out.extend_from_slice(&ends.target.port().to_be_bytes());
    out.extend_from_slice(&fields.seq.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[offset, fields.flags]);
    out.extend_from_slice(&fields.window.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(fields.options);
    let sum = checksum(ends, &out[start..]);
    out[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
}

/// The checksum of a whole TCP segment; 0 if it contains its correct checksum.
fn checksum(ends: &SegmentEnds, segment: &[u8]) -> u16 {
    let pseudo = PseudoHeader::new(ends.source.ip(), ends.target.ip(), TCP, segment.len());
    let pseudo = pseudo.as_ref().map_or(&[][..], PseudoHeader::as_bytes);
    internet_checksum(&[pseudo, segment])
}

/// The kind of answer to a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// SYN and ACK: the port is open.
    Accepted,
    /// RST: the port is closed, but the host answers.
    Refused,
}

/// A segment that may answer a SYN probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The target port.
    pub from: u16,
    /// The local port.
    pub to: u16,
    /// The kind of answer.
    pub verdict: Verdict,
    /// The sequence number of the answered SYN.
    pub seq: u32,
}

/// Reads a TCP segment without its IP header. `None` if it does not answer a SYN.
///
/// `None` also for an ACK without SYN or RST (a challenge ACK, RFC 5961). It comes from a target
/// with an older connection of the same ports and acknowledges bytes of that connection. It does
/// not identify the SYN that caused it.
pub fn parse_answer(segment: &[u8]) -> Option<Answer> {
    const FLAGS_MASK: u8 = TcpHeader::SYN | TcpHeader::ACK | TcpHeader::RST | TcpHeader::FIN;
    const ACCEPTED: u8 = TcpHeader::SYN | TcpHeader::ACK;
    const REFUSED: u8 = TcpHeader::RST | TcpHeader::ACK;
    let header = parse_tcp(segment).ok()?;
    let verdict = match header.flags & FLAGS_MASK {
        ACCEPTED => Verdict::Accepted,
        REFUSED => Verdict::Refused,
        _ => return None,
    };
    Some(Answer {
        from: header.source,
        to: header.destination,
        verdict,
        seq: header.ack.wrapping_sub(1),
    })
}

/// Maps probe numbers to sequence numbers and back: a permutation of all 32-bit numbers that looks
/// random and depends on a secret.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// The round keys of a Feistel network.
    keys: [u32; 4],
}

impl Numbers {
    /// The permutation of this secret; two fleets should not share one.
    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    pub fn new(secret: u64) -> Self {
        let (low, high) = (secret as u32, (secret >> 32) as u32);
        Self {
            keys: [low, high, low.rotate_left(16) ^ 0x9e37_79b9, high ^ low],
        }
    }

    /// The sequence number of a probe.
    pub fn seq(&self, number: u32) -> u32 {
        let (mut left, mut right) = halves(number);
        for key in self.keys {
            (left, right) = (right, left ^ scatter(right, key));
        }
        joined(left, right)
    }

    /// The probe of a sequence number.
    pub fn number(&self, seq: u32) -> u32 {
        let (mut left, mut right) = halves(seq);
        for key in self.keys.iter().rev() {
            (left, right) = (right ^ scatter(left, *key), left);
        }
        joined(left, right)
    }
}

fn halves(word: u32) -> (u16, u16) {
    let [a, b, c, d] = word.to_be_bytes();
    (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
}

fn joined(left: u16, right: u16) -> u32 {
    u32::from(left) << 16 | u32::from(right)
}

/// The round function: murmur3's finaliser over half and key.
fn scatter(half: u16, key: u32) -> u16 {
    let mut word = u32::from(half) ^ key;
    word = (word ^ word >> 16).wrapping_mul(0x85eb_ca6b);
    word = (word ^ word >> 13).wrapping_mul(0xc2b2_ae35);
    (word >> 16) as u16
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn ends(source: &str, target: &str) -> SegmentEnds {
        SegmentEnds {
            source: source.parse().expect("an address"),
            target: target.parse().expect("an address"),
        }
    }

    /// Fields without window and options.
    fn bare(seq: u32, flags: u8) -> Fields<'static> {
        Fields {
            seq,
            flags,
            window: 0,
            options: &[],
        }
    }

    fn both_ends(source: u16, target: u16) -> [SegmentEnds; 2] {
        let swapped = |mut ends: SegmentEnds| {
            ends.source.set_port(source);
            ends.target.set_port(target);
            ends
        };
        [
            swapped(ends("10.0.0.1:0", "192.0.2.9:0")),
            swapped(ends("[2001:db8::1]:0", "[2001:db8:ffff::9]:0")),
        ]
    }

    #[test]
    fn a_syn_has_the_layout_of_rfc_9293() {
        // From RFC 9293, section 3.1, with the sum of RFC 1071 word by word.
        let mut out = Vec::new();
        syn(
            &ends("10.0.0.1:40000", "192.0.2.9:443"),
            0x0102_0304,
            &mut out,
        );
        let words: [u32; 17] = [
            // Pseudo header: addresses, protocol, length.
            0x0a00, 0x0001, 0xc000, 0x0209, 0x0006, 0x0018, // Ports and numbers.
            0x9c40, 0x01bb, 0x0102, 0x0304, 0, 0, // Offset and flags, window, urgent, option.
            0x6002, 0xfaf0, 0, 0x0204, 0x05b4,
        ];
        let mut sum: u32 = words.iter().sum();
        sum = (sum & 0xffff) + (sum >> 16);
        let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).expect("folded");
        let mut expected = vec![
            0x9c, 0x40, 0x01, 0xbb, 1, 2, 3, 4, 0, 0, 0, 0, 0x60, 0x02, 0xfa, 0xf0,
        ];
        expected.extend(sum.to_be_bytes());
        expected.extend([0, 0, 2, 4, 0x05, 0xb4]);
        assert_eq!(out, expected);
        assert_eq!(out.len(), SYN_LEN);
    }

    #[test]
    fn only_syn_ack_and_rst_ack_answer_a_syn() {
        let answer_of = |flags: u8| {
            let mut out = Vec::new();
            segment(&both_ends(80, 40_000)[0], &bare(9, flags), &mut out);
            out[8..12].copy_from_slice(&7_u32.to_be_bytes());
            parse_answer(&out).map(|answer| (answer.verdict, answer.seq))
        };
        assert_eq!(answer_of(0x12), Some((Verdict::Accepted, 6)));
        assert_eq!(answer_of(0x14), Some((Verdict::Refused, 6)));
        assert_eq!(answer_of(0x52), Some((Verdict::Accepted, 6)), "ECN too");
        for (flags, answer) in [
            (0x10, "a challenge ACK"),
            (0x02, "a SYN"),
            (0x04, "a RST that acknowledges nothing"),
            (0x11, "an end"),
            (0x16, "nonsense"),
        ] {
            assert_eq!(answer_of(flags), None, "{answer}");
        }
    }

    #[test]
    fn adjacent_numbers_get_distant_sequence_numbers() {
        let numbers = Numbers::new(0x0123_4567_89ab_cdef);
        let close_count = (0..10_000_u32)
            .filter(|n| numbers.seq(*n).abs_diff(numbers.seq(n + 1)) < 65_536)
            .count();
        // For random numbers, 1 in 32,768 is within a window of its neighbour.
        assert!(close_count < 5, "{close_count} of 10,000");
    }

    proptest! {
        #[test]
        fn a_sequence_number_identifies_its_probe(secret: u64, number: u32) {
            let numbers = Numbers::new(secret);
            prop_assert_eq!(numbers.number(numbers.seq(number)), number);
            prop_assert_eq!(numbers.seq(numbers.number(number)), number);
        }

        #[test]
        fn checksums_are_valid(from: u16, to: u16, seq: u32, byte in 0..SYN_LEN, bit in 0..8_u8) {
            for ends in both_ends(from, to) {
                let mut out = Vec::new();
                rst(&ends, seq, &mut out);
                prop_assert_eq!(checksum(&ends, &out), 0);
                out.clear();
                syn(&ends, seq, &mut out);
                prop_assert_eq!(checksum(&ends, &out), 0);
                let header = parse_tcp(&out).expect("whole");
                prop_assert_eq!((header.source, header.destination), (from, to));
                prop_assert_eq!((header.seq, header.flags), (seq, TcpHeader::SYN));
                out[byte] ^= 1 << bit;
                prop_assert_ne!(checksum(&ends, &out), 0);
            }
        }

        #[test]
        fn an_answer_identifies_its_syn(from: u16, to: u16, seq: u32) {
            let mut out = Vec::new();
            segment(&both_ends(from, to)[1], &bare(0, 0x14), &mut out);
            out[8..12].copy_from_slice(&seq.wrapping_add(1).to_be_bytes());
            let answer = parse_answer(&out).expect("an answer");
            prop_assert_eq!(answer, Answer { from, to, verdict: Verdict::Refused, seq });
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..80)) {
            let _ = parse_answer(&bytes);
        }
    }
}
