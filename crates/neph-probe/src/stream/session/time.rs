//! Actions that depend on time alone: losses, slow connections, dialling again, the end.

use neph_model::{EventKind, Instant, Local, Span};

use super::Session;
use crate::codec::{ConnectionEnd, Use};
use crate::stream::connection::{Connection, Phase};

impl Session {
    /// Does everything that is due.
    pub(crate) fn at_time(&mut self, now: Instant<Local>) {
        self.exchange.expire(now);
        self.forget_the_lost();
        if self.redial.is_some_and(|at| at <= now) {
            self.redial = None;
            self.dial(None, now);
        }
        let (connection_use, timeout) = (self.connection_use, self.spec.timeout);
        let overdue: Vec<u32> = self
            .connections
            .iter()
            .filter(|(_, c)| patience_ends(c, connection_use, timeout).is_some_and(|at| at <= now))
            .map(|(number, _)| *number)
            .collect();
        for number in overdue {
            let reason = format!("no connection within {timeout}");
            let end = ConnectionEnd::new(reason, None);
            self.drop_connection(number, EventKind::ConnectFailed, end, now);
        }
    }

    /// A lasting connection to a silent peer must not remember every message. Where a connection carries one
    /// message at a time, a late reply must still find its message.
    fn forget_the_lost(&mut self) {
        if self.connection_use != Use::One {
            return;
        }
        for connection in self.connections.values_mut() {
            while let Some(oldest) = connection.awaiting.front()
                && !self.exchange.is_undecided(*oldest)
            {
                connection.awaiting.pop_front();
            }
        }
    }

    /// When [`Self::at_time`] has work next.
    pub(crate) fn next_deadline(&self) -> Option<Instant<Local>> {
        let overdue = self
            .connections
            .values()
            .filter_map(|connection| {
                patience_ends(connection, self.connection_use, self.spec.timeout)
            })
            .min();
        [self.exchange.next_deadline(), self.redial, overdue]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether the schedule is over, every message decided and every possible timestamp received.
    pub(crate) fn is_done(&self) -> bool {
        let scheduled = self.start.is_none() || self.next_due().is_some();
        !scheduled && self.exchange.all_decided() && (self.exchange.len() == 0 || self.tail_sent)
    }

    /// Whether timestamps may still come for messages already decided.
    pub(crate) fn lacks_peer_send(&self) -> bool {
        self.exchange.lacks_peer_send()
    }
}

/// When a connection has taken too long: after one timeout while connecting. If it carries one message at a
/// time, two timeouts after that message (a reply after the first still counts as late).
fn patience_ends(
    connection: &Connection,
    connection_use: Use,
    timeout: Span,
) -> Option<Instant<Local>> {
    match connection.phase {
        Phase::Dialling | Phase::Securing | Phase::Opening => Some(connection.since + timeout),
        Phase::Ready if connection_use != Use::One && !connection.awaiting.is_empty() => {
            Some(connection.since + timeout.times(2))
        }
        Phase::Ready | Phase::Leaving => None,
    }
}
