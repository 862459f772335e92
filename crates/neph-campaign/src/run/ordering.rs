//! An order from the campaign's side: submitted, followed to its end, cancelled when the user stops. Also the
//! waits between orders, in which the executor goes on.

use neph_model::{Order, OrderFailed, OrderResult, Span, Ticket, Update, Wall};

use super::{Run, RunError};

/// How long an executor that has nothing to report is waited for at a time: a stop is noticed within it.
const POLL_TIMEOUT: Span = Span::from_millis(50);
/// How often the executor is polled while the campaign waits.
const WAIT_POLL_INTERVAL: Span = Span::from_millis(500);

/// What became of an order.
pub(super) type OrderOutcome = Result<OrderResult, OrderFailed>;

impl Run<'_, '_> {
    pub(super) fn submit(&mut self, order: Order) -> Ticket {
        self.participants.executor.submit(order)
    }

    /// Waits for the next updates of an order, which is cancelled once the user stops.
    pub(super) fn updates(&mut self, ticket: Ticket) -> Result<Vec<Update>, RunError> {
        if self.participants.stop.is_set() {
            self.participants.executor.cancel(ticket);
        }
        self.poll(POLL_TIMEOUT)?;
        Ok(self.reported_updates.remove(&ticket).unwrap_or_default())
    }

    /// Orders that were adopted report at the same time, and are followed one after the other.
    fn poll(&mut self, timeout: Span) -> Result<(), RunError> {
        for (ticket, update) in self.participants.executor.poll(timeout)? {
            self.reported_updates
                .entry(ticket)
                .or_default()
                .push(update);
        }
        Ok(())
    }

    /// Waits until `until`, or until the user stops. The executor is polled meanwhile: agents return,
    /// their reflectors end and are ordered once more, and results are confirmed.
    pub(super) fn wait(&mut self, until: Wall) -> Result<(), RunError> {
        while self.participants.clock.now() < until && !self.participants.stop.is_set() {
            self.poll(Span::ZERO)?;
            let next_poll = self.participants.clock.now() + WAIT_POLL_INTERVAL;
            let wait_end = next_poll.min(until);
            self.participants
                .clock
                .wait_until(wait_end, self.participants.stop);
        }
        Ok(())
    }

    /// Follows an order to its end, and hands every update before that to `handle_update`. What cannot be kept is
    /// not measured further.
    pub(super) fn follow(
        &mut self,
        order: Order,
        handle_update: impl FnMut(&mut Self, Update) -> Result<(), RunError>,
    ) -> Result<OrderOutcome, RunError> {
        let ticket = self.submit(order);
        self.follow_ticket(ticket, handle_update)
    }

    /// Likewise, of an order that is submitted already.
    pub(super) fn follow_ticket(
        &mut self,
        ticket: Ticket,
        mut handle_update: impl FnMut(&mut Self, Update) -> Result<(), RunError>,
    ) -> Result<OrderOutcome, RunError> {
        loop {
            for update in self.updates(ticket)? {
                if let Update::Done(outcome) = update {
                    return Ok(outcome);
                }
                if let Err(error) = handle_update(self, update) {
                    self.participants.executor.cancel(ticket);
                    return Err(error);
                }
            }
        }
    }
}
