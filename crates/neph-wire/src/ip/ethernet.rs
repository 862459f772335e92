//! Ethernet frames; skips up to two VLAN tags.
//!
//! Owns the frame header.

use super::IpError;
use crate::bytes::Reader;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ethernet<'a> {
    /// Destination MAC address.
    pub destination: [u8; 6],
    /// Source MAC address.
    pub source: [u8; 6],
    /// The ethertype of the payload, after any VLAN tags.
    pub ethertype: u16,
    /// The outer VLAN ID, 0-4095.
    pub vlan: Option<u16>,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

impl Ethernet<'_> {
    /// Whether the payload is an IP packet.
    pub fn is_ip(&self) -> bool {
        matches!(self.ethertype, IPV4 | IPV6)
    }
}

/// Reads a frame header.
///
/// # Errors
/// When it is cut off.
pub fn parse_ethernet(frame: &[u8]) -> Result<Ethernet<'_>, IpError> {
    read(frame).ok_or(IpError::Short("Ethernet"))
}

fn read(frame: &[u8]) -> Option<Ethernet<'_>> {
    let mut reader = Reader::new(frame);
    let (destination, source) = (reader.array()?, reader.array()?);
    let mut ethertype = reader.u16()?;
    let mut vlan = None;
    for _ in 0..2 {
        if !matches!(ethertype, VLAN | SERVICE_VLAN) {
            break;
        }
        let tag = reader.u16()? & 0x0fff;
        vlan = vlan.or(Some(tag));
        ethertype = reader.u16()?;
    }
    Some(Ethernet {
        destination,
        source,
        ethertype,
        vlan,
        payload: reader.remaining(),
    })
}
