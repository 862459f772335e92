//! An order that is out: how far it is, and what a result of it can be.

use std::collections::BTreeSet;

use neph_agent::remote::{Ended, ResultFile};
use neph_model::{AgentName, Order, OrderFailed, OrderResult, Span, Update};

use crate::inbox::Sent;

/// After how long it is reported that an agent has not taken an order on.
const MISSED: Span = Span::from_secs(5);

/// How far an order is.
#[derive(Debug)]
pub(super) enum Stage {
    /// It is not known to have come.
    Sent,
    /// The agent carries it out.
    Running,
    /// It is over, and its files are fetched: this one, by its place.
    Fetching { ended: Box<Ended>, file: usize },
    /// All of its result is here and was reported.
    Reported,
    /// The result is stored; its agent is told so until it has forgotten it.
    Stored,
}

/// An order that is out.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Out {
    pub(super) agent: AgentName,
    pub(super) order: Order,
    pub(super) stage: Stage,
    /// When its next message is due, since the dispatcher's start.
    pub(super) due: Span,
    /// It was submitted or adopted by this process.
    pub(super) is_followed: bool,
    /// When it was sent first.
    pub(super) awaited: Option<Span>,
    /// It was reported that nothing came of that.
    pub(super) is_missed: bool,
    pub(super) is_cancelled: bool,
    /// When that was sent first.
    pub(super) cancelled: Option<Span>,
    pub(super) is_prepared: bool,
}

impl Out {
    pub(super) fn new(sent: Sent, stage: Stage) -> Self {
        Self {
            agent: sent.agent,
            order: sent.order,
            stage,
            due: Span::ZERO,
            is_followed: false,
            awaited: None,
            is_missed: false,
            is_cancelled: false,
            cancelled: None,
            is_prepared: false,
        }
    }
}

impl Out {
    /// There will be no result.
    pub(super) fn lost(&mut self, reason: &str) -> Update {
        self.stage = Stage::Reported;
        Update::Done(Err(OrderFailed {
            operation: format!("fetch the result from agent {}", self.agent),
            reason: reason.to_owned(),
        }))
    }

    /// Reports, once, that the agent has not answered for long.
    pub(super) fn await_answer(&mut self, now: Span) {
        if !matches!(self.stage, Stage::Sent) {
            return;
        }
        let since = *self.awaited.get_or_insert(now);
        if now - since > MISSED && !self.is_missed {
            self.is_missed = true;
            tracing::warn!(
                "agent {} does not answer; its order waits until it does",
                self.agent
            );
        }
    }
}

/// Whether it is an order for so many experiments.
pub(super) fn has_experiments(order: &Order, count: usize) -> bool {
    match order {
        Order::Experiments(orders) => orders.len() == count,
        _ => false,
    }
}

/// Whether a result is one of this order: its files, each once, and what it reports.
pub(super) fn fits(order: &Order, ended: &Ended) -> bool {
    let files: BTreeSet<ResultFile> = ended.files.iter().map(|one| one.file).collect();
    let belong = files.len() == ended.files.len() && files.iter().all(|one| one.belongs_to(order));
    let prepared = ended.prepared.as_ref();
    belong
        && prepared.is_none_or(|prepared| has_experiments(order, prepared.len()))
        && match (order, &ended.result) {
            (_, Err(_))
            | (Order::Throughput(_), Ok(OrderResult::Throughput(_)))
            | (Order::Traceroute(_), Ok(OrderResult::Traceroute(_)))
            | (Order::Pings(_), Ok(OrderResult::Pings))
            | (Order::Load(_), Ok(OrderResult::Load)) => true,
            (Order::Experiments(_), Ok(OrderResult::Experiments(results))) => {
                has_experiments(order, results.len())
            }
            _ => false,
        }
}
