//! What is listened to, and how.

use neph_model::ByteSize;
use neph_wire::dissect::Link;
use neph_wire::filter::Wanted;

/// All interfaces, as tcpdump has it.
pub const ANY: &str = "any";
/// How packets come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureMethod {
    /// Through a packet ring, as tcpdump has them.
    Ring,
    /// Through BPF programs that copy the beginning of each packet.
    Bpf,
}

impl CaptureMethod {
    /// The word for it in options and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Bpf => "bpf",
        }
    }
}

/// What is listened to.
#[derive(Clone, Copy, Debug)]
pub struct Listening<'a> {
    /// The interface, or [`ANY`].
    pub interface: &'a str,
    /// The network namespace that it is in; the calling thread's where none is named.
    pub site: Option<&'a str>,
    /// What whoever asked would write for another one.
    pub remote: &'static str,
    /// Bytes that are kept of each packet, at most.
    pub kept: u32,
    /// Memory in which packets wait.
    pub ring: ByteSize,
    /// Packets that are enough.
    pub most: u64,
    /// Which packets are meant.
    pub wanted: &'a Wanted,
    /// How packets come, where that was asked for.
    pub way: Option<CaptureMethod>,
}

/// What was counted since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Packets that were looked at.
    pub packets: u64,
    /// Packets of those that are not IP.
    pub not_ip: u64,
    /// Packets that were lost because the ring was full.
    pub lost: u64,
    /// How often the ring was full.
    pub frozen: u64,
}

impl Seen {
    /// What was counted after `before`.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            packets: self.packets - before.packets,
            not_ip: self.not_ip - before.not_ip,
            lost: self.lost - before.lost,
            frozen: self.frozen - before.frozen,
        }
    }
}

/// What packets of the ring begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heads {
    /// All with the same link header.
    Ambiguous(Link),
    /// What is behind the link header of whatever interface they passed.
    Any,
}
