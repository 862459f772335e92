//! Transfers that load a lab's links.

use neph_model::Span;

/// A bulk transfer over TCP between two sites, at its time after the lab's cue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Lower-case letters, digits and hyphens; at most 24. Unique among the traffic.
    pub name: String,
    /// Index of the site that sends, in [`super::Topology::sites`].
    pub from: usize,
    /// Index of the site that receives.
    pub to: usize,
    /// When it begins.
    pub at: Span,
    /// When it ends; always after `at`.
    pub until: Span,
    /// After how long it begins again; longer than it lasts.
    pub every: Option<Span>,
    /// Connections at once; 1 to 64.
    pub streams: u16,
    /// Their congestion control; the sending site's if absent.
    pub congestion: Option<String>,
}
