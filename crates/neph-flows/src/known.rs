//! Owns the final state of a digest, from which the view is made.

use neph_model::{Fleet, Instant, Local, Span};

use crate::flow_tally::FlowTally;
use crate::latency_bins::Bin;
use crate::loss_by_base::LossByBase;
use crate::outage::Lost;
use crate::pair::SharedDrift;
use crate::settings::Settings;
use crate::view::{FlowHistory, PathChange};

/// The final state of a digest.
#[derive(Debug)]
pub(crate) struct DigestState {
    pub(crate) fleet: Fleet,
    pub(crate) settings: Settings,
    /// Time of the first and the last message.
    pub(crate) extent: (Instant<Local>, Instant<Local>),
    /// By slot, then by time.
    pub(crate) flows: Vec<FlowHistory>,
    /// By time.
    pub(crate) changes: Vec<PathChange>,
    /// Data before this moment is incomplete.
    pub(crate) complete_since: Option<Instant<Local>>,
    /// By endpoint.
    pub(crate) flows_by_endpoint: Vec<KnownEndpointFlows>,
}

/// The data of the flows to one endpoint.
#[derive(Debug)]
pub(crate) struct KnownEndpointFlows {
    pub(crate) bins: Vec<Bin>,
    /// When all flows shared a queue.
    pub(crate) congested: Vec<(Instant<Local>, Instant<Local>)>,
    /// Whether some of these are merged, including the time between them.
    pub(crate) congestion_periods_merged: bool,
    pub(crate) tally: FlowTally,
    pub(crate) lost: Lost,
    /// Loss by base latency.
    pub(crate) loss_by_base: LossByBase,
    /// Time at levels that lasted and were neither paths nor shared queues.
    pub(crate) unexplained: Span,
    /// The drift that all flows share.
    pub(crate) drift: SharedDrift,
}
