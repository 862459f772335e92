//! The options of a capture.

use neph_model::ByteSize;
use neph_wire::dissect::Link;
use neph_wire::filter::Wanted;

/// All interfaces, as in tcpdump.
pub const ANY: &str = "any";
/// How packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureMethod {
    /// A packet ring, as in tcpdump.
    Ring,
    /// BPF programs that copy the start of each packet.
    Bpf,
}

impl CaptureMethod {
    /// Its name in options and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Bpf => "bpf",
        }
    }
}

/// The options of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Listening<'a> {
    /// The interface, or [`ANY`].
    pub interface: &'a str,
    /// The interface's network namespace; the calling thread's if `None`.
    pub site: Option<&'a str>,
    /// The option that names another network namespace, for error messages.
    pub remote: &'static str,
    /// Maximum captured bytes of each packet.
    pub snaplen: u32,
    /// Memory for waiting packets.
    pub ring: ByteSize,
    /// Maximum number of packets.
    pub max_packets: u64,
    /// Which packets are captured.
    pub wanted: &'a Wanted,
    /// The capture method, if one was requested.
    pub method: Option<CaptureMethod>,
}

/// Counters since the start of the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounters {
    /// Packets that were read.
    pub packets: u64,
    /// Of these, packets that are not IP.
    pub not_ip: u64,
    /// Packets that were lost because the ring was full.
    pub lost: u64,
    /// How often the ring was full.
    pub frozen: u64,
}

impl CaptureCounters {
    /// The counts after `before`.
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

/// The link layer of captured packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heads {
    /// All have the same link header.
    Ambiguous(Link),
    /// No link header: packets of all interfaces.
    Any,
}
