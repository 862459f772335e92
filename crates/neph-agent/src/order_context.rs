//! Where an order's thread reports, and where it learns that it is to end, and what it may send.

use std::sync::mpsc::SyncSender;

use neph_model::{ExperimentId, Permit, Records, Stop, Ticket, Update};

/// The desk of one order.
#[derive(Debug)]
pub(crate) struct OrderContext {
    ticket: Ticket,
    updates: SyncSender<(Ticket, Update)>,
    stop: Stop,
    permit: Permit,
}

impl OrderContext {
    pub(crate) fn new(ticket: Ticket, updates: SyncSender<(Ticket, Update)>) -> Self {
        let stop = Stop::new();
        Self {
            ticket,
            updates,
            stop,
            permit: Permit::ANYTHING,
        }
    }

    /// The same for an order that may send no more than this.
    pub(crate) fn with_permit(self, permit: Permit) -> Self {
        Self { permit, ..self }
    }

    /// What may be sent.
    pub(crate) const fn permit(&self) -> &Permit {
        &self.permit
    }

    /// Reports; waits where too much waits already. An executor that is gone takes nothing, and ends its
    /// orders.
    pub(crate) fn report(&self, update: Update) {
        if self.updates.send((self.ticket, update)).is_err() {
            self.stop.set();
        }
    }

    /// Reports what an experiment measured, if it did.
    pub(crate) fn record(&self, experiment: ExperimentId, records: Records) {
        if !records.is_empty() {
            self.report(Update::Recorded(experiment, records));
        }
    }

    /// Set when the order is cancelled.
    pub(crate) const fn stop(&self) -> &Stop {
        &self.stop
    }
}
