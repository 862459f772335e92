//! The progress of a recording: what each point has captured, and when it is over.
//!
//! Owns the counters that the points' threads and the waiting thread share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The progress of a point.
#[derive(Debug)]
pub(super) struct Tally {
    /// Maximum number of packets.
    max_packets: u64,
    /// Maximum number of bytes.
    limit: u64,
    packets: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
    has_begun: AtomicBool,
    has_ended: AtomicBool,
}

impl Tally {
    pub(super) const fn new(max_packets: u64, limit: u64) -> Self {
        Self {
            max_packets,
            limit,
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            has_begun: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        }
    }

    pub(super) fn counted(&self, packets: u64, bytes: u64) {
        self.packets.store(packets, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn lost(&self, lost: u64) {
        self.lost.store(lost, Ordering::Relaxed);
    }

    /// The capture has a header: packets are recorded from now on.
    pub(super) fn mark_begun(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// Maximum number of packets.
    pub(super) const fn max_packets(&self) -> u64 {
        self.max_packets
    }

    /// No more packets follow.
    pub(super) fn mark_ended(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }

    pub(super) fn losses(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Whether the maximum number of packets or bytes is reached.
    pub(super) fn is_enough(&self) -> bool {
        self.packets() >= self.max_packets || self.is_at_limit()
    }

    /// Whether the maximum number of bytes is reached.
    pub(super) fn is_at_limit(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.limit
    }
}
