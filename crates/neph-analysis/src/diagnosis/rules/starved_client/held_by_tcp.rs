//! Replies that waited in the client's kernel because TCP held them back behind lost and retransmitted bytes.
//! The client application was ready to read, and there was no data yet.

use std::collections::BTreeSet;

use neph_model::{Seq, Span, Stage, StageSet};

use super::MIN_DELAY_MS;
use crate::data::{Exchange, FlowData};
use crate::diagnosis::SortedValues;

/// TCP delivers a held reply together with the one that it waited for: both are read within this time in
/// milliseconds.
const TOGETHER_MS: f64 = 0.5;

/// A reply, in milliseconds of the experiment.
#[derive(Clone, Copy)]
struct Reply {
    seq: Seq,
    connection: u32,
    send_started: f64,
    /// When its last byte arrived; if one call reads several replies, only the last has it.
    arrived: Option<f64>,
    read: f64,
}

impl Reply {
    fn of(flow: &FlowData, exchange: &Exchange) -> Option<Self> {
        let own_kernel = StageSet::only(Stage::OwnKernel);
        let unread = flow.ledger(exchange).find(|(set, _)| *set == own_kernel);
        let read = millis(exchange.intended) + exchange.response?.millis_f64();
        Some(Self {
            seq: exchange.seq,
            connection: exchange.connection,
            send_started: exchange
                .send_started
                .map_or_else(|| millis(exchange.intended), millis),
            arrived: unread.map(|(_, time)| read - time.millis_f64()),
            read,
        })
    }
}

fn millis(at: neph_model::Instant<neph_model::Local>) -> f64 {
    Span::from_nanos(at.nanos()).millis_f64()
}

/// What the client application did and when, except for reading the reply in question. One thread sends and
/// reads, so activity in time proves that it ran.
struct ClientActivity {
    /// When it sent in time, or read.
    activity_times: Vec<f64>,
    /// When it was scheduled to send, and did not.
    missed_times: Vec<f64>,
}

impl ClientActivity {
    fn of(flow: &FlowData, replies: &[Reply]) -> Self {
        let exchanges = flow.exchanges.iter();
        let send_times = exchanges.filter_map(|exchange| {
            Some((millis(exchange.intended), millis(exchange.send_started?)))
        });
        let (late, in_time): (Vec<_>, Vec<_>) =
            send_times.partition(|(due, at)| at - due >= MIN_DELAY_MS);
        let reads = replies.iter().map(|reply| reply.read);
        let mut activity_times: Vec<f64> =
            in_time.into_iter().map(|(_, at)| at).chain(reads).collect();
        let mut missed_times: Vec<f64> = late.into_iter().map(|(due, _)| due).collect();
        activity_times.sort_by(f64::total_cmp);
        missed_times.sort_by(f64::total_cmp);
        Self {
            activity_times,
            missed_times,
        }
    }

    /// Whether it ran between the two moments, at some distance from both. It may send just before a reply
    /// arrives, or just after it woke.
    fn was_active(&self, from: f64, to: f64) -> bool {
        let first = self
            .activity_times
            .partition_point(|at| *at < from + MIN_DELAY_MS);
        self.activity_times
            .get(first)
            .is_some_and(|at| *at <= to - MIN_DELAY_MS)
    }

    fn missed_between(&self, from: f64, to: f64) -> bool {
        let first = self.missed_times.partition_point(|at| *at < from);
        self.missed_times.get(first).is_some_and(|at| *at <= to)
    }
}

/// The replies that TCP held back.
///
/// Either the application was active in time while the reply waited, or it read the reply together with its
/// predecessor. In the second case the predecessor did not wait, and nothing was sent late since it usually
/// would have come. A stalled application would have sent late as well.
pub(crate) fn held_by_tcp(flow: &FlowData) -> BTreeSet<Seq> {
    // Neither datagrams nor ICMP have an order.
    if !flow.flow.probe.uses_connection() {
        return BTreeSet::new();
    }
    let exchanges = flow.exchanges.iter();
    let mut replies: Vec<Reply> = exchanges
        .filter_map(|exchange| Reply::of(flow, exchange))
        .collect();
    replies.sort_by_key(|reply| (reply.connection, reply.seq));
    let client = ClientActivity::of(flow, &replies);
    let times: SortedValues = replies
        .iter()
        .map(|reply| reply.read - reply.send_started)
        .collect();
    let usual_time = times.median().unwrap_or(0.0);
    let mut held_replies = BTreeSet::new();
    let mut previous: Option<Reply> = None;
    // When the first of the replies that were read together would have arrived.
    let mut expected_at = 0.0;
    for reply in replies {
        let predecessor = previous.filter(|previous| {
            previous.connection == reply.connection && reply.read - previous.read <= TOGETHER_MS
        });
        if predecessor.is_none() {
            expected_at = reply.send_started + usual_time;
        }
        previous = Some(reply);
        let Some(arrived) = reply.arrived.filter(|at| reply.read - at >= MIN_DELAY_MS) else {
            continue;
        };
        let is_behind = predecessor.is_some_and(|previous| {
            let has_waited = previous.arrived.is_some_and(|at| at < arrived);
            !has_waited || held_replies.contains(&previous.seq)
        });
        let is_in_order = is_behind && !client.missed_between(expected_at.min(arrived), reply.read);
        if is_in_order || client.was_active(arrived, reply.read) {
            held_replies.insert(reply.seq);
        }
    }
    held_replies
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use neph_model::{Flow, FlowIndex, FlowRole, Instant, Local, Marks, Message, Outcome, Peer};

    use neph_model::ProbeKind;

    use super::*;

    const NONE: [u64; 0] = [];

    /// A message every 20 ms over a round trip of 30 ms, if nothing happens.
    #[derive(Clone, Copy)]
    struct SentMessage {
        at: f64,
        arrived: Option<f64>,
        read: f64,
        connection: u32,
    }

    fn undisturbed(seq: usize) -> SentMessage {
        let due = 20.0 * f64::from(u32::try_from(seq).unwrap());
        SentMessage {
            at: due,
            arrived: Some(due + 30.0),
            read: due + 30.02,
            connection: 0,
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "milliseconds of a test")]
    fn instant(millis: f64) -> Instant<Local> {
        Instant::from_nanos((millis * 1e6) as i64)
    }

    fn flow(probe: ProbeKind, sent: &[SentMessage]) -> FlowData {
        let mut data = FlowData::new(Flow {
            index: FlowIndex(0),
            role: FlowRole::Main,
            probe,
            name: "metro".into(),
            source: None,
            target: SocketAddr::new([192, 0, 2, 7].into(), 8080),
            reflector: true,
            same_clock: true,
        });
        let messages = sent.iter().enumerate().map(|(seq, sent_message)| {
            let mut marks = Marks::intended_at(instant(undisturbed(seq).at));
            marks.app_send = Some(instant(sent_message.at));
            (marks.queued, marks.nic_tx) = (marks.app_send, marks.app_send);
            let peer = Some(Instant::<Peer>::from_nanos(0));
            (marks.peer.rx, marks.peer.app_rx) = (peer, peer);
            (marks.peer.app_tx, marks.peer.nic_tx) = (peer, peer);
            (marks.nic_rx, marks.app_recv) = (
                sent_message.arrived.map(instant),
                Some(instant(sent_message.read)),
            );
            let mut message = Message::new(FlowIndex(0), Seq(u64::try_from(seq).unwrap()), marks);
            message.outcome = Outcome::Reply;
            message.connection = sent_message.connection;
            message
        });
        data.add(&messages.collect::<Vec<_>>());
        data
    }

    /// Changes some of twenty messages; returns the numbers of those that TCP held back.
    fn held_replies(probe: ProbeKind, change: impl Fn(usize, &mut SentMessage)) -> Vec<u64> {
        let sent = (0..20).map(|seq| {
            let mut message = undisturbed(seq);
            change(seq, &mut message);
            message
        });
        let held_by_tcp = held_by_tcp(&flow(probe, &sent.collect::<Vec<_>>()));
        held_by_tcp.into_iter().map(|seq| seq.0).collect()
    }

    /// The reply to message 5 is lost and arrives 40 ms late. One call reads it with the two behind it, and
    /// only the last has a kernel timestamp.
    fn delay_lost_reply(seq: usize, message: &mut SentMessage) {
        if (5..8).contains(&seq) {
            message.read = undisturbed(5).read + 40.5;
        }
        if (5..7).contains(&seq) {
            message.arrived = None;
        }
    }

    #[test]
    fn replies_read_together_with_a_retransmitted_one_were_held_by_tcp() {
        // The last one came just before the lost one: it did not wait.
        assert_eq!(held_replies(ProbeKind::Ws, delay_lost_reply), NONE);
        let read_later = |seq: usize, message: &mut SentMessage| {
            delay_lost_reply(seq, message);
            if (5..8).contains(&seq) {
                message.read += 9.5;
            }
        };
        assert_eq!(held_replies(ProbeKind::Ws, read_later), [7]);
        // Datagrams are not held back.
        assert_eq!(held_replies(ProbeKind::Udp, read_later), NONE);
        // The lost reply, too, has the timestamp of when they were read.
        let own_timestamps = |seq: usize, message: &mut SentMessage| {
            read_later(seq, message);
            if (5..7).contains(&seq) {
                message.arrived = Some(if seq == 5 {
                    message.read - 0.02
                } else {
                    undisturbed(6).read - 0.02
                });
            }
        };
        assert_eq!(held_replies(ProbeKind::Ws, own_timestamps), [6, 7]);
    }

    #[test]
    fn replies_read_together_after_a_client_stall_were_not_held_by_tcp() {
        // From 135 to 185 ms: the replies to 6 and 7 wait, and 7, 8 and 9 are sent late.
        let stall_client = |seq: usize, message: &mut SentMessage| {
            if (6..8).contains(&seq) {
                message.read = 185.0;
            }
            if seq == 6 {
                message.arrived = None;
            }
            if (7..10).contains(&seq) {
                message.at = 185.1;
            }
            if (8..10).contains(&seq) {
                (message.arrived, message.read) = (Some(215.1), 215.12);
            }
            if seq == 7 {
                (message.at, message.arrived) = (undisturbed(7).at + 0.01, Some(170.0));
            }
        };
        assert_eq!(held_replies(ProbeKind::Ws, stall_client), NONE);
    }

    #[test]
    fn an_unread_reply_was_held_by_tcp_if_the_client_kept_sending() {
        // On a connection of its own: no other reply waits behind its lost segment.
        let delay_reply = |delay_ms: f64| {
            move |seq: usize, message: &mut SentMessage| {
                message.connection = u32::try_from(seq).unwrap();
                if seq == 5 {
                    message.read += delay_ms;
                }
            }
        };
        assert_eq!(held_replies(ProbeKind::Http, delay_reply(28.0)), [5]);
        // Without other activity, the application may be the cause.
        assert_eq!(held_replies(ProbeKind::Http, delay_reply(8.0)), NONE);
    }
}
