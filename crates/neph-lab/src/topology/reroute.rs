//! Changes of a router's equal next hops in time.

use neph_model::Span;

use crate::gate::Recurrence;

/// An entry of what changes at routers: see [`super::Routing::Ecmp`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reroute {
    /// Index of the router, in [`super::Topology::sites`].
    pub site: usize,
    /// When it begins, after the lab's cue.
    pub at: Span,
    /// When it ends, after the cue; for ever if none. Later than [`Self::at`].
    pub until: Option<Span>,
    /// After how long it begins again; longer than it lasts.
    pub every: Option<Span>,
    /// What it does.
    pub action: RerouteAction,
}

/// What an entry does at its router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RerouteAction {
    /// The kernel's hash gets a new seed, so flows may change their path.
    Reshuffle,
    /// While it holds, the next hops over this link have another weight.
    Weight {
        /// The link's index, in [`super::Topology::links`].
        link: usize,
        /// 0 to 256; with 0 the link is not used.
        weight: u32,
    },
}

impl Reroute {
    /// Its times.
    pub(crate) const fn recurrence(&self) -> Recurrence {
        Recurrence {
            at: self.at,
            until: self.until,
            every: self.every,
        }
    }
}
