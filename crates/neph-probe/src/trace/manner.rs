//! How the hops of a flow are asked: what tells a traceroute from the trace of flows.

/// When a hop that does not answer is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// At once, at the pace of its distance, as often as an answer is likely.
    EachHop,
    /// When all else is known, one at a time, and only a hop that may be the destination already.
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

/// What is the same for all flows of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// Hops of one flow that are asked at the same time, where probes can be told apart.
    pub(super) at_once: u8,
    pub(super) window: Window,
    /// Probes of one flow that may be on their way to a hop at the same time.
    pub(super) together: u32,
    /// So many hops without an answer, one after the other, end a flow.
    pub(super) gap: u8,
    /// A router that was met at so many distances is met in a loop, which ends the flow.
    pub(super) rounds: usize,
    pub(super) retry: Retry,
}

impl Manner {
    /// Gentle and thorough: thousands of flows may share a router.
    pub(super) const FLOWS: Self = Self {
        at_once: 6,
        window: Window::Sliding,
        together: 1,
        gap: 5,
        rounds: 3,
        retry: Retry::EachHop,
    };

    /// Quick: the farthest hop is known after a few seconds, whatever is silent before it. Each probe
    /// may take another path, so that the same router at several distances is no loop.
    pub(super) const TRACEROUTE: Self = Self {
        at_once: 8,
        window: Window::Batches,
        together: u32::MAX,
        gap: u8::MAX,
        rounds: usize::MAX,
        retry: Retry::InDoubt,
    };
}
