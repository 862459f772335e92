//! Orders that are cancelled: at their agent, or here if the agent cannot have received them.

use neph_model::{AgentName, OrderId, Span, Update};

use super::out::{OutstandingOrder, Stage};
use super::{CANCEL_TIMEOUT, Dispatcher};
use crate::InboxError;

impl Dispatcher {
    /// Cancels an order.
    pub(crate) fn cancel(&mut self, id: OrderId) {
        if let Some(out) = self.out.get_mut(&id).filter(|out| !out.is_cancelled) {
            out.is_cancelled = true;
            out.send_now();
        }
    }

    /// Removes an order that its agent cannot have received; returns whether it was removed.
    pub(crate) fn withdraw(&mut self, id: OrderId) -> Result<bool, InboxError> {
        let is_unsent =
            |out: &OutstandingOrder| matches!(out.stage, Stage::Sent) && !out.may_have_arrived;
        if !self.out.get(&id).is_some_and(is_unsent) {
            return Ok(false);
        }
        self.inbox.remove(id)?;
        self.out.remove(&id);
        Ok(true)
    }

    /// Ends all orders of an agent that was revoked: it has no results any more.
    pub(crate) fn end_orders_of(&mut self, agent: &AgentName) -> Vec<(OrderId, Update)> {
        let out = self.out.iter_mut();
        let open = out.filter(|(_, out)| out.agent == *agent && out.is_followed && out.is_open());
        open.map(|(id, out)| (*id, out.mark_lost("it was revoked")))
            .collect()
    }

    /// An agent that has not answered about a cancelled order in time.
    pub(crate) fn overdue_agent(&self, now: Span) -> Option<&AgentName> {
        let is_late = |out: &&OutstandingOrder| {
            let cancelled = out.cancelled_at.filter(|_| out.is_open());
            cancelled.is_some_and(|since| now - since > CANCEL_TIMEOUT)
        };
        self.out.values().find(is_late).map(|out| &out.agent)
    }
}
