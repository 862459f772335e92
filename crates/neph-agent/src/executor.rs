//! The executor that measures from this process: on this host, or in the sites of a lab.
//!
//! Each order has a thread of its own, which turns it into flows of `neph-probe` and passes on their
//! reports. Local timestamps count from the experiment's start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use neph_model::{
    CaptureOrder, Executor, ExecutorLost, Order, OrderResult, Permit, Span, Stop, Ticket, Update,
};

use crate::capture_order::CaptureOutput;
use crate::failure::failed;
use crate::lab_handle::{LabAccess, LabHandle};
use crate::order_context::OrderContext;
use crate::{
    capture_order, experiments, flows, idle_pings, load, reflector_order, throughput_check,
};

/// Largest number of updates that wait to be read. Beyond it the order's thread waits, and results of its
/// flows stay in their own queues.
const MAX_PENDING_UPDATES: usize = 256;

/// How long what was ended is waited for before it is looked at again.
const JOIN_POLL_INTERVAL: Span = Span::from_millis(50);

/// Measures from this process.
#[derive(Debug)]
pub struct LocalExecutor {
    lab_handle: LabHandle,
    permit: Permit,
    /// Where captures go; without it there are none.
    captures: Option<PathBuf>,
    sender: SyncSender<(Ticket, Update)>,
    updates: Receiver<(Ticket, Update)>,
    running: BTreeMap<Ticket, RunningOrder>,
    next: Ticket,
}

/// The thread of an order.
#[derive(Debug)]
struct RunningOrder {
    stop: Stop,
    thread: JoinHandle<()>,
}

impl Default for LocalExecutor {
    fn default() -> Self {
        Self::new()
    }
}

impl LocalExecutor {
    /// One for this host alone.
    pub fn new() -> Self {
        Self::with_lab(LabHandle::none())
    }

    /// One for the sites of a lab.
    pub fn in_lab(lab: Box<dyn LabAccess>) -> Self {
        Self::with_lab(LabHandle::of(lab))
    }

    /// The same for a process that may send no more than this.
    #[must_use]
    pub fn with_permit(mut self, permit: Permit) -> Self {
        self.permit = permit;
        self
    }

    /// The same for a process that captures: into this folder, from which each reported capture is taken.
    #[must_use]
    pub fn with_captures(mut self, folder: PathBuf) -> Self {
        self.captures = Some(folder);
        self
    }

    fn with_lab(lab_handle: LabHandle) -> Self {
        let (sender, updates) = sync_channel(MAX_PENDING_UPDATES);
        Self {
            lab_handle,
            permit: Permit::ANYTHING,
            captures: None,
            sender,
            updates,
            running: BTreeMap::new(),
            next: Ticket(0),
        }
    }

    /// The order's thread has come to its end without its result.
    fn find_lost_order(&self) -> Option<ExecutorLost> {
        let mut running = self.running.iter();
        let (ticket, _) = running.find(|(_, running)| running.thread.is_finished())?;
        Some(ExecutorLost::new(format!("{ticket} broke off")))
    }

    fn reap_ended(&mut self, ticket: Ticket, update: &Update) {
        if let Update::Done(_) = update
            && let Some(running) = self.running.remove(&ticket)
        {
            // It has nothing to do after its last word.
            let _ = running.thread.join();
        }
    }
}

impl Executor for LocalExecutor {
    fn submit(&mut self, order: Order) -> Ticket {
        let ticket = self.next;
        self.next.0 += 1;
        let context = OrderContext::new(ticket, self.sender.clone());
        let context = context.with_permit(self.permit.clone());
        let (stop, lab_handle) = (context.stop().clone(), self.lab_handle.clone());
        let captures = self.captures.clone();
        let thread = Builder::new().name(ticket.to_string());
        let carry_out = move || match order {
            Order::Capture(order) => capture(&order, ticket, captures.as_deref(), &context),
            order => carry_out(&order, &context, &lab_handle),
        };
        match thread.spawn(carry_out) {
            Ok(thread) => drop(self.running.insert(ticket, RunningOrder { stop, thread })),
            Err(error) => {
                let reason = failed("begin a thread", error);
                // The thread took its desk with it.
                OrderContext::new(ticket, self.sender.clone()).report(Update::Done(Err(reason)));
            }
        }
        ticket
    }

    fn poll(&mut self, patience: Span) -> Result<Vec<(Ticket, Update)>, ExecutorLost> {
        let first = match self.updates.recv_timeout(patience.to_duration()) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                match self.find_lost_order() {
                    None => return Ok(Vec::new()),
                    // A thread that ended after the wait has left its result here.
                    Some(lost) => self.updates.try_recv().map_err(|_| lost)?,
                }
            }
        };
        let mut received = vec![first];
        received.extend(self.updates.try_iter());
        for (ticket, update) in &received {
            self.reap_ended(*ticket, update);
        }
        Ok(received)
    }

    fn cancel(&mut self, ticket: Ticket) {
        if let Some(running) = self.running.get(&ticket) {
            running.stop.set();
        }
    }
}

impl Drop for LocalExecutor {
    fn drop(&mut self) {
        self.running.values().for_each(|running| running.stop.set());
        while !self.running.is_empty() {
            if self.poll(JOIN_POLL_INTERVAL).is_err() {
                return;
            }
        }
    }
}

/// Captures into a file of this folder, to the last update.
fn capture(order: &CaptureOrder, ticket: Ticket, folder: Option<&Path>, context: &OrderContext) {
    let captured = match folder {
        None => Err(failed(
            "capture",
            "a capture is a stream of bytes, which neph execute writes",
        )),
        Some(folder) => capture_order::capture(
            order,
            &CaptureOutput {
                folder,
                name: ticket.0.to_string(),
                context,
            },
        ),
    };
    context.report(Update::Done(captured.map(OrderResult::Captured)));
}

/// Carries an order out, to its last update.
fn carry_out(order: &Order, context: &OrderContext, lab_handle: &LabHandle) {
    let result = match order {
        Order::Experiments(orders) => {
            OrderResult::Experiments(experiments::carry_out(orders, context, lab_handle))
        }
        Order::Throughput(order) => OrderResult::Throughput(throughput_check::measure_throughput(
            order, context, lab_handle,
        )),
        Order::Traceroute(order) => {
            let site = lab_handle.placement(order.site.as_deref());
            OrderResult::Traceroute(flows::trace(order, site, context))
        }
        Order::Pings(order) => {
            if let Ok(site) = lab_handle.placement(order.site.as_deref()) {
                idle_pings::ping(order, site.as_ref(), context);
            }
            OrderResult::Pings
        }
        Order::Capture(order) => return capture(order, Ticket(0), None, context),
        Order::Load(order) => match load::generate(order, context) {
            Ok(()) => OrderResult::Load,
            Err(reason) => return context.report(Update::Done(Err(reason))),
        },
        Order::Reflector(order) => match reflector_order::answer(order, context) {
            Ok(()) => OrderResult::Reflector,
            Err(reason) => return context.report(Update::Done(Err(reason))),
        },
    };
    context.report(Update::Done(Ok(result)));
}

#[cfg(test)]
pub(crate) mod tests;
