//! The contract between the sender of orders and the executor that carries them out: this process,
//! a site of a lab, or a remote agent.
//!
//! Owns the trait and the reports of an executor. Reports are plain data for a store, a screen or a
//! connection.

#[cfg(feature = "contract")]
pub mod contract;

use std::fmt::{self, Debug};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CampaignId, Captured, Ending, ExperimentId, ExperimentResult, Order, OrderFailed, PacketSample,
    PingBetween, Prepared, Progress, Records, Span, Throughput, Traceroute,
};

/// The number of a submitted order. Each executor has its own numbers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Ticket(pub u64);

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order {}", self.0)
    }
}

/// The result of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderResult {
    /// One result per experiment, in the sequence of [`Order::Experiments`].
    Experiments(Vec<Result<ExperimentResult, OrderFailed>>),
    /// The throughput check, with its failure if it failed.
    Throughput(Throughput),
    /// The traceroute, with its failure if it failed.
    Traceroute(Traceroute),
    /// The pings ended. Pings that could not be sent are no failure of the order: the experiments
    /// report them.
    Pings,
    /// The load ended.
    Load,
    /// The reflector ended.
    Reflector,
    /// The capture ended; its file was reported before.
    Captured(Captured),
}

impl OrderResult {
    /// Why the order, or its first failed experiment, brought no complete result.
    pub fn failure(&self) -> Option<String> {
        let Self::Experiments(results) = self else {
            return None;
        };
        results
            .iter()
            .find_map(|experiment_result| match experiment_result {
                Err(reason) => Some(reason.to_string()),
                Ok(result) => match &result.ending {
                    Ending::Failed(reason) => Some(reason.clone()),
                    Ending::Complete | Ending::Interrupted => None,
                },
            })
    }
}

/// A report of an executor about an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Update {
    /// For each experiment, in the sequence of [`Order::Experiments`]: what was prepared, or why it
    /// cannot begin. Reported once, before everything else; a failure does not affect the other
    /// experiments.
    Prepared(Vec<Result<Prepared, OrderFailed>>),
    /// Progress, a few times per second.
    Progress(Progress),
    /// Some packets of a capture that requests samples, a few times per second.
    Sampled(PacketSample),
    /// Measurements of an experiment.
    Recorded(ExperimentId, Records),
    /// All measurements of an experiment are in journals in this folder of this host. Reported once
    /// instead of [`Self::Recorded`], by an executor whose results come from another host.
    Journalled(ExperimentId, PathBuf),
    /// All packets of a capture are in this file of this host, until the next call of
    /// [`Executor::poll`]. To retain the file, move it before. Reported once, directly before
    /// [`Self::Done`].
    Captured(PathBuf),
    /// Pings whose outcome is known.
    Pinged(Vec<PingBetween>),
    /// The last report of an order: its result, or why it has none.
    Done(Result<OrderResult, OrderFailed>),
}

/// The executor ended, and everything that it had not reported is lost. Earlier reports remain
/// valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("experiments cannot go on: {reason}{later}", later = if *.has_open_orders { RESULTS_LATER } else { "" })]
pub struct ExecutorLost {
    /// Why it ended.
    pub reason: String,
    /// Whether orders may still be carried out: a new executor can fetch their results.
    pub has_open_orders: bool,
}

const RESULTS_LATER: &str = "; its results are fetched when the campaign continues";

impl ExecutorLost {
    /// An executor that ended without open orders.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            has_open_orders: false,
        }
    }
}

/// Carries out orders, several at the same time.
///
/// Reports of one order arrive in sequence, and none follows [`Update::Done`]. Two orders that need
/// the same resource in different states do not wait for each other: the later one fails.
pub trait Executor: Debug {
    /// Accepts an order and returns immediately.
    fn submit(&mut self, order: Order) -> Ticket;

    /// Returns the reports since the last call; waits at most `patience` for one.
    ///
    /// # Errors
    /// There will be no further reports.
    fn poll(&mut self, patience: Span) -> Result<Vec<(Ticket, Update)>, ExecutorLost>;

    /// Ends an order early: its measurements are reported, then its result. Does nothing for an
    /// order that has ended.
    fn cancel(&mut self, ticket: Ticket);

    /// Whether measurements arrive as [`Update::Journalled`] after the end of an experiment.
    fn gives_journals(&self) -> bool {
        false
    }

    /// Confirms that an experiment is stored as it was reported: an executor with its journal may
    /// delete the journal.
    ///
    /// # Errors
    /// The confirmation cannot be written.
    fn stored(&mut self, _experiment: ExperimentId) -> Result<(), ExecutorLost> {
        Ok(())
    }

    /// Continues the orders of this campaign that an earlier process submitted and whose results
    /// are not stored. Returns them with their tickets.
    ///
    /// # Errors
    /// The known state of the orders cannot be written.
    fn adopt(&mut self, _campaign: CampaignId) -> Result<Vec<(Ticket, Order)>, ExecutorLost> {
        Ok(Vec::new())
    }
}
