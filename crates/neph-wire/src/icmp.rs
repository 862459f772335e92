//! ICMP and `ICMPv6` echo, and the ICMP errors that quote neph's packets (RFC 792, 4443).
//!
//! Owns the messages without their IP header. Does not own sockets; on a datagram or `ICMPv6`
//! socket the kernel writes identifier and checksum.
//!
//! The payload of neph's echo request is `"NEpi"`, the 64-bit sequence number, a 64-bit token if it
//! has room for one, then zeroes. The header's 16-bit sequence number wraps after 65,536 messages:
//! at 1,000 per second within 66 s. Only a host that sees a request knows its token.

use thiserror::Error;

use crate::bytes::Reader;
use crate::checksum::internet_checksum;
use crate::ip::{self, IpError, IpPacket};

/// Length of an echo header, bytes.
pub const HEADER_LEN: usize = 8;

/// The smallest payload of neph's echo request.
pub const MIN_PAYLOAD_LEN: usize = 12;
/// The smallest payload with room for a token.
pub const PAYLOAD_LEN_WITH_TOKEN: usize = MIN_PAYLOAD_LEN + 8;

const MAGIC: [u8; 4] = *b"NEpi";

/// The protocol of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// ICMP.
    V4,
    /// `ICMPv6`.
    V6,
}

/// An echo request of neph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoRequest {
    /// The identifier; on a datagram socket the kernel replaces it.
    pub ident: u16,
    /// The message number; its low 16 bits are in the header.
    pub seq: u64,
    /// Bytes after the 8-byte header, at least [`MIN_PAYLOAD_LEN`].
    pub payload: usize,
    /// The token that a reply must return, from [`PAYLOAD_LEN_WITH_TOKEN`] on.
    pub token: u64,
}

/// A received echo request or reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo<'a> {
    /// The identifier.
    pub ident: u16,
    /// The sequence number of the header.
    pub seq16: u16,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

/// A message, as far as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpMessage<'a> {
    /// An echo request.
    EchoRequest(Echo<'a>),
    /// An echo reply.
    EchoReply(Echo<'a>),
    /// A router dropped a packet because its TTL expired.
    TimeExceeded {
        /// The message's code.
        code: u8,
        /// The start of the dropped packet; see [`parse_quoted`].
        quoted: &'a [u8],
    },
    /// A router or host dropped a packet that it could not deliver.
    Unreachable {
        /// The message's code.
        code: u8,
        /// The start of the dropped packet; see [`parse_quoted`].
        quoted: &'a [u8],
    },
    /// Any other message.
    Other {
        /// The message's type.
        kind: u8,
        /// The message's code.
        code: u8,
    },
}

/// The packet that an error message quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoted<'a> {
    /// The IP header of the packet; its payload may be cut.
    pub ip: IpPacket<'a>,
    /// The transport header.
    pub inner: QuotedInner,
}

/// The transport header of a quoted packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotedInner {
    /// UDP or TCP.
    Ports {
        /// The source port.
        source: u16,
        /// The destination port.
        destination: u16,
    },
    /// An echo request.
    Echo {
        /// The identifier.
        ident: u16,
        /// The sequence number of the header.
        seq16: u16,
        /// The 64-bit message number, when enough of neph's payload is quoted.
        seq: Option<u64>,
    },
    /// Another header, or too little of it.
    Unknown,
}

/// Why bytes are no ICMP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IcmpError {
    /// Fewer than [`HEADER_LEN`] bytes.
    #[error("read ICMP message: {0} bytes is too short")]
    TooShort(usize),
    /// The checksum is wrong (ICMP only; an `ICMPv6` checksum covers addresses that are not
    /// available).
    #[error("read ICMP message: checksum is wrong")]
    WrongChecksum,
    /// The quoted bytes are no packet.
    #[error("read quoted packet: {0}")]
    InvalidQuote(#[from] IpError),
}

impl Family {
    pub(crate) fn echo_request(self) -> u8 {
        match self {
            Self::V4 => 8,
            Self::V6 => 128,
        }
    }
}

impl EchoRequest {
    /// Appends the message; for [`Family::V6`] the kernel fills in the checksum.
    pub fn encode(&self, family: Family, out: &mut Vec<u8>) {
        let start = out.len();
        let [.., high, low] = self.seq.to_be_bytes();
        out.extend_from_slice(&[family.echo_request(), 0, 0, 0]);
        out.extend_from_slice(&self.ident.to_be_bytes());
        out.extend_from_slice(&[high, low]);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.seq.to_be_bytes());
        if self.payload >= PAYLOAD_LEN_WITH_TOKEN {
            out.extend_from_slice(&self.token.to_be_bytes());
        }
        out.resize(start + HEADER_LEN + self.payload.max(MIN_PAYLOAD_LEN), 0);
        if family == Family::V4 {
            let sum = internet_checksum(&[&out[start..]]);
            out[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

impl Echo<'_> {
    /// The 64-bit message number; `None` when the payload is not neph's, or its number does not
    /// match the header's.
    pub fn seq(&self) -> Option<u64> {
        let seq = own_seq(self.payload)?;
        (seq & 0xffff == u64::from(self.seq16)).then_some(seq)
    }

    /// The token of neph's payload; `None` without room for one.
    pub fn token(&self) -> Option<u64> {
        let token = self.payload.get(MIN_PAYLOAD_LEN..PAYLOAD_LEN_WITH_TOKEN)?;
        token.try_into().ok().map(u64::from_be_bytes)
    }
}

/// Reads a message without its IP header.
///
/// # Errors
/// When it is too short, or an ICMP checksum is wrong.
pub fn parse(family: Family, message: &[u8]) -> Result<IcmpMessage<'_>, IcmpError> {
    let short = IcmpError::TooShort(message.len());
    let mut reader = Reader::new(message);
    let (kind, code, _sum) = read_start(&mut reader).ok_or(short)?;
    let word: [u8; 4] = reader.array().ok_or(short)?;
    if family == Family::V4 && internet_checksum(&[message]) != 0 {
        return Err(IcmpError::WrongChecksum);
    }
    let remaining = reader.remaining();
    let [a, b, c, d] = word;
    let (ident, seq16) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let echo = Echo {
        ident,
        seq16,
        payload: remaining,
    };
    Ok(match (family, kind) {
        (Family::V4, 8) | (Family::V6, 128) => IcmpMessage::EchoRequest(echo),
        (Family::V4, 0) | (Family::V6, 129) => IcmpMessage::EchoReply(echo),
        (Family::V4, 11) | (Family::V6, 3) => IcmpMessage::TimeExceeded {
            code,
            quoted: remaining,
        },
        (Family::V4, 3) | (Family::V6, 1) => IcmpMessage::Unreachable {
            code,
            quoted: remaining,
        },
        _ => IcmpMessage::Other { kind, code },
    })
}

/// Reads the packet that an error message quotes; eight bytes of its transport header suffice.
///
/// # Errors
/// When the quote does not start with a complete IP header.
pub fn parse_quoted(quoted: &[u8]) -> Result<Quoted<'_>, IcmpError> {
    let ip = ip::parse_ip(quoted)?;
    let inner = quoted_inner(&ip).unwrap_or(QuotedInner::Unknown);
    Ok(Quoted { ip, inner })
}

fn quoted_inner(ip: &IpPacket<'_>) -> Option<QuotedInner> {
    if ip.fragment_offset != 0 {
        return None;
    }
    let mut reader = Reader::new(ip.payload);
    match ip.protocol {
        ip::TCP | ip::UDP => {
            let (source, destination) = (reader.u16()?, reader.u16()?);
            Some(QuotedInner::Ports {
                source,
                destination,
            })
        }
        ip::ICMP | ip::ICMPV6 => {
            let (kind, _code, _sum) = read_start(&mut reader)?;
            let family = if ip.protocol == ip::ICMP {
                Family::V4
            } else {
                Family::V6
            };
            if kind != family.echo_request() {
                return None;
            }
            let (ident, seq16) = (reader.u16()?, reader.u16()?);
            Some(QuotedInner::Echo {
                ident,
                seq16,
                seq: own_seq(reader.remaining()),
            })
        }
        _ => None,
    }
}

fn read_start(reader: &mut Reader<'_>) -> Option<(u8, u8, u16)> {
    Some((reader.u8()?, reader.u8()?, reader.u16()?))
}

fn own_seq(payload: &[u8]) -> Option<u64> {
    let mut reader = Reader::new(payload);
    let magic: [u8; 4] = reader.array()?;
    if magic == MAGIC { reader.u64() } else { None }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn echo_requests_roundtrip(ident: u16, seq: u64, token: u64, payload in 0usize..1500) {
            for family in [Family::V4, Family::V6] {
                let mut out = Vec::new();
                EchoRequest { ident, seq, payload, token }.encode(family, &mut out);
                prop_assert_eq!(out.len(), HEADER_LEN + payload.max(MIN_PAYLOAD_LEN));
                let Ok(IcmpMessage::EchoRequest(echo)) = parse(family, &out) else {
                    return Err(TestCaseError::fail("not an echo request"));
                };
                prop_assert_eq!((echo.ident, echo.seq()), (ident, Some(seq)));
                let has_room = payload >= PAYLOAD_LEN_WITH_TOKEN;
                prop_assert_eq!(echo.token(), has_room.then_some(token));
            }
        }

        #[test]
        fn a_single_bit_error_is_a_checksum_error(seq: u64, at in 0usize..20, bit in 0u8..8) {
            let mut out = Vec::new();
            EchoRequest { ident: 7, seq, payload: MIN_PAYLOAD_LEN, token: 0 }.encode(Family::V4, &mut out);
            out[at] ^= 1 << bit;
            prop_assert_eq!(parse(Family::V4, &out), Err(IcmpError::WrongChecksum));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..120)) {
            for family in [Family::V4, Family::V6] {
                if let Ok(IcmpMessage::TimeExceeded { quoted, .. }) = parse(family, &bytes) {
                    prop_assert!(quoted.len() + HEADER_LEN == bytes.len());
                }
            }
            if let Ok(quoted) = parse_quoted(&bytes) {
                prop_assert!(quoted.ip.payload.len() < bytes.len());
            }
        }
    }

    #[test]
    fn an_icmp_error_quotes_the_dropped_packet() {
        let mut packet = vec![
            0x45, 0, 0, 40, 0, 0, 0x40, 0, 1, 1, 0, 0, 10, 0, 0, 1, 10, 0, 9, 9,
        ];
        EchoRequest {
            ident: 9,
            seq: 0x1_0002,
            payload: 12,
            token: 0,
        }
        .encode(Family::V4, &mut packet);
        for (keep, seq) in [(packet.len(), Some(0x1_0002)), (28, None)] {
            let quoted = parse_quoted(&packet[..keep]).expect("whole header");
            assert_eq!(
                quoted.ip.destination,
                IpAddr::V4(Ipv4Addr::new(10, 0, 9, 9))
            );
            assert_eq!(
                quoted.inner,
                QuotedInner::Echo {
                    ident: 9,
                    seq16: 2,
                    seq
                }
            );
        }
    }
}
