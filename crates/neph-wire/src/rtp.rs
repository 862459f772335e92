//! RTP packets (RFC 3550, section 5.1), their transmission time offset (RFC 5450), and the
//! extension of numbers that wrap.

use thiserror::Error;

/// The length of the fixed header in bytes.
pub const HEADER_LEN: usize = 12;
/// The SDP name of the header extension with the transmission time offset (RFC 5450).
pub const OFFSET_URI: &str = "urn:ietf:params:rtp-hdrext:toffset";
/// The profile of header extensions with one-byte headers (RFC 8285, section 4.2).
const ONE_BYTE: u16 = 0xbede;

/// Why bytes are no RTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RtpError {
    /// The packet ends within its header, contributing sources or extension.
    #[error("read rtp packet: it ends after {0} bytes, within its header")]
    TooShort(usize),
    /// A version other than 2.
    #[error("read rtp packet: version {0} is not 2")]
    UnsupportedVersion(u8),
    /// The padding is 0 or longer than the rest of the packet.
    #[error("read rtp packet: the padding length {0} does not fit")]
    InvalidPadding(u8),
}

/// The fields of the fixed header that a sender sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The payload type, 0 to 127; SDP maps it to a format.
    pub payload_type: u8,
    /// The marker bit; in video: the last packet of a frame.
    pub is_marked: bool,
    /// The sequence number, modulo 2^16.
    pub sequence: u16,
    /// The sampling time in ticks of the media clock, modulo 2^32.
    pub timestamp: u32,
    /// The synchronisation source: identifies the stream.
    pub ssrc: u32,
}

/// A header extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// The format of the data.
    pub profile: u16,
    /// Whole words of 4 bytes.
    pub data: &'a [u8],
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The fixed header.
    pub header: Header,
    /// Contributing sources, 4 bytes each.
    pub sources: &'a [u8],
    /// The header extension.
    pub extension: Option<Extension<'a>>,
    /// The payload, without padding.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a packet.
    ///
    /// # Errors
    /// It is too short, of another version, or its padding does not fit.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, RtpError> {
        let short = RtpError::TooShort(bytes.len());
        let (fixed, remaining) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(short)?;
        let [first, second, s0, s1, t0, t1, t2, t3, c0, c1, c2, c3] = *fixed;
        if first >> 6 != 2 {
            return Err(RtpError::UnsupportedVersion(first >> 6));
        }
        let count = usize::from(first & 0x0f) * 4;
        let (sources, remaining) = remaining.split_at_checked(count).ok_or(short)?;
        let (extension, remaining) = if first & 0x10 == 0 {
            (None, remaining)
        } else {
            let (extension, remaining) = Extension::decode(remaining).ok_or(short)?;
            (Some(extension), remaining)
        };
        let payload = if first & 0x20 == 0 {
            remaining
        } else {
            let padding = remaining.last().copied().unwrap_or(0);
            let end = remaining.len().checked_sub(usize::from(padding));
            let end = end.filter(|_| padding > 0);
            &remaining[..end.ok_or(RtpError::InvalidPadding(padding))?]
        };
        Ok(Self {
            header: Header {
                payload_type: second & 0x7f,
                is_marked: second & 0x80 != 0,
                sequence: u16::from_be_bytes([s0, s1]),
                timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
                ssrc: u32::from_be_bytes([c0, c1, c2, c3]),
            },
            sources,
            extension,
            payload,
        })
    }

    /// Appends the packet. Omits sources beyond 15, bytes beyond whole words, and extension data
    /// beyond 65535 words.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let count = (self.sources.len() / 4).min(15);
        let has_extension = u8::from(self.extension.is_some());
        #[expect(clippy::cast_possible_truncation, reason = "at most 15")]
        out.push(0x80 | (has_extension << 4) | count as u8);
        let header = self.header;
        out.push((u8::from(header.is_marked) << 7) | (header.payload_type & 0x7f));
        out.extend(header.sequence.to_be_bytes());
        out.extend(header.timestamp.to_be_bytes());
        out.extend(header.ssrc.to_be_bytes());
        out.extend(&self.sources[..count * 4]);
        if let Some(extension) = self.extension {
            let text = u16::try_from(extension.data.len() / 4).unwrap_or(u16::MAX);
            out.extend(extension.profile.to_be_bytes());
            out.extend(text.to_be_bytes());
            out.extend(&extension.data[..usize::from(text) * 4]);
        }
        out.extend(self.payload);
    }

    /// Send time minus timestamp in ticks of the media clock (RFC 5450), if the extension has an
    /// element with this ID.
    pub fn transmission_offset(&self, id: u8) -> Option<i32> {
        let [high, middle, low] = *self.extension?.element(id)?.first_chunk::<3>()?;
        // The upper 24 bits of a signed number.
        Some(i32::from_be_bytes([high, middle, low, 0]) >> 8)
    }
}

impl<'a> Extension<'a> {
    fn decode(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, remaining) = bytes.split_first_chunk::<4>()?;
        let profile = u16::from_be_bytes([head[0], head[1]]);
        let text = u16::from_be_bytes([head[2], head[3]]);
        let (data, remaining) = remaining.split_at_checked(usize::from(text) * 4)?;
        Some((Self { profile, data }, remaining))
    }

    /// The data of the element with this ID, 1 to 14 (RFC 8285, one-byte headers).
    pub fn element(&self, id: u8) -> Option<&'a [u8]> {
        if self.profile != ONE_BYTE {
            return None;
        }
        let mut data = self.data;
        while let Some((head, remaining)) = data.split_first() {
            // A zero byte is padding; ID 15 ends the elements.
            match head >> 4 {
                0 => data = remaining,
                15 => return None,
                number => {
                    let (element, remaining) =
                        remaining.split_at_checked(usize::from(head & 0x0f) + 1)?;
                    if number == id {
                        return Some(element);
                    }
                    data = remaining;
                }
            }
        }
        None
    }
}

/// The data of an extension with only a transmission time offset in ticks, limited to 24 bits.
pub fn offset_element(id: u8, ticks: i32) -> [u8; 4] {
    const MAXIMUM: i32 = (1 << 23) - 1;
    let [_, high, middle, low] = ticks.clamp(-MAXIMUM, MAXIMUM).to_be_bytes();
    [(id << 4) | 2, high, middle, low]
}

/// An extension with the data of [`offset_element`].
pub const fn offset_extension(data: &[u8; 4]) -> Extension<'_> {
    Extension {
        profile: ONE_BYTE,
        data,
    }
}

/// Extends 16-bit sequence numbers to numbers that do not wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceExtender(Extender);

/// Extends 32-bit timestamps to numbers that do not wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimestampExtender(Extender);

impl SequenceExtender {
    /// Extends a number: the value with these low bits that is nearest to the highest so far. The
    /// first number is unchanged.
    pub fn extend(&mut self, sequence: u16) -> i64 {
        self.0.extend(i64::from(sequence), 1 << 16)
    }

    /// The highest number so far.
    pub const fn highest(&self) -> Option<i64> {
        self.0.highest
    }
}

impl TimestampExtender {
    /// Extends a number: the value with these low bits that is nearest to the highest so far. The
    /// first number is unchanged.
    pub fn extend(&mut self, timestamp: u32) -> i64 {
        self.0.extend(i64::from(timestamp), 1 << 32)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extender {
    highest: Option<i64>,
}

impl Extender {
    fn extend(&mut self, low: i64, modulus: i64) -> i64 {
        let Some(highest) = self.highest else {
            self.highest = Some(low);
            return low;
        };
        let distance = (low - highest).rem_euclid(modulus);
        let distance = if distance > modulus / 2 {
            distance - modulus
        } else {
            distance
        };
        let extended = highest.saturating_add(distance);
        self.highest = Some(highest.max(extended));
        extended
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn header() -> Header {
        Header {
            payload_type: 96,
            is_marked: true,
            sequence: 0x1234,
            timestamp: 0x0102_0304,
            ssrc: 0xa0b0_c0d0,
        }
    }

    #[test]
    fn a_packet_has_the_bytes_of_rfc_3550() {
        let mut bytes = Vec::new();
        let element = offset_element(1, -2);
        let packet = Packet {
            header: header(),
            sources: &[],
            extension: Some(offset_extension(&element)),
            payload: b"xy",
        };
        packet.encode(&mut bytes);
        let mut expected = vec![0x90, 0xe0, 0x12, 0x34, 1, 2, 3, 4, 0xa0, 0xb0, 0xc0, 0xd0];
        expected.extend([0xbe, 0xde, 0, 1, 0x12, 0xff, 0xff, 0xfe]);
        expected.extend(b"xy");
        assert_eq!(bytes, expected);
        let read = Packet::decode(&bytes).expect("a packet");
        assert_eq!(read, packet);
        assert_eq!(read.transmission_offset(1), Some(-2));
        assert_eq!(read.transmission_offset(2), None);
    }

    #[test]
    fn padding_is_no_payload_and_invalid_packets_are_refused() {
        let mut bytes = Vec::new();
        let packet = Packet {
            header: header(),
            sources: &[],
            extension: None,
            payload: &[7, 7, 0, 2],
        };
        packet.encode(&mut bytes);
        bytes[0] |= 0x20;
        assert_eq!(
            Packet::decode(&bytes).map(|read| read.payload),
            Ok(&[7, 7][..])
        );
        bytes[15] = 5;
        assert_eq!(Packet::decode(&bytes), Err(RtpError::InvalidPadding(5)));
        assert_eq!(
            Packet::decode(&bytes[..12]),
            Err(RtpError::InvalidPadding(0))
        );
        bytes[0] = 0x40;
        assert_eq!(Packet::decode(&bytes), Err(RtpError::UnsupportedVersion(1)));
        bytes[0] = 0x82;
        assert_eq!(Packet::decode(&bytes), Err(RtpError::TooShort(16)));
        assert_eq!(Packet::decode(&bytes[..11]), Err(RtpError::TooShort(11)));
    }

    #[test]
    fn wrapped_and_late_sequence_numbers_are_extended() {
        let mut sequence = SequenceExtender::default();
        let numbers = [65_534, 65_535, 1, 0, 65_533, 2];
        let extended = numbers.map(|number| sequence.extend(number));
        assert_eq!(extended, [65_534, 65_535, 65_537, 65_536, 65_533, 65_538]);
        let mut timestamp = TimestampExtender::default();
        assert_eq!(timestamp.extend(u32::MAX), (1 << 32) - 1);
        assert_eq!(timestamp.extend(3_599), (1 << 32) + 3_599);
    }

    proptest! {
        #[test]
        fn rtp_packets_roundtrip(
            payload_type in 0u8..128, is_marked: bool, sequence: u16, timestamp: u32, ssrc: u32,
            sources in vec(any::<[u8; 4]>(), 0..16), text in vec(any::<[u8; 4]>(), 0..5),
            profile: u16, has_extension: bool, payload in vec(any::<u8>(), 0..64),
        ) {
            let header = Header { payload_type, is_marked, sequence, timestamp, ssrc };
            let (sources, data) = (sources.concat(), text.concat());
            let extension = has_extension.then_some(Extension { profile, data: &data });
            let packet = Packet { header, sources: &sources, extension, payload: &payload };
            let mut bytes = Vec::new();
            packet.encode(&mut bytes);
            prop_assert_eq!(Packet::decode(&bytes), Ok(packet));
        }

        #[test]
        fn transmission_offsets_roundtrip(id in 1u8..15, ticks in -8_388_607i32..8_388_608) {
            let element = offset_element(id, ticks);
            let extension = Some(offset_extension(&element));
            let packet = Packet { header: header(), sources: &[], extension, payload: &[] };
            prop_assert_eq!(packet.transmission_offset(id), Some(ticks));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..64)) {
            if let Ok(packet) = Packet::decode(&bytes) {
                for id in 0..16 {
                    packet.transmission_offset(id);
                }
            }
        }

        #[test]
        fn sequence_steps_below_half_the_range_are_extended(
            start: u16, steps in vec(-1_000i64..20_000, 0..50),
        ) {
            let mut extender = SequenceExtender::default();
            let mut number = i64::from(start);
            prop_assert_eq!(extender.extend(start), number);
            for step in steps {
                let next = number + step;
                let low = u16::try_from(next.rem_euclid(1 << 16)).expect("16 bits");
                prop_assert_eq!(extender.extend(low), next);
                number = number.max(next);
            }
        }
    }
}
