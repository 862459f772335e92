//! Stalls of the peer: from when requests were to be answered until all of them were.
//!
//! Owns what looks like one and is none: our own program that stood still, and TCP, which holds back
//! what comes behind a lost segment.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{Outcome, Seq, Span, Stage, StageSet};

use super::{Stall, Task, millis, read, stalls};
use crate::data::{Exchange, FlowData};
use crate::diagnosis::{Ordered, Times};
use crate::words::real;

/// The level of a reply that nobody delays.
const USUAL: f64 = 0.05;
/// Our own program sent what was due within this share of the stall ...
const IN_TIME: f64 = 0.25;
/// ... of this share of what was due.
const ALIVE: f64 = 0.5;
/// A peer that reads at its own pace takes this share of the requests' time from one to the next.
const AT_ITS_PACE: f64 = 0.5;
/// Where only the order of a connection's replies is seen, one lost reply holds back the others until
/// TCP's least timeout (200 ms) and two round trips are over.
const TIMEOUT_MS: f64 = 250.0;
/// So many stalls make another likely.
const SEVERAL: usize = 2;
/// Several connections do not wait for each other.
const CONNECTIONS: usize = 3;
/// A wait is the network's or the kernel's from this share of it on, and the program's up to that.
const NONE_OF_IT: f64 = 0.3;
const MOST_OF_IT: f64 = 0.5;
/// A kernel delays acknowledgements for up to 40 ms: shorter waits say nothing.
const DELAYED_ACK_MS: f64 = 100.0;

/// Which part of the peer stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Its program; its kernel went on.
    Program,
    /// All of it, or what carries its packets.
    Host,
    Unknown,
}

/// The peer's stalls in a flow, beside its requests as tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerStalls {
    pub(crate) tasks: Vec<Task>,
    pub(crate) stalls: Vec<Stall>,
}

pub(crate) fn of_peer(flow: &FlowData) -> PeerStalls {
    let Some((tasks, usual)) = requests(flow) else {
        return PeerStalls::default();
    };
    // What is retransmitted several times within a stall is one segment, the oldest: if the peer had it
    // once already, it was not lost. Not each copy is answered by a DSACK of its own.
    let resent: BTreeSet<Seq> = flow
        .resent()
        .filter(|(_, resent)| resent.segments > 0 && resent.spurious == 0)
        .map(|(one, _)| one.seq)
        .collect();
    let mut stalls = stalls(&tasks, &[]);
    let mut kept = 0;
    stalls.retain(|stall| {
        let waited = Members::of(flow, stall);
        // Whether the last of several was retransmitted for nothing, no later message shows.
        let is_last = tasks.last().is_some_and(|task| task.due < stall.until);
        let none = BTreeSet::new();
        let resent = if is_last && kept >= SEVERAL {
            &none
        } else {
            &resent
        };
        let is_kept =
            was_awake(flow, stall) && waited.are_answered() && waited.are_not_held(resent, usual);
        kept += usize::from(is_kept);
        is_kept
    });
    PeerStalls { tasks, stalls }
}

/// The requests as tasks of the peer, and what a reply usually takes on an open connection.
///
/// A message that opens a connection takes round trips more, and what is sent on it meanwhile waits for
/// them. So its reply is due when such a message's usually comes, and no other's on that connection
/// before it: to open one is no stall.
fn requests(flow: &FlowData) -> Option<(Vec<Task>, f64)> {
    let sent = || {
        flow.exchanges
            .iter()
            .filter(|one| one.outcome != Outcome::Failed)
    };
    let usual = |is_dialled: bool| {
        let took = sent().filter(|one| dials(flow, one) == is_dialled);
        let took = took.filter_map(|one| Some(arrived(flow, one)? - left(flow, one)?));
        took.collect::<Ordered>().at(USUAL)
    };
    let (open, dialled) = (usual(false), usual(true));
    // Those without such a stage may be few, and all of a stall.
    let both = [open, dialled].into_iter().flatten();
    let usual = both.min_by(f64::total_cmp)?;
    let mut opened: BTreeMap<u32, f64> = BTreeMap::new();
    let mut tasks = Vec::new();
    for one in sent() {
        let (Some(begun), Some(left)) = (one.begun, left(flow, one)) else {
            continue;
        };
        let mut due = left + usual;
        if dials(flow, one) {
            due = left + dialled.unwrap_or(usual);
            opened.insert(one.connection, due);
        } else if let Some(opened) = opened.get(&one.connection) {
            due = due.max(*opened);
        }
        tasks.push(Task {
            seq: one.seq,
            asked: millis(begun) + usual,
            due,
            done: arrived(flow, one),
        });
    }
    Some((tasks, usual))
}

/// Whether a message opens its connection.
fn dials(flow: &FlowData, one: &Exchange) -> bool {
    flow.ledger(one)
        .any(|(set, _)| set.contains(Stage::Connect))
}

/// When a request left, as far as that is known: what waits for TCP's window does not wait for the
/// peer's answer. One that opens a connection waits for the peer from then on.
fn left(flow: &FlowData, one: &Exchange) -> Option<f64> {
    let begun = millis(one.begun?);
    let sets = || flow.ledger(one).map(|(set, _)| set);
    let is_known =
        sets().any(|set| set.contains(Stage::Network) && !set.contains(Stage::SendWindow));
    if dials(flow, one) || !is_known {
        return Some(begun);
    }
    let before = flow
        .ledger(one)
        .take_while(|(set, _)| !set.contains(Stage::Network));
    let waited = before.filter(|(set, _)| *set != StageSet::only(Stage::Lateness));
    Some(begun + waited.map(|(_, time)| time.millis_f64()).sum::<f64>())
}

/// When a reply came to our kernel, as far as that is known; else when it was read.
fn arrived(flow: &FlowData, one: &Exchange) -> Option<f64> {
    let own_kernel = StageSet::only(Stage::OwnKernel);
    let mut unread = flow.ledger(one).filter(|(set, _)| *set == own_kernel);
    let unread = unread.next().map_or(0.0, |(_, time)| time.millis_f64());
    Some(read(one)? - unread)
}

/// Whether our own program went on sending meanwhile.
fn was_awake(flow: &FlowData, stall: &Stall) -> bool {
    let due = flow
        .exchanges
        .iter()
        .filter(|one| (stall.from..stall.until).contains(&millis(one.intended)));
    let late = IN_TIME * stall.length();
    let is_in_time = |one: &&Exchange| {
        one.begun
            .is_some_and(|at| (at - one.intended).millis_f64() <= late)
    };
    let (all, in_time) = (due.clone().count(), due.filter(is_in_time).count());
    // After the last message was due nothing shows it.
    real(in_time) >= ALIVE * real(all)
}

/// The messages that waited in a stall.
struct Members<'s> {
    flow: &'s FlowData,
    stall: &'s Stall,
    all: Vec<&'s Exchange>,
}

impl<'s> Members<'s> {
    fn of(flow: &'s FlowData, stall: &'s Stall) -> Self {
        let find = |seq: Seq| {
            let place = flow.exchanges.partition_point(|one| one.seq < seq);
            flow.exchanges.get(place).filter(|one| one.seq == seq)
        };
        let all = stall.waited.iter().filter_map(|one| find(one.seq));
        Self {
            flow,
            stall,
            all: all.collect(),
        }
    }

    /// An outage loses what a stall delays.
    fn are_answered(&self) -> bool {
        let replied = self.all.iter().filter(|one| one.response.is_some());
        2 * replied.count() >= self.all.len()
    }

    /// Whether it was not TCP that held them back behind a lost segment.
    fn are_not_held(&self, resent: &BTreeSet<Seq>, usual: f64) -> bool {
        let probe = self.flow.flow.probe;
        if !probe.on_connection() {
            return !self.answered_at_its_pace();
        }
        let lost: BTreeSet<u32> = self
            .all
            .iter()
            .filter(|one| resent.contains(&one.seq))
            .map(|one| one.connection)
            .collect();
        let whole = self
            .all
            .iter()
            .filter(|one| !lost.contains(&one.connection));
        let connections: BTreeSet<u32> = whole.clone().map(|one| one.connection).collect();
        let several = connections.len() >= CONNECTIONS;
        if 2 * whole.count() < self.all.len() || self.answered_at_its_pace() {
            return false;
        }
        several || self.has_marks() || self.stall.length() > TIMEOUT_MS + 2.0 * usual
    }

    /// When each was sent and read, each on its own side's clock.
    fn reads(&self) -> Vec<(f64, f64)> {
        let both = self.all.iter().filter_map(|one| {
            let read = Span::from_nanos(one.peer_app_rx?.nanos());
            Some((millis(one.begun?), read.millis_f64()))
        });
        both.collect()
    }

    fn has_marks(&self) -> bool {
        2 * self.reads().len() >= self.all.len()
    }

    /// Whether the peer's own clock says that it read most of them as they were sent. A clock that
    /// stood still as well, and then jumps, does so between two of them.
    fn answered_at_its_pace(&self) -> bool {
        let reads = self.reads();
        let is_at_pace = |pair: &&[(f64, f64)]| {
            let (sent, read) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
            read >= AT_ITS_PACE * sent
        };
        let at_pace = reads.windows(2).filter(is_at_pace).count();
        self.has_marks() && 2 * at_pace + 1 >= reads.len()
    }
}

impl PeerStalls {
    /// Which part of the peer its messages show to have stood still: so many say its program, so many
    /// all of it.
    pub(crate) fn votes(&self, flow: &FlowData) -> (usize, usize) {
        let (mut program, mut host) = (0, 0);
        for stall in &self.stalls {
            for one in Members::of(flow, stall).all {
                match side(flow, one) {
                    Side::Program => program += 1,
                    Side::Host => host += 1,
                    Side::Unknown => {}
                }
            }
        }
        (program, host)
    }

    /// How much of a wait at a time is a stall's, in milliseconds: the rest of the stall then.
    pub(crate) fn rest_at(&self, due: f64) -> Option<f64> {
        let place = self.stalls.partition_point(|stall| stall.until <= due);
        let stall = self.stalls.get(place).filter(|stall| stall.from < due)?;
        Some(stall.until - due)
    }
}

/// Which part of the peer one message shows to have stood still.
fn side(flow: &FlowData, one: &Exchange) -> Side {
    // A kernel answers these.
    if flow.flow.probe.facts().is_answered_by_kernel {
        return Side::Host;
    }
    let Some(service) = one.service.map(Span::millis_f64) else {
        return Side::Unknown;
    };
    let of_it = |part: f64| match part / service {
        share if share <= NONE_OF_IT => Side::Program,
        share if share >= MOST_OF_IT => Side::Host,
        _ => Side::Unknown,
    };
    // Whatever else is merged with it, if the peer's kernel and program are not.
    let crossing = flow.ledger(one).find(|(set, _)| {
        let has_peer = set.contains(Stage::PeerKernel) || set.contains(Stage::PeerApp);
        set.contains(Stage::Network) && !has_peer
    });
    if let Some((_, time)) = crossing {
        return of_it(time.millis_f64());
    }
    // Of one that is not acknowledged at once TCP waits for the reply.
    let acknowledged = one.ack.filter(|_| service >= DELAYED_ACK_MS);
    if let Some(ack) = acknowledged {
        return of_it(ack.millis_f64());
    }
    let times = Times::of(flow, one);
    let peer = times.sum(&[Stage::PeerKernel, Stage::PeerApp, Stage::Handshake]);
    if peer >= MOST_OF_IT * service {
        Side::Program
    } else {
        Side::Unknown
    }
}
