//! Owns what a digest knows at its end, of which the view is made.

use neph_model::{Fleet, Instant, Own, Span};

use crate::fairness::Bin;
use crate::fates::Fates;
use crate::flow_tally::FlowTally;
use crate::outage::Lost;
use crate::pair::SharedDrift;
use crate::settings::Settings;
use crate::view::{FlowHistory, PathChange};

/// What a digest knows at its end.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) fleet: Fleet,
    pub(crate) settings: Settings,
    /// First and last sending.
    pub(crate) extent: (Instant<Own>, Instant<Own>),
    /// By lane, then by time.
    pub(crate) flows: Vec<FlowHistory>,
    /// By time.
    pub(crate) changes: Vec<PathChange>,
    /// What was before this is not known any more.
    pub(crate) horizon: Option<Instant<Own>>,
    /// Of each endpoint.
    pub(crate) crowds: Vec<KnownCrowd>,
}

/// What is known of the flows to one endpoint.
#[derive(Debug)]
pub(crate) struct KnownCrowd {
    pub(crate) bins: Vec<Bin>,
    /// When a queue stood that all flows shared.
    pub(crate) congested: Vec<(Instant<Own>, Instant<Own>)>,
    /// Whether some of these are several, with the time between them.
    pub(crate) queues_joined: bool,
    pub(crate) tally: FlowTally,
    pub(crate) lost: Lost,
    /// What was lost at which base latency.
    pub(crate) fates: Fates,
    /// Time at levels that lasted and were not told as paths, nor in a queue of all flows.
    pub(crate) elsewhere: Span,
    /// What all flows drifted by.
    pub(crate) drift: SharedDrift,
}
