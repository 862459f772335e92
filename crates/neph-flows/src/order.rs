//! Loss, duplication and reordering of one flow, by direction.
//!
//! A message is reordered when a later one of its flow arrived before it (RFC 4737, 3.3). Requests
//! are looked at where they arrive, at the peer, by its count and its stamps; replies where they
//! arrive, here, by when their requests left and how long they took. What the peer does not tell is
//! not divided between the directions. What cannot be compared is left out: see [`is_comparable`].

use neph_model::{FleetMessage, FleetOutcome, FleetReply, Instant, Own, ProbeKind, ReadBy, Span};

use crate::counts::Counts;
use crate::flow_tally::FlowTally;
use crate::lately::Lately;

/// How many messages back an overtaking is looked for: at 200 messages/s paths may differ by 30 ms.
const REACH: usize = 6;
/// A count that is lower by more than this was begun anew by the peer, and not overtaken.
const RESTART: u32 = 32;
/// How much earlier than by the schedule the next message may leave: a fleet's flows take turns by
/// whole nanoseconds, and stamps are not read at the same place.
const EARLY: Span = Span::from_millis(1);

/// A reply, as far as the order needs it.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// When the reply arrived here.
    here: i64,
    /// When the request arrived at the peer, and when the reply left it: on its clock.
    there: Option<(i64, i64)>,
    /// How many requests of the flow the peer had answered before.
    count: Option<u32>,
    /// What is known of it already: counted once in each direction.
    overtaken: Overtaken,
}

#[derive(Clone, Copy, Debug, Default)]
struct Overtaken {
    there: bool,
    back: bool,
    here: bool,
}

/// Replies that later messages may have overtaken: the latest ones.
#[derive(Clone, Debug, Default)]
struct Recent {
    arrivals: [Option<Arrival>; REACH],
    next: usize,
}

impl Recent {
    /// Forgets those that arrived before `sent`: no message that leaves then overtakes them.
    /// Returns whether any are left.
    fn pass(&mut self, sent: i64) -> bool {
        for slot in &mut self.arrivals {
            if slot.is_some_and(|arrival| arrival.here < sent) {
                *slot = None;
            }
        }
        self.arrivals.iter().any(Option::is_some)
    }

    fn add(&mut self, arrival: Arrival) {
        self.arrivals[self.next] = Some(arrival);
        self.next = (self.next + 1) % REACH;
    }
}

/// The order in which a flow's messages came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    tally: Counts,
    lately: Lately,
    /// The highest count of the peer so far.
    answered: Option<u32>,
    /// How often the last reply came again.
    again: u8,
    /// Messages lost since the last reply.
    missing: u32,
    overtaking: Option<Instant<Own>>,
    /// Only while there are such: where replies come before the next message leaves there are none.
    recent: Option<Box<Recent>>,
}

impl Order {
    /// The next message of the flow; they come in the order of their numbers, each of this kind and
    /// the interval apart. Returns what it adds to the tally.
    pub(crate) fn push(
        &mut self,
        message: &FleetMessage,
        probe: ProbeKind,
        interval: Span,
    ) -> FlowTally {
        let mut found = FlowTally::default();
        match &message.outcome {
            FleetOutcome::Failed => found.failed += 1,
            FleetOutcome::Lost => {
                found.lost += 1;
                self.missing = self.missing.saturating_add(1);
                self.lately.push(true);
            }
            FleetOutcome::Reply(_) => {
                self.lately.push(false);
                self.reply(message, probe, interval, &mut found);
            }
        }
        self.tally.add(&found);
        found
    }

    /// How the flow's messages fared so far.
    pub(crate) const fn tally(&self) -> Counts {
        self.tally
    }

    /// How the last ones fared.
    pub(crate) const fn lately(&self) -> Lately {
        self.lately
    }

    /// When the latest message was sent that overtook an earlier one.
    pub(crate) const fn overtaking(&self) -> Option<Instant<Own>> {
        self.overtaking
    }

    fn reply(
        &mut self,
        message: &FleetMessage,
        probe: ProbeKind,
        interval: Span,
        found: &mut FlowTally,
    ) {
        let Some(reply) = message.reply() else {
            return;
        };
        let sent = message.sent;
        found.replies += 1;
        found.copies += u64::from(reply.copies);
        let arrival = Arrival {
            here: (sent + reply.round_trip).nanos(),
            there: reply
                .at_peer
                .map(|peer| (peer.rx.nanos(), (peer.rx + peer.residence).nanos())),
            count: reply.at_peer.and_then(|peer| peer.count),
            overtaken: Overtaken::default(),
        };
        self.divide_loss(arrival.count, reply.copies, found);
        if !is_comparable(probe, reply) {
            return;
        }
        let stays = reply.round_trip + message.late + EARLY > interval;
        let Some(recent) = &mut self.recent else {
            if stays {
                self.recent.insert(Box::default()).add(arrival);
            }
            return;
        };
        if overtakes(recent, &arrival, found) {
            self.overtaking = Some(sent);
        }
        if recent.pass(sent.nanos()) || stays {
            recent.add(arrival);
        } else {
            self.recent = None;
        }
    }

    /// Of the messages lost since the last reply, those that the peer counted were lost on the way
    /// back. It also counted the last reply's request again if that was doubled on the way there;
    /// whether it was, or its reply on the way back, nobody knows: what hangs on it is not divided.
    fn divide_loss(&mut self, count: Option<u32>, copies: u8, found: &mut FlowTally) {
        let missing = u64::from(std::mem::take(&mut self.missing));
        let again = u64::from(std::mem::replace(&mut self.again, copies));
        let Some(count) = count else {
            return;
        };
        let before = self.answered;
        self.answered = Some(before.map_or(count, |before| {
            if count.saturating_add(RESTART) < before {
                count
            } else {
                before.max(count)
            }
        }));
        let arrived = match before {
            None => count,
            Some(before) if count > before => count - before - 1,
            Some(before) if count.saturating_add(RESTART) < before => return,
            Some(_) => 0,
        };
        let arrived = u64::from(arrived);
        // A new flow whose peer has counted more than was sent is an old one to the peer.
        if before.is_none() && arrived > missing {
            return;
        }
        found.lost_reverse += arrived.saturating_sub(again).min(missing);
        found.lost_forward += missing.saturating_sub(arrived);
    }
}

/// Whether a reply says anything of the order of packets. Within a connection nothing overtakes:
/// what TCP was kept from telling comes with what follows. And a moment that the program read is
/// later than one of the kernel by what the program was kept waiting, message by message.
pub(crate) fn is_comparable(probe: ProbeKind, reply: &FleetReply) -> bool {
    let is_connection = probe.on_connection();
    !is_connection && reply.read_by == ReadBy::Kernel
}

/// Whether this reply, or its request, overtook earlier ones; counts those.
fn overtakes(recent: &mut Recent, later: &Arrival, found: &mut FlowTally) -> bool {
    let mut does = false;
    for earlier in recent.arrivals.iter_mut().flatten() {
        let here = later.here < earlier.here;
        let (there, back) = directions(earlier, later);
        let seen = &mut earlier.overtaken;
        for (is, seen, counter) in [
            (here, &mut seen.here, &mut found.reordered),
            (there, &mut seen.there, &mut found.reordered_forward),
            (back, &mut seen.back, &mut found.reordered_reverse),
        ] {
            if is && !*seen {
                *seen = true;
                *counter += 1;
            }
        }
        does |= here || there || back;
    }
    does
}

/// Whether the later request overtook the earlier one on its way there, and the later reply the
/// earlier one on its way back.
fn directions(earlier: &Arrival, later: &Arrival) -> (bool, bool) {
    let (Some(first), Some(second)) = (earlier.there, later.there) else {
        return (false, false);
    };
    let request = |at, count| Request { at, count };
    let there = overtook_there(
        request(first.0, earlier.count),
        request(second.0, later.count),
    );
    // Replies that left the peer in the order of their requests, and came in the other.
    let back = first.1 < second.1 && later.here < earlier.here;
    (there, back)
}

/// A request's arrival at the peer: by its clock, and by its count of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) at: i64,
    pub(crate) count: Option<u32>,
}

/// Whether the later request arrived at the peer before the earlier one, by the peer's stamps and
/// counts. Both have to say so: a count that began anew is no overtaking, and neither are two
/// requests with one stamp.
pub(crate) fn overtook_there(earlier: Request, later: Request) -> bool {
    let by_count = match (earlier.count, later.count) {
        (Some(first), Some(second)) => second < first,
        _ => true,
    };
    later.at < earlier.at && by_count
}

#[cfg(test)]
mod tests;
