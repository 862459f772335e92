//! The contract between the sender of orders and the executor that carries them out: this process, a
//! site of a lab, an agent at a distance.
//!
//! Owns the trait and what an executor reports. What is reported is plain data, so that a store, a
//! screen or a wire can take it.

#[cfg(feature = "contract")]
pub mod contract;

use std::fmt::{self, Debug};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CampaignId, Captured, ExperimentId, ExperimentResult, Order, OrderFailed, PacketSample,
    PingBetween, Prepared, Progress, Records, Span, Throughput, Traceroute,
};

/// An order that was taken on. Each executor counts its own.
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

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderResult {
    /// Of each experiment, in the order's order.
    Experiments(Vec<Result<ExperimentResult, OrderFailed>>),
    /// A failure is part of it.
    Throughput(Throughput),
    /// A failure is part of it.
    Traceroute(Traceroute),
    /// The pings are over. That none could be sent is no failure: the experiments report it.
    Pings,
    /// The load is over.
    Load,
    /// The reflector has ended.
    Reflector,
    /// The capture has ended; its file came before.
    Captured(Captured),
}

/// What an executor reports of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Update {
    /// Of each experiment, in the order's order: it is about to begin, or why it cannot. Once, before
    /// everything else; the others go on.
    Prepared(Vec<Result<Prepared, OrderFailed>>),
    /// A few times a second.
    Progress(Progress),
    /// Some of the packets of a capture that asks for them, a few times a second.
    Sampled(PacketSample),
    /// What an experiment measured.
    Recorded(ExperimentId, Records),
    /// All that an experiment measured is in journals in this folder, of this host. Once, in the place of
    /// [`Self::Recorded`], by an executor whose results come from another host.
    Journalled(ExperimentId, PathBuf),
    /// All that a capture has is in this file, of this host, as long as the next [`Executor::poll`] is not called: who
    /// wants it longer moves it away. Once, right before the last.
    Captured(PathBuf),
    /// Pings that are decided.
    Pinged(Vec<PingBetween>),
    /// The last of an order: what became of it, or why nothing did.
    Done(Result<OrderResult, OrderFailed>),
}

/// The executor is gone, with what it had not reported. What was reported stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("experiments cannot go on: {0}")]
pub struct ExecutorLost(pub String);

/// Carries out orders, several at a time.
///
/// Of one order, updates come in their order, and nothing comes after [`Update::Done`]. Two orders that
/// need the same thing in different states do not wait for each other: the later one fails.
pub trait Executor: Debug {
    /// Takes an order on. Returns at once.
    fn submit(&mut self, order: Order) -> Ticket;

    /// What happened since the last time; waits at most `patience` until something does.
    ///
    /// # Errors
    /// Nothing will be reported any more.
    fn poll(&mut self, patience: Span) -> Result<Vec<(Ticket, Update)>, ExecutorLost>;

    /// Ends an order early: what was measured is reported, then its result. Does nothing for an order
    /// that is over.
    fn cancel(&mut self, ticket: Ticket);

    /// Whether what experiments measure comes as [`Update::Journalled`], when they are over.
    fn gives_journals(&self) -> bool {
        false
    }

    /// An experiment is stored, as it was reported: an executor that kept its journal may forget it.
    ///
    /// # Errors
    /// That cannot be written down.
    fn stored(&mut self, _experiment: ExperimentId) -> Result<(), ExecutorLost> {
        Ok(())
    }

    /// Orders for experiments of this campaign that an earlier process submitted, and whose results are not
    /// stored: they go on under these tickets.
    ///
    /// # Errors
    /// What is known of them cannot be written down.
    fn adopt(&mut self, _campaign: CampaignId) -> Result<Vec<(Ticket, Order)>, ExecutorLost> {
        Ok(Vec::new())
    }
}
