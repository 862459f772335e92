//! A captured packet, as the kernel reports it.
//!
//! Owns the data of a packet from each source: a block of a [`super::BlockRing`], or a
//! [`crate::bpf::Copier`]. Does not dissect it.

/// A packet, from its link header on, or from behind it where all interfaces are listened to.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'memory> {
    pub(crate) bytes: &'memory [u8],
    pub(crate) stamp: i64,
    pub(crate) wire_length: u32,
    pub(crate) tag: Option<Tag>,
    pub(crate) interface: u32,
    pub(crate) hardware: u16,
    pub(crate) passage: u8,
    pub(crate) protocol: u16,
}

/// A VLAN tag that the kernel took out of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Priority, one bit of eligibility to be dropped, and in the lower twelve bits the VLAN.
    pub control: u16,
    /// The ethertype that stood before it: 0x8100 or 0x88a8.
    pub protocol: u16,
}

impl<'memory> Packet<'memory> {
    /// The bytes that were kept, without the tag.
    pub const fn bytes(&self) -> &'memory [u8] {
        self.bytes
    }

    /// When the kernel saw it: nanoseconds of `CLOCK_REALTIME` since the epoch.
    pub const fn stamp(&self) -> i64 {
        self.stamp
    }

    /// Its length on the wire in bytes, link header included, the tag and the checksum not.
    pub const fn wire_length(&self) -> u32 {
        self.wire_length
    }

    /// The outermost VLAN tag, which is not in [`Self::bytes`].
    pub const fn tag(&self) -> Option<Tag> {
        self.tag
    }

    /// Whether this host sent it out of the interface.
    pub const fn is_outgoing(&self) -> bool {
        self.passage == libc::PACKET_OUTGOING
    }

    /// Whether it was sent to loopback, where it comes again as received.
    pub const fn is_echo(&self) -> bool {
        self.is_outgoing() && self.hardware == libc::ARPHRD_LOOPBACK
    }

    /// The number of the interface that it passed, in its network namespace.
    pub const fn interface(&self) -> u32 {
        self.interface
    }

    /// What kind of interface that is: a number of `linux/if_arp.h`.
    pub const fn hardware(&self) -> u16 {
        self.hardware
    }

    /// How it passed: a number of `linux/if_packet.h` (0 to us, 4 from us).
    pub const fn passage(&self) -> u8 {
        self.passage
    }

    /// What is behind the link header, and behind the outermost tag: an ethertype.
    pub const fn protocol(&self) -> u16 {
        self.protocol
    }
}
