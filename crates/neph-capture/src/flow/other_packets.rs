//! Packets of which no flow is made.

use neph_wire::dissect::{Dissected, Transport};

/// Packets that are of no flow here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OtherPackets {
    /// Of UDP.
    pub udp: u64,
    /// Of ICMP.
    pub icmp: u64,
    /// Parts of packets without a header of their own.
    pub fragments: u64,
    /// Of other protocols, or with a header that contradicts itself.
    pub other_protocols: u64,
    /// Whose headers were cut off.
    pub truncated: u64,
}

impl OtherPackets {
    pub(super) fn count(&mut self, packet: &Dissected<'_>) {
        let count = match &packet.transport {
            _ if packet.is_cut() => &mut self.truncated,
            Transport::Udp { .. } => &mut self.udp,
            Transport::Icmp(_) => &mut self.icmp,
            Transport::Fragment => &mut self.fragments,
            Transport::Tcp { .. } | Transport::Other => &mut self.other_protocols,
        };
        *count += 1;
    }
}
