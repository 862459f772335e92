//! An agent without its connection: messages in, messages out, orders to an executor.
//!
//! Owns the reaction to each message. Its answer is a state: the controller can repeat a request if the
//! answer was lost.

mod hello;

use std::collections::BTreeMap;
use std::path::Path;

use neph_model::{
    AgentName, ClockReading, Ending, Executor, ExecutorLost, ExperimentResult, Labels, Order,
    OrderFailed, OrderId, OrderResult, Prepared, Span, Ticket, Update, Wall,
};
use neph_sys::clock::{self, RawNanos};
use neph_sys::pulse::Pulse;

use super::admission::Admission;
use super::controller_clock::by_controllers_clock;
use super::order_store::{OrderStore, OrderStoreError};
use super::status::{AgentStatus, StatusBoard};
use super::{AdmissionControl, AgentClockOffset, FromAgent, Grant, Moment, OrderState, ToAgent};
use crate::JournallingExecutor;
use crate::failure::failed;
use crate::policy::Refusal;
use crate::wall_clock::now;

/// The operation of an order that the agent's policy refuses.
pub const REFUSED: &str = "begin an order";

/// Maximum number of clock readings of an order: those of more than an hour.
const MAX_READINGS: usize = 1000;
/// Time between two writings of the status, nanoseconds.
const STATUS_EVERY: i64 = 250_000_000;

/// Carries out orders for a controller, and stores their results until the controller has them.
#[derive(Debug)]
pub struct Worker<E> {
    executor: JournallingExecutor<E>,
    order_store: OrderStore,
    running: BTreeMap<Ticket, RunningOrder>,
    version: String,
    labels: Labels,
    pub(super) admission: AdmissionControl,
    pulse: Pulse,
    status: StatusBoard,
    /// When it was written last.
    status_at: Option<RawNanos>,
    pub(super) is_connected: bool,
    pub(super) connections: u64,
}

/// An order that runs.
#[derive(Debug)]
struct RunningOrder {
    id: OrderId,
    /// How far the clock was from the controller's when it was admitted.
    clock_offset: AgentClockOffset,
    /// The same as it was read since then.
    clock: Vec<ClockReading>,
}

impl<E: Executor> Worker<E> {
    /// One that keeps orders and results in `folder`. What an earlier one left there without a result, since
    /// it was killed, is over now, with what it had recorded. `version` is the program's. `admission` decides
    /// what may begin and go on.
    ///
    /// # Errors
    /// The disk refuses, or another agent has the folder.
    pub fn new(
        folder: &Path,
        executor: E,
        version: &str,
        admission: AdmissionControl,
    ) -> Result<Self, OrderStoreError> {
        let mut shelf = OrderStore::open(folder)?;
        let now = now();
        for id in shelf.open_orders() {
            if let Some(order) = shelf.stored_order(id) {
                let result = cut_off(
                    &order.order,
                    order.prepared.as_deref(),
                    now,
                    admission.name(),
                );
                shelf.end(id, result)?;
            }
        }
        Ok(Self {
            executor: JournallingExecutor::new(executor, shelf.journals()),
            order_store: shelf,
            running: BTreeMap::new(),
            version: version.to_owned(),
            labels: Labels::default(),
            admission,
            pulse: Pulse::new("agent"),
            status: StatusBoard::default(),
            status_at: None,
            is_connected: false,
            connections: 0,
        })
    }

    /// How often something was refused, by the reason.
    pub fn refusals(&self) -> BTreeMap<String, u64> {
        self.admission.refusals()
    }

    /// The loop in which orders are looked after: it turns with each call of [`Self::work`].
    pub const fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Its status, at most a quarter of a second old.
    pub const fn status(&self) -> &StatusBoard {
        &self.status
    }

    /// Writes its status for readers, when that is due.
    fn report(&mut self, now: RawNanos) {
        let is_due = self
            .status_at
            .is_none_or(|last| now.0 - last.0 >= STATUS_EVERY);
        let status = || AgentStatus {
            is_connected: self.is_connected,
            connections: self.connections,
            running: self.running(),
            ..self.admission.status()
        };
        if is_due && self.status.write(status()) {
            self.status_at = Some(now);
        }
    }

    /// Whether something is measured, or made for a measurement. To answer probes is neither.
    pub fn is_busy(&self) -> bool {
        let is_reflector = |running: &RunningOrder| {
            let order = self.order_store.stored_order(running.id);
            order.is_some_and(|order| matches!(order.order, Order::Reflector(_)))
        };
        !self.running.values().all(is_reflector)
    }

    /// How many orders are being carried out.
    pub fn running(&self) -> u32 {
        u32::try_from(self.running.len()).unwrap_or(u32::MAX)
    }

    /// Handles a message; returns the answer, if there is one.
    ///
    /// # Errors
    /// The disk refuses: what is here cannot be kept.
    pub fn take(&mut self, message: ToAgent) -> Result<Option<FromAgent>, OrderStoreError> {
        let id = match message {
            ToAgent::Begin { id, grant } => {
                if !self.begin(id, &grant) {
                    return Ok(None);
                }
                id
            }
            ToAgent::Ask { id } => id,
            // `serve` handles the answer to a heartbeat.
            ToAgent::Beat { .. } => return Ok(None),
            ToAgent::Cancel { id } => {
                self.cancel(id);
                return Ok(None);
            }
            // Results travel when nothing is measured.
            ToAgent::Fetch { .. } if self.is_busy() => return Ok(None),
            ToAgent::Fetch {
                id,
                file,
                from,
                most,
            } => {
                let part = self.order_store.part(id, file, from, most)?;
                return Ok(part.map(FromAgent::Part));
            }
            ToAgent::Stored { id } => {
                self.order_store.forget(id)?;
                id
            }
        };
        let state = self.order_store.state(id);
        Ok(Some(FromAgent::State { id, state }))
    }

    /// Begins an order, if it may begin; whether its state is to be reported.
    fn begin(&mut self, id: OrderId, grant: &Grant) -> bool {
        match self.order_store.state(id) {
            OrderState::Unknown => {}
            OrderState::Forgotten => {
                self.admission.count_refusal(Refusal::Replay.code());
                return true;
            }
            OrderState::Running { .. } | OrderState::Ended(_) => return true,
        }
        match self.admission.admit(id, grant, Moment::now()) {
            Admission::Granted(order, clock_offset) => {
                if let Err(reason) = self.order_store.add(id, order.clone()) {
                    // The controller repeats the order: perhaps there is space then.
                    tracing::warn!("an order cannot be kept: {reason}");
                    self.admission.count_refusal("disk");
                    self.admission.remove_lease(id);
                    return false;
                }
                let running = RunningOrder {
                    id,
                    clock_offset,
                    clock: self
                        .admission
                        .clock_reading(Moment::now())
                        .into_iter()
                        .collect(),
                };
                let ticket = self.executor.submit(order);
                self.running.insert(ticket, running);
            }
            Admission::Refused(order, reason) => {
                tracing::warn!("an order is refused: {reason}");
                let reason = failed(REFUSED, &reason).permanent_if(reason.is_permanent());
                let added = self.order_store.add(id, order);
                if let Err(reason) = added.and_then(|()| self.order_store.end(id, Err(reason))) {
                    tracing::warn!("a refusal cannot be kept: {reason}");
                    self.admission.count_refusal("disk");
                    return false;
                }
            }
            Admission::Ignored(reason) => {
                tracing::warn!("an order is ignored: {reason}");
                return false;
            }
        }
        true
    }

    /// The controller has answered a heartbeat: running orders get the clock offset to the controller.
    pub(super) fn set_clock_offset(&mut self, clock_offset: AgentClockOffset) {
        let now = Moment::now();
        self.admission.set_clock_offset(clock_offset, now);
        let reading = self.admission.clock_reading(now);
        for running in self.running.values_mut() {
            if running.clock.len() < MAX_READINGS {
                running.clock.extend(reading);
            }
        }
    }

    /// Ends orders that may not continue, and saves the usage of today.
    fn watch(&mut self) -> Result<(), OrderStoreError> {
        let now = Moment::now();
        for (id, reason) in self.admission.remove_lapsed(now) {
            tracing::warn!("an order is ended early: {reason}");
            self.cancel(id);
        }
        Ok(self.admission.save(now)?)
    }

    fn cancel(&mut self, id: OrderId) {
        let mut running = self.running.iter();
        if let Some((ticket, _)) = running.find(|(_, running)| running.id == id) {
            self.executor.cancel(*ticket);
        }
    }

    /// The controller has revoked this agent: ends all running orders.
    pub fn revoked(&mut self) {
        for id in self.admission.revoke_leases() {
            tracing::warn!("an order is ended early: this agent was revoked");
            self.cancel(id);
        }
    }

    /// The updates of orders since the last call; waits at most `patience` for the first one.
    ///
    /// # Errors
    /// The disk refuses, or the executor is gone: an agent ends then, and the next one reports what it has.
    pub fn work(&mut self, patience: Span) -> Result<Vec<FromAgent>, WorkerLost> {
        self.pulse.beat();
        self.watch()?;
        self.report(clock::raw());
        let mut messages = Vec::new();
        for (ticket, update) in self.executor.poll(patience)? {
            let Some(RunningOrder {
                id, clock_offset, ..
            }) = self.running.get(&ticket)
            else {
                continue;
            };
            let (id, clock_offset) = (*id, *clock_offset);
            match by_controllers_clock(update, clock_offset) {
                Update::Prepared(prepared) => self.order_store.prepared(id, prepared)?,
                Update::Progress(progress) => {
                    messages.push(FromAgent::Progress { id, progress });
                    continue;
                }
                Update::Sampled(mut sample) => {
                    sample.clock = self.admission.clock_reading(Moment::now());
                    messages.push(FromAgent::Sample { id, sample });
                    continue;
                }
                // The journals have it.
                Update::Recorded(..) | Update::Journalled(..) => continue,
                Update::Pinged(pings) => {
                    self.order_store.pinged(id, &pings)?;
                    continue;
                }
                Update::Captured(path) => {
                    self.order_store.captured(id, &path)?;
                    continue;
                }
                Update::Done(mut result) => {
                    let clock = self.running.remove(&ticket).map(|running| running.clock);
                    if let Ok(OrderResult::Captured(captured)) = &mut result {
                        captured.clock = clock.unwrap_or_default();
                        captured
                            .clock
                            .extend(self.admission.clock_reading(Moment::now()));
                    }
                    if let Ok(OrderResult::Experiments(results)) = &result {
                        let refused = results.iter().filter_map(|result| result.as_ref().err());
                        for reason in refused.filter(|reason| reason.is_permanent) {
                            tracing::warn!("an experiment is refused: {reason}");
                        }
                    }
                    self.admission.remove_lease(id);
                    self.order_store.end(id, result)?;
                }
            }
            let state = self.order_store.state(id);
            messages.push(FromAgent::State { id, state });
        }
        Ok(messages)
    }
}

/// An agent cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkerLost {
    /// What it keeps cannot be written.
    #[error(transparent)]
    OrderStore(#[from] OrderStoreError),
    /// Nothing is measured any more.
    #[error(transparent)]
    Executor(#[from] ExecutorLost),
}

/// The result of an order whose agent was killed: a failure, with the data recorded so far.
fn cut_off(
    order: &Order,
    prepared: Option<&[Result<Prepared, OrderFailed>]>,
    now: Wall,
    agent: &AgentName,
) -> Result<OrderResult, OrderFailed> {
    let reason = format!("agent {agent} ended before the order was complete");
    match (order, prepared) {
        (Order::Experiments(_), Some(prepared)) => {
            let results = prepared.iter().map(|prepared| {
                let prepared = prepared.as_ref().map_err(Clone::clone)?;
                let ending = Ending::Failed(reason.clone());
                let ended = now.max(prepared.started);
                Ok(ExperimentResult::of_end(
                    ending,
                    ended,
                    prepared.flows.clone(),
                ))
            });
            Ok(OrderResult::Experiments(results.collect()))
        }
        (Order::Pings(_), _) => Ok(OrderResult::Pings),
        _ => Err(failed("the order", reason)),
    }
}
