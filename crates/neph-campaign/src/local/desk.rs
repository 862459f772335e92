//! Where an order's thread reports, and hears that it is to end.

use std::sync::mpsc::SyncSender;

use neph_model::{ExperimentId, Records, Ticket, Update};
use neph_probe::Stop;

/// The desk of one order.
#[derive(Debug)]
pub(super) struct Desk {
    ticket: Ticket,
    updates: SyncSender<(Ticket, Update)>,
    stop: Stop,
}

impl Desk {
    pub(super) fn new(ticket: Ticket, updates: SyncSender<(Ticket, Update)>) -> Self {
        let stop = Stop::new();
        Self {
            ticket,
            updates,
            stop,
        }
    }

    /// Reports; waits where too much waits already. An executor that is gone takes nothing, and ends its
    /// orders.
    pub(super) fn tell(&self, update: Update) {
        if self.updates.send((self.ticket, update)).is_err() {
            self.stop.set();
        }
    }

    /// Reports what an experiment measured, if it did.
    pub(super) fn record(&self, experiment: ExperimentId, records: Records) {
        if !records.is_empty() {
            self.tell(Update::Recorded(experiment, records));
        }
    }

    /// Set when the order is cancelled.
    pub(super) const fn stop(&self) -> &Stop {
        &self.stop
    }
}
