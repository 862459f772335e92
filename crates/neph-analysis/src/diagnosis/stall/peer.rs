//! Stalls of the peer: from when requests should have been answered until all of them were.
//!
//! Owns what looks similar and is no stall: a stalled client application, and TCP, which holds back bytes
//! behind a lost segment.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{Outcome, Seq, Span, Stage, StageSet};

use super::{Stall, Task, millis, read_time, stalls};
use crate::data::{Exchange, FlowData};
use crate::diagnosis::{SortedValues, Times};
use crate::text::to_f64;

/// Quantile of the reply times without delay.
const USUAL_QUANTILE: f64 = 0.05;
/// The client application sent due messages within this share of the stall ...
const MAX_LATE_SHARE: f64 = 0.25;
/// ... at least this share of them.
const MIN_IN_TIME_SHARE: f64 = 0.5;
/// A peer that reads regularly takes at least this share of the requests' interval from one to the next.
const MIN_PACE: f64 = 0.5;
/// Without more than the order of replies, one lost reply holds back the others until TCP's minimum timeout
/// (200 ms) and two round trips are over.
const TIMEOUT_MS: f64 = 250.0;
/// From this many stalls on, another one is likely.
const REPEATED_STALLS: usize = 2;
/// Connections are independent of each other.
const MIN_CONNECTIONS: usize = 3;
/// A wait belongs to the network or the kernel from this share of the stall on, else to the application.
const MAX_PROGRAM_SHARE: f64 = 0.3;
const MIN_HOST_SHARE: f64 = 0.5;
/// A kernel delays acknowledgements for up to 40 ms: shorter waits prove nothing.
const DELAYED_ACK_MS: f64 = 100.0;

/// Which part of the peer stalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PeerPart {
    /// The server application; the kernel kept running.
    Program,
    /// The whole host, or the network that carries its packets.
    Host,
    Unknown,
}

/// The peer's stalls in a flow, with its requests as tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerStalls {
    pub(crate) tasks: Vec<Task>,
    pub(crate) stalls: Vec<Stall>,
}

pub(crate) fn of_peer(flow: &FlowData) -> PeerStalls {
    let Some((tasks, usual)) = requests(flow) else {
        return PeerStalls::default();
    };
    // Several retransmissions within a stall concern one segment, the oldest. If the peer has acknowledged it
    // once as a duplicate, it was not lost: not every copy causes a DSACK.
    let retransmitted: BTreeSet<Seq> = flow
        .retransmission_counts()
        .filter(|(_, counts)| counts.segments > 0 && counts.spurious == 0)
        .map(|(exchange, _)| exchange.seq)
        .collect();
    let mut stalls = stalls(&tasks, &[]);
    let mut retained = 0;
    stalls.retain(|stall| {
        let waited = StallMessages::of(flow, stall);
        // For the last message, no later one shows whether its retransmission was spurious.
        let is_last = tasks.last().is_some_and(|task| task.due < stall.until);
        let no_messages = BTreeSet::new();
        let retransmitted = if is_last && retained >= REPEATED_STALLS {
            &no_messages
        } else {
            &retransmitted
        };
        let is_stall = client_kept_sending(flow, stall)
            && waited.are_answered()
            && waited.are_not_held_by_tcp(retransmitted, usual);
        retained += usize::from(is_stall);
        is_stall
    });
    PeerStalls { tasks, stalls }
}

/// The requests as tasks of the peer, and the usual time of a reply on an open connection.
///
/// A message that opens a connection takes additional round trips, and later messages on it wait for them. So
/// its reply is due at the usual time of such messages, and no other reply on the connection is due before
/// it.
fn requests(flow: &FlowData) -> Option<(Vec<Task>, f64)> {
    let sent_messages = || {
        flow.exchanges
            .iter()
            .filter(|exchange| exchange.outcome != Outcome::Failed)
    };
    let usual = |is_dialled: bool| {
        let reply_times =
            sent_messages().filter(|exchange| opens_connection(flow, exchange) == is_dialled);
        let reply_times = reply_times
            .filter_map(|exchange| Some(arrival(flow, exchange)? - departure(flow, exchange)?));
        reply_times
            .collect::<SortedValues>()
            .quantile(USUAL_QUANTILE)
    };
    let (usual_open, usual_dialled) = (usual(false), usual(true));
    // Messages without such a stage may be few, and all of them in a stall.
    let medians = [usual_open, usual_dialled].into_iter().flatten();
    let usual = medians.min_by(f64::total_cmp)?;
    let mut due_by_connection: BTreeMap<u32, f64> = BTreeMap::new();
    let mut tasks = Vec::new();
    for exchange in sent_messages() {
        let (Some(send_started), Some(departure)) =
            (exchange.send_started, departure(flow, exchange))
        else {
            continue;
        };
        let mut due = departure + usual;
        if opens_connection(flow, exchange) {
            due = departure + usual_dialled.unwrap_or(usual);
            due_by_connection.insert(exchange.connection, due);
        } else if let Some(connection_due) = due_by_connection.get(&exchange.connection) {
            due = due.max(*connection_due);
        }
        tasks.push(Task {
            seq: exchange.seq,
            requested: millis(send_started) + usual,
            due,
            done: arrival(flow, exchange),
        });
    }
    Some((tasks, usual))
}

/// Whether a message opens its connection.
fn opens_connection(flow: &FlowData, exchange: &Exchange) -> bool {
    flow.ledger(exchange)
        .any(|(set, _)| set.contains(Stage::Connect))
}

/// When a request departed, as far as known: a wait for TCP's window is no wait for the peer. A message that
/// opens a connection waits for the peer from its start.
fn departure(flow: &FlowData, exchange: &Exchange) -> Option<f64> {
    let send_started = millis(exchange.send_started?);
    let sets = || flow.ledger(exchange).map(|(set, _)| set);
    let is_known =
        sets().any(|set| set.contains(Stage::Network) && !set.contains(Stage::SendWindow));
    if opens_connection(flow, exchange) || !is_known {
        return Some(send_started);
    }
    let before = flow
        .ledger(exchange)
        .take_while(|(set, _)| !set.contains(Stage::Network));
    let waited = before.filter(|(set, _)| *set != StageSet::only(Stage::Lateness));
    Some(send_started + waited.map(|(_, time)| time.millis_f64()).sum::<f64>())
}

/// When a reply arrived in the client's kernel, as far as known; else when it was read.
fn arrival(flow: &FlowData, exchange: &Exchange) -> Option<f64> {
    let own_kernel = StageSet::only(Stage::OwnKernel);
    let mut unread = flow.ledger(exchange).filter(|(set, _)| *set == own_kernel);
    let unread = unread.next().map_or(0.0, |(_, time)| time.millis_f64());
    Some(read_time(exchange)? - unread)
}

/// Whether the client application kept sending meanwhile.
fn client_kept_sending(flow: &FlowData, stall: &Stall) -> bool {
    let due = flow
        .exchanges
        .iter()
        .filter(|exchange| (stall.from..stall.until).contains(&millis(exchange.intended)));
    let late = MAX_LATE_SHARE * stall.length();
    let is_in_time = |exchange: &&Exchange| {
        exchange
            .send_started
            .is_some_and(|at| (at - exchange.intended).millis_f64() <= late)
    };
    let (due_count, in_time) = (due.clone().count(), due.filter(is_in_time).count());
    // After the last message was due, nothing shows it.
    to_f64(in_time) >= MIN_IN_TIME_SHARE * to_f64(due_count)
}

/// The messages that waited in a stall.
struct StallMessages<'s> {
    flow: &'s FlowData,
    stall: &'s Stall,
    messages: Vec<&'s Exchange>,
}

impl<'s> StallMessages<'s> {
    fn of(flow: &'s FlowData, stall: &'s Stall) -> Self {
        let find = |seq: Seq| {
            let index = flow
                .exchanges
                .partition_point(|exchange| exchange.seq < seq);
            flow.exchanges
                .get(index)
                .filter(|exchange| exchange.seq == seq)
        };
        let exchanges = stall.waited.iter().filter_map(|task| find(task.seq));
        Self {
            flow,
            stall,
            messages: exchanges.collect(),
        }
    }

    /// In an outage packets are lost; in a stall they are delayed.
    fn are_answered(&self) -> bool {
        let replied = self
            .messages
            .iter()
            .filter(|exchange| exchange.response.is_some());
        2 * replied.count() >= self.messages.len()
    }

    /// Whether the cause is not TCP, which holds back bytes behind a lost segment.
    fn are_not_held_by_tcp(&self, retransmitted: &BTreeSet<Seq>, usual: f64) -> bool {
        let probe = self.flow.flow.probe;
        if !probe.uses_connection() {
            return !self.reads_at_send_pace();
        }
        let lost: BTreeSet<u32> = self
            .messages
            .iter()
            .filter(|exchange| retransmitted.contains(&exchange.seq))
            .map(|exchange| exchange.connection)
            .collect();
        let intact = self
            .messages
            .iter()
            .filter(|exchange| !lost.contains(&exchange.connection));
        let connections: BTreeSet<u32> =
            intact.clone().map(|exchange| exchange.connection).collect();
        let several = connections.len() >= MIN_CONNECTIONS;
        if 2 * intact.count() < self.messages.len() || self.reads_at_send_pace() {
            return false;
        }
        several || self.has_read_timestamps() || self.stall.length() > TIMEOUT_MS + 2.0 * usual
    }

    /// When each was sent and read, each on its own side's clock.
    fn reads(&self) -> Vec<(f64, f64)> {
        let times = self.messages.iter().filter_map(|exchange| {
            let read = Span::from_nanos(exchange.peer_app_rx?.nanos());
            Some((millis(exchange.send_started?), read.millis_f64()))
        });
        times.collect()
    }

    fn has_read_timestamps(&self) -> bool {
        2 * self.reads().len() >= self.messages.len()
    }

    /// Whether the peer read most of the messages as they were sent, by its own clock. A clock that stopped
    /// as well jumps between two of them.
    fn reads_at_send_pace(&self) -> bool {
        let reads = self.reads();
        let is_at_pace = |pair: &&[(f64, f64)]| {
            let (sent, read) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
            read >= MIN_PACE * sent
        };
        let at_pace = reads.windows(2).filter(is_at_pace).count();
        self.has_read_timestamps() && 2 * at_pace + 1 >= reads.len()
    }
}

impl PeerStalls {
    /// Number of messages that show a stall of the server application, and of the whole peer.
    pub(crate) fn votes(&self, flow: &FlowData) -> (usize, usize) {
        let (mut program, mut host) = (0, 0);
        for stall in &self.stalls {
            for exchange in StallMessages::of(flow, stall).messages {
                match stalled_part(flow, exchange) {
                    PeerPart::Program => program += 1,
                    PeerPart::Host => host += 1,
                    PeerPart::Unknown => {}
                }
            }
        }
        (program, host)
    }

    /// The rest of a stall at a time, in milliseconds: the part of a wait that the stall causes.
    pub(crate) fn remaining_at(&self, due: f64) -> Option<f64> {
        let index = self.stalls.partition_point(|stall| stall.until <= due);
        let stall = self.stalls.get(index).filter(|stall| stall.from < due)?;
        Some(stall.until - due)
    }
}

/// Which part of the peer stalled, according to one message.
fn stalled_part(flow: &FlowData, exchange: &Exchange) -> PeerPart {
    // The peer's kernel answers these.
    if flow.flow.probe.properties().is_answered_by_kernel {
        return PeerPart::Host;
    }
    let Some(service) = exchange.service.map(Span::millis_f64) else {
        return PeerPart::Unknown;
    };
    let part_by_share = |part: f64| match part / service {
        share if share <= MAX_PROGRAM_SHARE => PeerPart::Program,
        share if share >= MIN_HOST_SHARE => PeerPart::Host,
        _ => PeerPart::Unknown,
    };
    // Other stages may be merged with it, but not the peer's kernel with the application.
    let network_stage = flow.ledger(exchange).find(|(set, _)| {
        let has_peer = set.contains(Stage::PeerKernel) || set.contains(Stage::PeerApp);
        set.contains(Stage::Network) && !has_peer
    });
    if let Some((_, time)) = network_stage {
        return part_by_share(time.millis_f64());
    }
    // TCP may delay the acknowledgement until the reply if the reply is fast.
    let late_ack = exchange.ack.filter(|_| service >= DELAYED_ACK_MS);
    if let Some(ack) = late_ack {
        return part_by_share(ack.millis_f64());
    }
    let times = Times::of(flow, exchange);
    let peer = times.sum(&[Stage::PeerKernel, Stage::PeerApp, Stage::Handshake]);
    if peer >= MIN_HOST_SHARE * service {
        PeerPart::Program
    } else {
        PeerPart::Unknown
    }
}
