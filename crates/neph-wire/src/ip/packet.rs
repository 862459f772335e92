//! IPv4 and IPv6 headers as one type (RFC 791, 8200).
//!
//! Owns lengths, fragments, IPv6 extension headers and authentication headers. Does not own options
//! or reassembly.

use std::net::IpAddr;

use super::IpError;
use crate::bytes::Reader;

/// Maximum number of extension headers; the limit bounds the work for one packet.
const EXTENSIONS_MAX: usize = 8;

/// The protocol number of an authentication header, whose payload is not encrypted.
const AUTHENTICATION: u8 = 51;

/// A packet of either IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpPacket<'a> {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// The payload's protocol, after any extension headers.
    pub protocol: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// Type of service or traffic class: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// Length of the whole packet according to its header; a capture may have fewer bytes.
    pub total_len: usize,
    /// Bytes from the start of the packet to the payload.
    pub header_len: usize,
    /// The identification. IPv6 has one only in fragments: the lower half of its 32 bits.
    pub identification: Option<u16>,
    /// The offset of this fragment's payload in bytes; 0 for the first and for whole packets.
    pub fragment_offset: u16,
    /// Whether further fragments follow.
    pub more_fragments: MoreFragments,
    /// The available payload, without link-layer padding.
    pub payload: &'a [u8],
}

/// Whether a packet is the last or only fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoreFragments {
    /// Further fragments follow.
    Yes,
    /// This is the last fragment, or the packet is whole.
    No,
}

/// Reads an IPv4 or IPv6 header; its first four bits are the version.
///
/// # Errors
/// When the header is cut off or is inconsistent.
#[inline]
pub fn parse_ip(bytes: &[u8]) -> Result<IpPacket<'_>, IpError> {
    match bytes.first().map(|first| first >> 4) {
        Some(4) => read_v4(bytes),
        Some(6) => read_v6(bytes).ok_or(IpError::Short("IPv6"))?,
        Some(version) => Err(IpError::Version(version)),
        None => Err(IpError::Short("IP")),
    }
}

/// Returns the packet directly: nearly all packets are IPv4, and each wrapper is a copy.
#[inline]
fn read_v4(bytes: &[u8]) -> Result<IpPacket<'_>, IpError> {
    const SHORT: IpError = IpError::Short("IPv4");
    // Reading field by field would check the length each time.
    let head = bytes.first_chunk::<20>().ok_or(SHORT)?;
    let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let (header_len, traffic_class) = (usize::from(head[0] & 0x0f) * 4, head[1]);
    let (length_field, identification, fragment) = (usize::from(u16_at(2)), u16_at(4), u16_at(6));
    let (ttl, protocol) = (head[8], head[9]);
    let address_at = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
    let (source, destination) = (address_at(12), address_at(16));
    // With segmentation offload, a packet beyond 64 KiB has a total length of 0.
    let total_len = if length_field == 0 {
        bytes.len()
    } else {
        length_field
    };
    if header_len < 20 || total_len < header_len {
        // Without a total length, too few bytes were captured.
        let is_cut = header_len >= 20 && length_field == 0;
        return Err(if is_cut {
            SHORT
        } else {
            IpError::Length("IPv4")
        });
    }
    let payload = bytes.get(header_len..total_len.min(bytes.len()));
    let mut payload = payload.ok_or(SHORT)?;
    let (mut protocol, mut header_len) = (protocol, header_len);
    if protocol == AUTHENTICATION && fragment.trailing_zeros() >= 13 {
        match authenticated(payload) {
            Some(after_header) => {
                header_len += payload.len() - after_header.1.len();
                (protocol, payload) = after_header;
            }
            None if bytes.len() < total_len => return Err(SHORT),
            None => {}
        }
    }
    Ok(IpPacket {
        source: IpAddr::from(source),
        destination: IpAddr::from(destination),
        protocol,
        ttl,
        traffic_class,
        total_len,
        header_len,
        identification: Some(identification),
        fragment_offset: (fragment & 0x1fff) << 3,
        more_fragments: more(fragment & 0x2000),
        payload,
    })
}

/// The protocol and payload after an authentication header (RFC 4302).
fn authenticated(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let mut reader = Reader::new(bytes);
    let (protocol, length_words) = (reader.u8()?, usize::from(reader.u8()?));
    reader.skip(6 + 4 * length_words)?;
    Some((protocol, reader.remaining()))
}

fn read_v6(bytes: &[u8]) -> Option<Result<IpPacket<'_>, IpError>> {
    let mut reader = Reader::new(bytes);
    let [first, second, ..] = reader.array::<4>()?;
    let length_field = usize::from(reader.u16()?);
    let (next, ttl) = (reader.u8()?, reader.u8()?);
    let source: [u8; 16] = reader.array()?;
    let destination: [u8; 16] = reader.array()?;
    let total_len = if length_field == 0 {
        bytes.len()
    } else {
        40 + length_field
    };
    let body = bytes.get(40..total_len.min(bytes.len()))?;
    let after_header = match skip_extensions(next, body)? {
        Ok(after_header) => after_header,
        Err(error) => return Some(Err(error)),
    };
    Some(Ok(IpPacket {
        source: IpAddr::from(source),
        destination: IpAddr::from(destination),
        protocol: after_header.protocol,
        ttl,
        traffic_class: first << 4 | second >> 4,
        total_len,
        header_len: 40 + body.len() - after_header.payload.len(),
        identification: after_header.identification,
        fragment_offset: after_header.fragment & 0xfff8,
        more_fragments: more(after_header.fragment & 1),
        payload: after_header.payload,
    }))
}

struct AfterExtensions<'a> {
    protocol: u8,
    fragment: u16,
    identification: Option<u16>,
    payload: &'a [u8],
}

fn skip_extensions(first: u8, body: &[u8]) -> Option<Result<AfterExtensions<'_>, IpError>> {
    let mut reader = Reader::new(body);
    let (mut protocol, mut fragment, mut identification) = (first, 0, None);
    for _ in 0..=EXTENSIONS_MAX {
        match protocol {
            // Hop-by-hop, routing, destination options.
            0 | 43 | 60 => {
                protocol = reader.u8()?;
                let length_in_8_bytes = usize::from(reader.u8()?);
                reader.skip(6 + 8 * length_in_8_bytes)?;
            }
            44 => {
                protocol = reader.u8()?;
                reader.skip(1)?;
                fragment = reader.u16()?;
                reader.skip(2)?;
                identification = Some(reader.u16()?);
                if fragment & 0xfff8 != 0 {
                    // Only the first fragment contains further headers.
                    return Some(Ok(AfterExtensions {
                        protocol,
                        fragment,
                        identification,
                        payload: reader.remaining(),
                    }));
                }
            }
            AUTHENTICATION => {
                (protocol, reader) = {
                    let (protocol, after_header) = authenticated(reader.remaining())?;
                    (protocol, Reader::new(after_header))
                }
            }
            _ => {
                return Some(Ok(AfterExtensions {
                    protocol,
                    fragment,
                    identification,
                    payload: reader.remaining(),
                }));
            }
        }
    }
    Some(Err(IpError::Extensions(EXTENSIONS_MAX)))
}

fn more(bit: u16) -> MoreFragments {
    if bit == 0 {
        MoreFragments::No
    } else {
        MoreFragments::Yes
    }
}
