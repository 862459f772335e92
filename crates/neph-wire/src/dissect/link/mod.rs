//! Link layers: the bytes before the IP packet in a capture.
//!
//! Owns the link types of the pcap registry that carry IP, and the headers between Ethernet and IP,
//! one row each.

mod labels;
mod llc;
mod netfilter;
mod ppp;

pub(super) use ppp::ppp;

use super::NoPacket;
use crate::bytes::Reader;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
const OLD_SERVICE_VLAN: u16 = 0x9100;
/// A smaller number is the length of an IEEE 802.3 frame.
const ETHERTYPES: u16 = 0x0600;
/// Written by Linux into cooked captures of interfaces without a link header.
const COOKED_IPV4: u16 = 0x0021;
const COOKED_IPV6: u16 = 0x0057;

/// Maximum number of tags or labels of a packet; no network stacks as many.
const TAGS_MAX: usize = 8;

/// Reads the bytes after an ethertype.
type LinkReader = for<'a> fn(Reader<'a>) -> Unwrapped<'a>;

/// Ethertypes of headers between Ethernet and IP, other than VLANs, and their readers.
const NEXT_LAYERS: [(u16, LinkReader); 3] = [
    (0x8847, labels::mpls_payload),
    (0x8848, labels::mpls_payload),
    (0x8864, ppp::over_ethernet),
];

/// The link layer of a captured packet (LINKTYPE of the pcap registry).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Ethernet (1).
    Ethernet,
    /// IP without a link header (12, 14, 101, 228, 229): tunnels, `tun`.
    Ip,
    /// Linux cooked capture (113): written for `-i any`.
    Cooked,
    /// Linux cooked capture, second version (276).
    Cooked2,
    /// Four bytes of address family in host or network byte order (0, 108): loopback of BSD.
    Loopback,
    /// PPP, with or without its address and control bytes (9, 50).
    Ppp,
    /// PPP after a byte with the direction (204).
    PppWithDirection,
    /// A PPP over Ethernet session (51).
    PppOverEthernet,
    /// Cisco HDLC (104).
    CiscoHdlc,
    /// Linux netfilter log (239).
    NetfilterLog,
    /// A link type that carries no IP or is not known.
    Unknown(u32),
}

/// The payload of a link layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Framed<'a> {
    pub(super) vlan: Option<u16>,
    pub(super) packet: &'a [u8],
}

/// The payload after some headers; `None` where the bytes end within a header.
pub(super) type Unwrapped<'a> = Option<Result<Framed<'a>, NoPacket>>;

impl Link {
    /// The link layer of this link type.
    pub const fn numbered(number: u32) -> Self {
        match number {
            1 => Self::Ethernet,
            12 | 14 | 101 | 228 | 229 => Self::Ip,
            113 => Self::Cooked,
            276 => Self::Cooked2,
            0 | 108 => Self::Loopback,
            9 | 50 => Self::Ppp,
            204 => Self::PppWithDirection,
            51 => Self::PppOverEthernet,
            104 => Self::CiscoHdlc,
            239 => Self::NetfilterLog,
            other => Self::Unknown(other),
        }
    }

    /// A link type of it in the pcap registry.
    pub const fn number(self) -> u32 {
        match self {
            Self::Ethernet => 1,
            Self::Ip => 101,
            Self::Cooked => 113,
            Self::Cooked2 => 276,
            Self::Loopback => 0,
            Self::Ppp => 9,
            Self::PppWithDirection => 204,
            Self::PppOverEthernet => 51,
            Self::CiscoHdlc => 104,
            Self::NetfilterLog => 239,
            Self::Unknown(number) => number,
        }
    }

    /// The index of the interface, if the link header contains it.
    pub fn interface(self, bytes: &[u8]) -> Option<u32> {
        let mut reader = Reader::new(bytes);
        match self {
            Self::Cooked2 => {
                reader.skip(4)?;
                reader.u32()
            }
            _ => None,
        }
    }

    /// Removes the link header.
    #[inline]
    pub(super) fn strip(self, bytes: &[u8]) -> Result<Framed<'_>, NoPacket> {
        // The fast path: nearly all packets.
        if self == Self::Ethernet
            && let Some((&[.., a, b], packet)) = bytes.split_first_chunk::<14>()
            && u16::from_be_bytes([a, b]) == IPV4
        {
            return Ok(plain(packet));
        }
        self.strip_any(bytes).unwrap_or(Err(NoPacket::Cut))
    }

    pub(super) fn strip_any(self, bytes: &[u8]) -> Unwrapped<'_> {
        let mut reader = Reader::new(bytes);
        match self {
            Self::Ethernet => {
                reader.skip(12)?;
                let kind = reader.u16()?;
                after_ethertype(kind, reader)
            }
            Self::Ip => Some(Ok(plain(bytes))),
            Self::Cooked => {
                reader.skip(14)?;
                let kind = reader.u16()?;
                after_cooked_header(kind, reader)
            }
            Self::Cooked2 => {
                let kind = reader.u16()?;
                reader.skip(18)?;
                after_cooked_header(kind, reader)
            }
            Self::Loopback => {
                reader.skip(4)?;
                Some(Ok(plain(reader.remaining())))
            }
            Self::Ppp => ppp(reader),
            Self::PppWithDirection => {
                reader.skip(1)?;
                ppp(reader)
            }
            Self::PppOverEthernet => ppp::over_ethernet(reader),
            Self::CiscoHdlc => {
                reader.skip(2)?;
                let kind = reader.u16()?;
                after_ethertype(kind, reader)
            }
            Self::NetfilterLog => netfilter::netfilter(reader),
            Self::Unknown(_) => Some(Err(NoPacket::NotIp)),
        }
    }
}

pub(super) fn plain(packet: &[u8]) -> Framed<'_> {
    Framed { vlan: None, packet }
}

/// Reads an Ethernet frame, of a capture or of a tunnel.
pub(super) fn ethernet(bytes: &[u8]) -> Unwrapped<'_> {
    Link::Ethernet.strip_any(bytes)
}

/// Reads the bytes after the protocol of a cooked capture.
fn after_cooked_header(kind: u16, reader: Reader<'_>) -> Unwrapped<'_> {
    if matches!(kind, COOKED_IPV4 | COOKED_IPV6) {
        return Some(Ok(plain(reader.remaining())));
    }
    after_ethertype(kind, reader)
}

/// Reads the bytes after an ethertype.
pub(super) fn after_ethertype(mut kind: u16, mut reader: Reader<'_>) -> Unwrapped<'_> {
    let mut vlan = None;
    for _ in 0..TAGS_MAX {
        let framed = match kind {
            IPV4 | IPV6 => {
                let packet = reader.remaining();
                return Some(Ok(Framed { vlan, packet }));
            }
            VLAN | SERVICE_VLAN | OLD_SERVICE_VLAN => {
                // VLAN 0 is no VLAN: such a tag has only a priority (IEEE 802.1Q, 9.6).
                let tag = Some(reader.u16()? & 0x0fff).filter(|number| *number != 0);
                vlan = vlan.or(tag);
                kind = reader.u16()?;
                continue;
            }
            ..ETHERTYPES => {
                match llc::llc(reader)? {
                    Ok(next) => (kind, reader) = next,
                    Err(reason) => return Some(Err(reason)),
                }
                continue;
            }
            _ => {
                let row = NEXT_LAYERS.iter().find(|(ethertype, _)| *ethertype == kind);
                let Some((_, read)) = row else { break };
                read(reader)?
            }
        };
        return Some(framed.map(|framed| Framed {
            vlan: vlan.or(framed.vlan),
            ..framed
        }));
    }
    Some(Err(NoPacket::NotIp))
}
