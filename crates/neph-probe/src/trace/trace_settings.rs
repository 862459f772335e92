//! How the hops of a flow are asked: the difference between a traceroute and the trace of flows.

/// When a hop that does not answer is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// At once, at the pace of its distance, as often as an answer is likely.
    EachHop,
    /// When all else is known, one at a time, and only a hop that may already be the destination.
    InDoubt,
}

/// When a flow asks farther hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    /// As soon as the nearest is known.
    Sliding,
    /// When all that were asked together are known.
    Batches,
}

/// Settings that all flows of a trace share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceSettings {
    /// Hops of one flow that are asked at the same time, if probes can be distinguished.
    pub(super) max_hops_in_flight: u8,
    pub(super) window: Window,
    /// Probes of one flow that may be in flight to a hop at the same time.
    pub(super) max_probes_in_flight: u32,
    /// This many consecutive hops without an answer end a flow.
    pub(super) gap: u8,
    /// A router at this many distances is a loop, which ends the flow.
    pub(super) loop_threshold: usize,
    pub(super) retry: Retry,
}

impl TraceSettings {
    /// Slow and thorough: thousands of flows may share a router.
    pub(super) const FLOWS: Self = Self {
        max_hops_in_flight: 6,
        window: Window::Sliding,
        max_probes_in_flight: 1,
        gap: 5,
        loop_threshold: 3,
        retry: Retry::EachHop,
    };

    /// Fast: the farthest hop is known after a few seconds, even after silent hops. Each probe may take
    /// another path, so the same router at several distances is no loop.
    pub(super) const TRACEROUTE: Self = Self {
        max_hops_in_flight: 8,
        window: Window::Batches,
        max_probes_in_flight: u32::MAX,
        gap: u8::MAX,
        loop_threshold: usize::MAX,
        retry: Retry::InDoubt,
    };
}
