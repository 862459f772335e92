//! One message, reduced to what figures and tables need.

mod retransmission_counts;

use std::collections::BTreeMap;

use neph_model::{
    Entry, Flow, Instant, Ledger, Local, Marks, Message, Outcome, Peer, Seq, Span, Stage, StageSet,
};

use neph_stats::FourTimestamps;

pub(crate) use retransmission_counts::RetransmissionCounts;

/// One message of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    /// The number of the message.
    pub seq: Seq,
    /// How it ended.
    pub outcome: Outcome,
    /// The scheduled send time.
    pub intended: Instant<Local>,
    /// When the client application started to send it.
    pub send_started: Option<Instant<Local>>,
    /// When the server application had read it, on the peer's clock.
    pub peer_app_rx: Option<Instant<Peer>>,
    /// From `intended` to the reply; `None` without a reply.
    pub response: Option<Span>,
    /// From `send_started` to the reply; `None` without a reply.
    pub service: Option<Span>,
    /// From the departure of the last byte to its acknowledgement by the peer's TCP.
    pub ack: Option<Span>,
    /// Congestion window in segments when the last byte left.
    pub cwnd: Option<u32>,
    /// Congestion window in segments when the last byte was acknowledged.
    pub cwnd_after: Option<u32>,
    /// The least round trip that TCP had measured on the connection by then, including the handshake.
    pub min_rtt: Option<Span>,
    /// Segments that the connection had retransmitted until the last byte was acknowledged.
    pub retransmissions: Option<u32>,
    /// Segments that the peer had reported as received twice (DSACK) until then.
    pub dsack_duplicates: u32,
    /// The connection that carried the message, counted from 0.
    pub connection: u32,
    /// The reply arrived after the reply of a later message.
    pub reordered: bool,
    layout: u16,
    first: u32,
}

/// A flow with its messages, by number.
#[derive(Clone, Debug)]
pub struct FlowData {
    /// The flow.
    pub flow: Flow,
    /// Its messages.
    pub exchanges: Vec<Exchange>,
    /// The few orders of ledger entries that occur in a flow; a message refers to one of them.
    layouts: Vec<Vec<StageSet>>,
    times: Vec<Span>,
    /// Kernel timestamps of the messages that have all four, in any order.
    pub(crate) stamps: Vec<FourTimestamps>,
}

impl FlowData {
    /// A flow that has no messages yet.
    pub const fn new(flow: Flow) -> Self {
        Self {
            flow,
            exchanges: Vec::new(),
            layouts: Vec::new(),
            times: Vec::new(),
            stamps: Vec::new(),
        }
    }

    /// Adds those messages of an experiment that belong to this flow, in any order.
    pub fn add(&mut self, messages: &[Message]) {
        let mine = self.flow.index;
        for message in messages.iter().filter(|message| message.flow == mine) {
            self.push(message);
        }
        if !self.exchanges.is_sorted_by_key(|exchange| exchange.seq) {
            self.exchanges.sort_by_key(|exchange| exchange.seq);
        }
    }

    fn push(&mut self, message: &Message) {
        let marks = &message.marks;
        let ledger = message.ledger();
        let first = u32::try_from(self.times.len())
            .expect("an experiment of 4 billion ledger entries does not fit into memory before");
        let entries = ledger.as_ref().map_or(&[][..], Ledger::entries);
        let layout = self.layout(entries);
        self.times
            .extend(entries.iter().map(neph_model::Entry::time));
        if ledger.is_some() {
            self.stamps.extend(kernel_timestamps(marks));
        }
        let later = message.tcp_at_ack.or(message.tcp_at_send);
        self.exchanges.push(Exchange {
            seq: message.seq,
            outcome: message.outcome,
            intended: marks.intended,
            send_started: marks.first_action(),
            peer_app_rx: marks.peer.app_rx,
            response: ledger.map(|ledger| ledger.response_time()),
            service: ledger.map(|ledger| ledger.service_time()),
            ack: marks
                .acked
                .zip(marks.nic_tx)
                .map(|(acked, sent)| acked - sent),
            cwnd: message.tcp_at_send.map(|state| state.cwnd),
            cwnd_after: message.tcp_at_ack.map(|state| state.cwnd),
            min_rtt: later
                .filter(|state| (1..u32::MAX).contains(&state.min_rtt_us))
                .map(|state| Span::from_micros(i64::from(state.min_rtt_us))),
            retransmissions: later.map(|state| state.retransmissions),
            dsack_duplicates: later.map_or(0, |state| state.dsack_duplicates),
            connection: message.connection,
            reordered: message.reordered,
            layout,
            first,
        });
    }

    fn layout(&mut self, entries: &[Entry]) -> u16 {
        let sets = || entries.iter().map(|entry| entry.stages);
        let existing = self
            .layouts
            .iter()
            .position(|layout| layout.iter().copied().eq(sets()));
        let index = existing.unwrap_or_else(|| {
            self.layouts.push(sets().collect());
            self.layouts.len() - 1
        });
        // Each of ten timestamps is present or absent, so at most 2^11 layouts exist.
        u16::try_from(index).expect("there are fewer layouts than marks can be absent")
    }

    /// A message's ledger: its entries in order of time; empty without a reply.
    pub fn ledger(&self, exchange: &Exchange) -> impl Iterator<Item = (StageSet, Span)> {
        let sets = &self.layouts[usize::from(exchange.layout)];
        let first = exchange.first as usize;
        let times = &self.times[first..first + sets.len()];
        sets.iter().copied().zip(times.iter().copied())
    }

    /// Every ledger entry that some message of the flow has.
    pub(crate) fn stage_sets(&self) -> impl Iterator<Item = StageSet> {
        self.layouts.iter().flatten().copied()
    }

    /// RTT through the network by kernel timestamps. `None` if the network stage was not measured separately.
    pub fn network(&self, exchange: &Exchange) -> Option<Span> {
        let alone = StageSet::only(Stage::Network);
        let mut entries = self.ledger(exchange);
        entries.find(|(set, _)| *set == alone).map(|(_, time)| time)
    }

    /// The shortest RTT that the timestamps give: the network stage alone, else the service time. An ICMP
    /// peer adds almost nothing, so its service time is close to the network stage.
    pub fn round_trip(&self, exchange: &Exchange) -> Option<Span> {
        self.network(exchange).or(exchange.service)
    }

    /// Number of messages that were sent and got no reply in time.
    pub fn lost(&self) -> usize {
        self.ended(Outcome::Lost)
    }

    /// Number of messages with an unexpected reply.
    pub fn errors(&self) -> usize {
        self.ended(Outcome::Error)
    }

    /// Number of messages that could not be sent.
    pub fn failed(&self) -> usize {
        self.ended(Outcome::Failed)
    }

    fn ended(&self, outcome: Outcome) -> usize {
        let ended = |exchange: &&Exchange| exchange.outcome == outcome;
        self.exchanges.iter().filter(ended).count()
    }

    /// Each message with the growth of the connection's retransmission counters.
    pub(crate) fn retransmission_counts(
        &self,
    ) -> impl Iterator<Item = (&Exchange, RetransmissionCounts)> {
        let counts = retransmission_counts::count(&self.exchanges);
        self.exchanges.iter().zip(counts)
    }

    /// Each message, and whether its connection retransmitted segments while the message was under way. The
    /// counter is read when a message is acknowledged. Other messages that were under way then may also have
    /// been retransmitted.
    pub(crate) fn with_retransmission_meanwhile(&self) -> impl Iterator<Item = (&Exchange, bool)> {
        let mut until: BTreeMap<u32, Instant<Local>> = BTreeMap::new();
        self.retransmission_counts().map(move |(exchange, counts)| {
            let send_started = exchange.send_started.unwrap_or(exchange.intended);
            let is_behind = until
                .get(&exchange.connection)
                .is_some_and(|at| send_started < *at);
            if counts.segments > 0 {
                let took = exchange.ack.or(exchange.service).unwrap_or(Span::ZERO);
                until.insert(exchange.connection, send_started + took);
            }
            (exchange, is_behind || counts.segments > 0)
        })
    }

    /// When lost segments were retransmitted, and how many. A retransmission shows as growth of the
    /// connection's counter from one message to the next. Spurious retransmissions are not included.
    pub fn retransmissions(&self) -> Vec<(Instant<Local>, u32)> {
        self.messages_with(|counts| counts.segments)
    }

    /// When segments were retransmitted that the peer had already received, and how many.
    pub fn spurious_retransmissions(&self) -> Vec<(Instant<Local>, u32)> {
        self.messages_with(|counts| counts.spurious)
    }

    fn messages_with(&self, count: fn(RetransmissionCounts) -> u32) -> Vec<(Instant<Local>, u32)> {
        self.retransmission_counts()
            .map(|(exchange, counts)| (exchange.intended, count(counts)))
            .filter(|(_, segments)| *segments > 0)
            .collect()
    }
}

/// When a message departed and arrived, by kernel timestamps of both hosts.
fn kernel_timestamps(marks: &Marks) -> Option<FourTimestamps> {
    Some(FourTimestamps {
        sent: marks.nic_tx?.nanos(),
        arrived: marks.peer.rx?.nanos(),
        answered: marks.peer.nic_tx?.nanos(),
        returned: marks.nic_rx?.nanos(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million messages must fit into the memory of a small host.
    #[test]
    fn an_exchange_takes_at_most_168_bytes() {
        assert!(size_of::<Exchange>() <= 168, "{}", size_of::<Exchange>());
    }
}
