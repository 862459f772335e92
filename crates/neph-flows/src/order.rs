//! Loss, duplication and reordering of one flow, by direction.
//!
//! A message is reordered if a later one of its flow arrived before it (RFC 4737, 3.3). Requests are compared
//! at the peer, by its counter and timestamps. Replies are compared at the client, by send time and round
//! trip. Without data of the peer the directions stay unknown. For messages that cannot be compared see
//! [`is_comparable`].

use neph_model::{FleetMessage, FleetOutcome, FleetReply, Instant, Local, ProbeKind, ReadBy, Span};

use crate::counts::Counts;
use crate::flow_tally::FlowTally;
use crate::recent_outcomes::RecentOutcomes;

/// How many messages back reordering is detected: at 200 messages/s paths may differ by 30 ms.
const MAX_RECENT_REPLIES: usize = 6;
/// If a counter is lower by more than this, the peer restarted it: no reordering.
const MIN_RESTART_DROP: u32 = 32;
/// How much before its schedule the next message may depart. A fleet's flows alternate by whole nanoseconds,
/// and timestamps are not read at the same place.
const MAX_EARLINESS: Span = Span::from_millis(1);

/// The data of a reply that its order needs.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// When the reply arrived at the client host.
    client: i64,
    /// When the request arrived at the peer, and when the reply departed, on the peer's clock.
    forward: Option<(i64, i64)>,
    /// How many requests of the flow the peer had answered before.
    count: Option<u32>,
    /// The directions in which it has been counted already; each counts once.
    counted_reordering: Reordered,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reordered {
    forward: bool,
    reverse: bool,
    client: bool,
}

/// The latest replies, with which later messages may be reordered.
#[derive(Clone, Debug, Default)]
struct Recent {
    arrivals: [Option<Arrival>; MAX_RECENT_REPLIES],
    next_index: usize,
}

impl Recent {
    /// Drops replies that arrived before `sent`: no later message can overtake them. Returns whether any are
    /// left.
    fn drop_arrived(&mut self, sent: i64) -> bool {
        for entry in &mut self.arrivals {
            if entry.is_some_and(|arrival| arrival.client < sent) {
                *entry = None;
            }
        }
        self.arrivals.iter().any(Option::is_some)
    }

    fn add(&mut self, arrival: Arrival) {
        self.arrivals[self.next_index] = Some(arrival);
        self.next_index = (self.next_index + 1) % MAX_RECENT_REPLIES;
    }
}

/// The order of a flow's messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    tally: Counts,
    outcomes: RecentOutcomes,
    /// The highest counter of the peer so far.
    max_peer_count: Option<u32>,
    /// Number of duplicates of the last reply.
    last_duplicates: u8,
    /// Messages lost since the last reply.
    lost_since_reply: u32,
    overtaking: Option<Instant<Local>>,
    /// `None` while replies arrive before the next message departs.
    recent: Option<Box<Recent>>,
}

impl Order {
    /// Adds the next message of the flow, in order of the numbers, with this probe and interval. Returns what
    /// it adds to the tally.
    pub(crate) fn push(
        &mut self,
        message: &FleetMessage,
        probe: ProbeKind,
        interval: Span,
    ) -> FlowTally {
        let mut tally = FlowTally::default();
        match &message.outcome {
            FleetOutcome::Failed => tally.failed += 1,
            FleetOutcome::Lost => {
                tally.lost += 1;
                self.lost_since_reply = self.lost_since_reply.saturating_add(1);
                self.outcomes.push(true);
            }
            FleetOutcome::Reply(_) => {
                self.outcomes.push(false);
                self.reply(message, probe, interval, &mut tally);
            }
        }
        self.tally.add(&tally);
        tally
    }

    /// Outcomes of the flow's messages so far.
    pub(crate) const fn tally(&self) -> Counts {
        self.tally
    }

    /// Outcomes of the last messages.
    pub(crate) const fn outcomes(&self) -> RecentOutcomes {
        self.outcomes
    }

    /// When the latest message was sent that arrived before an earlier one.
    pub(crate) const fn overtaking(&self) -> Option<Instant<Local>> {
        self.overtaking
    }

    fn reply(
        &mut self,
        message: &FleetMessage,
        probe: ProbeKind,
        interval: Span,
        tally: &mut FlowTally,
    ) {
        let Some(reply) = message.reply() else {
            return;
        };
        let sent = message.sent;
        tally.replies += 1;
        tally.copies += u64::from(reply.copies);
        let arrival = Arrival {
            client: (sent + reply.round_trip).nanos(),
            forward: reply
                .peer_report
                .map(|peer| (peer.rx.nanos(), (peer.rx + peer.residence).nanos())),
            count: reply.peer_report.and_then(|peer| peer.count),
            counted_reordering: Reordered::default(),
        };
        self.divide_loss(arrival.count, reply.copies, tally);
        if !is_comparable(probe, reply) {
            return;
        }
        let is_in_flight = reply.round_trip + message.late + MAX_EARLINESS > interval;
        let Some(recent) = &mut self.recent else {
            if is_in_flight {
                self.recent.insert(Box::default()).add(arrival);
            }
            return;
        };
        if overtakes(recent, &arrival, tally) {
            self.overtaking = Some(sent);
        }
        if recent.drop_arrived(sent.nanos()) || is_in_flight {
            recent.add(arrival);
        } else {
            self.recent = None;
        }
    }

    /// Divides the messages lost since the last reply by direction: those that the peer counted were lost on
    /// the reverse path. Duplicates make this ambiguous, because a duplicated request increases the counter
    /// and a duplicated reply does not. Ambiguous messages stay undivided.
    fn divide_loss(&mut self, count: Option<u32>, copies: u8, tally: &mut FlowTally) {
        let lost_count = u64::from(std::mem::take(&mut self.lost_since_reply));
        let duplicates = u64::from(std::mem::replace(&mut self.last_duplicates, copies));
        let Some(count) = count else {
            return;
        };
        let previous_count = self.max_peer_count;
        self.max_peer_count = Some(previous_count.map_or(count, |previous_count| {
            if count.saturating_add(MIN_RESTART_DROP) < previous_count {
                count
            } else {
                previous_count.max(count)
            }
        }));
        let arrived_count = match previous_count {
            None => count,
            Some(previous_count) if count > previous_count => count - previous_count - 1,
            Some(previous_count) if count.saturating_add(MIN_RESTART_DROP) < previous_count => {
                return;
            }
            Some(_) => 0,
        };
        let arrived_count = u64::from(arrived_count);
        // If the peer has counted more requests than a new flow sent, it takes the flow for an old one.
        if previous_count.is_none() && arrived_count > lost_count {
            return;
        }
        tally.lost_reverse += arrived_count.saturating_sub(duplicates).min(lost_count);
        tally.lost_forward += lost_count.saturating_sub(arrived_count);
    }
}

/// Whether a reply shows the order of packets. Within a TCP connection nothing is reordered: later data waits
/// for earlier data. A timestamp of the application is later than that of the kernel by a varying wait.
pub(crate) fn is_comparable(probe: ProbeKind, reply: &FleetReply) -> bool {
    let is_connection = probe.uses_connection();
    !is_connection && reply.read_by == ReadBy::Kernel
}

/// Whether this reply, or its request, arrived before earlier ones; counts those.
fn overtakes(recent: &mut Recent, later: &Arrival, tally: &mut FlowTally) -> bool {
    let mut has_overtaken = false;
    for earlier in recent.arrivals.iter_mut().flatten() {
        let client = later.client < earlier.client;
        let (forward, reverse) = directions(earlier, later);
        let counted = &mut earlier.counted_reordering;
        for (is_reordered, counted, counter) in [
            (client, &mut counted.client, &mut tally.reordered),
            (forward, &mut counted.forward, &mut tally.reordered_forward),
            (reverse, &mut counted.reverse, &mut tally.reordered_reverse),
        ] {
            if is_reordered && !*counted {
                *counted = true;
                *counter += 1;
            }
        }
        has_overtaken |= client || forward || reverse;
    }
    has_overtaken
}

/// Whether the later request arrived before the earlier one on the forward path, and the later reply before
/// the earlier one on the reverse path.
fn directions(earlier: &Arrival, later: &Arrival) -> (bool, bool) {
    let (Some(first), Some(second)) = (earlier.forward, later.forward) else {
        return (false, false);
    };
    let request = |at, count| Request { at, count };
    let forward = is_forward(
        request(first.0, earlier.count),
        request(second.0, later.count),
    );
    // Replies that departed from the peer in the order of their requests, and arrived in the opposite order.
    let reverse = first.1 < second.1 && later.client < earlier.client;
    (forward, reverse)
}

/// A request's arrival at the peer: on its clock, and by its counter of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) at: i64,
    pub(crate) count: Option<u32>,
}

/// Whether the later request arrived at the peer before the earlier one. Timestamps and counters must both
/// show it: neither a restarted counter nor equal timestamps are reordering.
pub(crate) fn is_forward(earlier: Request, later: Request) -> bool {
    let is_lower_count = match (earlier.count, later.count) {
        (Some(first), Some(second)) => second < first,
        _ => true,
    };
    later.at < earlier.at && is_lower_count
}

#[cfg(test)]
mod tests;
