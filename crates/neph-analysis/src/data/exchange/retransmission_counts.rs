//! What a connection's counters of retransmissions and of DSACKs say of each message.

use std::collections::BTreeMap;

use neph_model::Outcome;

use super::Exchange;

/// What a connection's counters say of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetransmissionCounts {
    /// The segments that were retransmitted since the message before it on the same connection,
    /// without the spurious ones.
    pub(crate) segments: u32,
    /// Those retransmitted since then that the peer had received already.
    pub(crate) spurious: u32,
    /// It is the connection's first: the opening is counted with it.
    pub(crate) is_first: bool,
}

/// One connection's counters as of its latest message.
#[derive(Default)]
struct Counters {
    segments: u32,
    duplicates: u32,
    /// Places of messages with retransmissions that no DSACK has answered yet.
    open: Vec<usize>,
}

/// For each message, in their order. A DSACK comes after the retransmission that it answers, often
/// with a later message: it is set against the latest retransmissions that are still open. One
/// without a retransmission before it reports a packet that the network duplicated.
pub(crate) fn count(exchanges: &[Exchange]) -> Vec<RetransmissionCounts> {
    let mut connections: BTreeMap<u32, Counters> = BTreeMap::new();
    let mut counts: Vec<RetransmissionCounts> = Vec::with_capacity(exchanges.len());
    for (index, exchange) in exchanges.iter().enumerate() {
        // What could not be sent was mostly on none.
        let is_sent = exchange.outcome != Outcome::Failed || exchange.retransmissions.is_some();
        let is_first = is_sent && !connections.contains_key(&exchange.connection);
        let mut message_counts = RetransmissionCounts {
            segments: 0,
            spurious: 0,
            is_first,
        };
        if !is_sent {
            counts.push(message_counts);
            continue;
        }
        let counters = connections.entry(exchange.connection).or_default();
        let segments = exchange.retransmissions.unwrap_or(0).max(counters.segments);
        let duplicates = exchange.dsack_duplicates.max(counters.duplicates);
        message_counts.segments = segments - counters.segments;
        counts.push(message_counts);
        if message_counts.segments > 0 {
            counters.open.push(index);
        }
        count_as_spurious(
            &mut counts,
            &mut counters.open,
            duplicates - counters.duplicates,
        );
        (counters.segments, counters.duplicates) = (segments, duplicates);
    }
    counts
}

/// Sets so many duplicates against the latest retransmissions.
fn count_as_spurious(
    counts: &mut [RetransmissionCounts],
    open: &mut Vec<usize>,
    mut duplicates: u32,
) {
    while duplicates > 0
        && let Some(index) = open.last()
    {
        let message_counts = &mut counts[*index];
        let spurious = message_counts.segments.min(duplicates);
        message_counts.segments -= spurious;
        message_counts.spurious += spurious;
        duplicates -= spurious;
        if message_counts.segments == 0 {
            open.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use neph_model::{
        Flow, FlowIndex, FlowRole, Instant, Marks, Message, ProbeKind, Seq, TcpState,
    };

    use super::*;
    use crate::data::FlowData;

    /// Messages by connection, retransmissions and DSACKs so far.
    fn counts_of(messages: &[(u32, u32, u32)]) -> Vec<RetransmissionCounts> {
        let mut flow = FlowData::new(Flow {
            index: FlowIndex(0),
            role: FlowRole::Main,
            probe: ProbeKind::Http,
            name: "metro".into(),
            source: None,
            target: SocketAddr::new([192, 0, 2, 7].into(), 8080),
            reflector: true,
            same_clock: true,
        });
        let messages =
            messages
                .iter()
                .zip(0..)
                .map(|((connection, retransmissions, duplicates), seq)| {
                    let marks = Marks::intended_at(Instant::from_nanos(0));
                    let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
                    message.connection = *connection;
                    message.outcome = Outcome::Lost;
                    message.tcp_at_ack = Some(TcpState {
                        retransmissions: *retransmissions,
                        dsack_duplicates: *duplicates,
                        ..TcpState::default()
                    });
                    message
                });
        flow.add(&messages.collect::<Vec<_>>());
        let message_counts = flow.retransmission_counts();
        message_counts.map(|(_, counts)| counts).collect()
    }

    /// HTTP takes whichever connection is idle.
    #[test]
    fn each_connection_has_its_own_retransmission_counter() {
        let messages = [
            (0, 1, 0),
            (1, 0, 0),
            (0, 1, 0),
            (1, 2, 0),
            (0, 1, 0),
            (1, 2, 0),
        ];
        let counts = counts_of(&messages);
        let counts: Vec<(u32, bool)> = counts
            .iter()
            .map(|message_counts| (message_counts.segments, message_counts.is_first))
            .collect();
        let (first, not) = (true, false);
        let expected = [
            (1, first),
            (0, first),
            (0, not),
            (2, not),
            (0, not),
            (0, not),
        ];
        assert_eq!(counts, expected);
    }

    #[test]
    fn spurious_retransmissions_are_counted_even_with_a_later_dsack() {
        // Two retransmissions with the second message, one with the fourth; the DSACK of one of the
        // two comes with the third, that of the last with its own message.
        let counts = counts_of(&[(0, 0, 0), (0, 2, 0), (0, 2, 1), (0, 3, 2)]);
        let counts: Vec<(u32, u32)> = counts
            .iter()
            .map(|message_counts| (message_counts.segments, message_counts.spurious))
            .collect();
        assert_eq!(counts, [(0, 0), (1, 1), (0, 0), (0, 1)]);
    }

    #[test]
    fn dsacks_of_network_duplicates_make_no_later_retransmission_spurious() {
        let counts = counts_of(&[(0, 0, 3), (0, 2, 3), (1, 0, 0), (1, 1, 0)]);
        let counts: Vec<(u32, u32)> = counts
            .iter()
            .map(|message_counts| (message_counts.segments, message_counts.spurious))
            .collect();
        assert_eq!(counts, [(0, 0), (2, 0), (0, 0), (1, 0)]);
    }
}
