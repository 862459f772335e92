//! The retransmissions of a flow over all of its connections, and the spurious ones.

use std::collections::BTreeMap;

use neph_model::Message;

/// Number of connections whose counters are stored: later messages of older ones are not counted.
const MAX_CONNECTIONS: usize = 1_000;

/// The totals of the connections' counters.
#[derive(Debug, Default)]
pub(super) struct Retransmissions {
    /// All retransmissions, in segments.
    pub(super) total: u64,
    /// Retransmissions that the peer reported as received already (DSACK).
    pub(super) spurious: u64,
    /// Each connection's counters as of its latest message.
    latest_counts: BTreeMap<u32, (u32, u32)>,
}

impl Retransmissions {
    pub(super) fn add(&mut self, message: &Message) {
        let Some(state) = message.tcp_at_ack.or(message.tcp_at_send) else {
            return;
        };
        let counts = (state.retransmissions, state.spurious_retransmissions());
        let previous = self.latest_counts.entry(message.connection).or_default();
        self.total += u64::from(counts.0.saturating_sub(previous.0));
        self.spurious += u64::from(counts.1.saturating_sub(previous.1));
        *previous = (counts.0.max(previous.0), counts.1.max(previous.1));
        if self.latest_counts.len() > MAX_CONNECTIONS {
            self.latest_counts.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{FlowIndex, Instant, Marks, Seq, TcpState};

    use super::*;

    #[test]
    fn each_connection_counts_from_its_own_beginning() {
        let mut totals = Retransmissions::default();
        for (connection, retransmissions, dsack_duplicates) in
            [(0, 1, 0), (0, 3, 2), (1, 2, 0), (0, 3, 3), (1, 2, 1)]
        {
            let marks = Marks::intended_at(Instant::from_nanos(0));
            let mut message = Message::new(FlowIndex(0), Seq(0), marks);
            message.connection = connection;
            message.tcp_at_ack = Some(TcpState {
                retransmissions,
                dsack_duplicates,
                ..TcpState::default()
            });
            totals.add(&message);
        }
        assert_eq!((totals.total, totals.spurious), (5, 4));
    }
}
