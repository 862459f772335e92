//! An order that is out: how far it is, and what a result of it can be.

use std::collections::BTreeSet;

use neph_agent::remote::{Ended, FileLength, Granted, ResultFile, Signer, ToAgent};
use neph_model::{
    AgentName, CaptureOrder, Order, OrderFailed, OrderId, OrderResult, Span, Update, Wall,
};

use crate::inbox::{Inbox, Sent};

/// After how long without an answer a message is sent a second time.
const REPEAT: Span = Span::from_secs(1);
/// The same of a part of a file, which takes its time on a slow way.
const REPEAT_FETCH: Span = Span::from_secs(5);
/// How often an order that runs is asked for: its end is reported without being asked, unless that is lost.
const ASK: Span = Span::from_secs(2);
/// After how long it is reported that an agent has not taken an order on.
const MISSED: Span = Span::from_secs(5);

/// How long an order may be under way before it begins.
const UNDER_WAY: Span = Span::from_secs(60);

/// The end of the longest lease of an order that is sent at `wall`.
pub(crate) fn latest(order: &Order, wall: Wall) -> Wall {
    wall + order.longest(wall) + UNDER_WAY
}

/// How long after its lease an agent may report an order as under way.
const GRACE: Span = Span::from_secs(180);

/// What a message about an order is made with.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    pub(super) id: OrderId,
    /// How much of a file is asked for at once.
    pub(super) part_bytes: u32,
    pub(super) inbox: &'a Inbox,
    pub(super) signer: &'a Signer,
    /// Now.
    pub(super) wall: Wall,
}

/// How far an order is.
#[derive(Debug)]
pub(super) enum Stage {
    /// It is not known to have come.
    Sent,
    /// The agent carries it out.
    Running,
    /// It is over, and its files are fetched.
    Fetching {
        ended: Box<Ended>,
        /// The one that is fetched, by its place.
        file: usize,
        /// What was asked for last: the file, and its first byte.
        asked: Option<(usize, u64)>,
    },
    /// All of its result is here and was reported.
    Reported,
    /// The result is stored; that is sent to its agent until it has forgotten it.
    Stored,
}

/// An order that is out.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Out {
    pub(super) agent: AgentName,
    pub(super) order: Order,
    pub(super) stage: Stage,
    /// When its next message is due, since the dispatcher's start.
    pub(super) due: Span,
    /// It was submitted or adopted by this process.
    pub(super) is_followed: bool,
    /// When it was sent first.
    pub(super) awaited: Option<Span>,
    /// It was reported that nothing came of that.
    pub(super) is_missed: bool,
    pub(super) is_cancelled: bool,
    /// When that was sent first, or sent again after the agent's last answer to it.
    pub(super) cancelled: Option<Span>,
    pub(super) is_prepared: bool,
    /// When it has to be over, once it is known to run.
    pub(super) until: Option<Wall>,
}

impl Out {
    pub(super) fn new(sent: Sent, stage: Stage) -> Self {
        Self {
            agent: sent.agent,
            order: sent.order,
            stage,
            due: Span::ZERO,
            is_followed: false,
            awaited: None,
            is_missed: false,
            is_cancelled: false,
            cancelled: None,
            is_prepared: false,
            until: None,
        }
    }

    /// What its agent is asked now, and after how long it is asked a second time.
    pub(super) fn next(&mut self, asking: &Asking<'_>) -> (Vec<ToAgent>, Span) {
        let id = asking.id;
        match &mut self.stage {
            Stage::Sent => (self.begin(asking).into_iter().collect(), REPEAT),
            Stage::Running if self.is_cancelled => {
                (vec![ToAgent::Cancel { id }, ToAgent::Ask { id }], REPEAT)
            }
            Stage::Running => (vec![ToAgent::Ask { id }], ASK),
            Stage::Fetching { ended, file, asked } => {
                let wanted = ended.files.get(*file).map(|one| one.file);
                let here = wanted.map_or(Ok(0), |wanted| asking.inbox.length_of(id, wanted));
                // A file that cannot be looked at cannot be appended to either, which ends the run.
                let from = here.unwrap_or(0);
                let mut messages = vec![ToAgent::Fetch {
                    id,
                    file: u32::try_from(*file).unwrap_or(u32::MAX),
                    from,
                    most: asking.part_bytes,
                }];
                // A fetch that is not answered does not show why: the agent may have lost the order.
                if asked.replace((*file, from)) == Some((*file, from)) {
                    messages.push(ToAgent::Ask { id });
                }
                (messages, REPEAT_FETCH)
            }
            Stage::Reported => (Vec::new(), REPEAT),
            // Nothing will be done with it: an agent forgets only what is over.
            Stage::Stored if self.is_cancelled => {
                (vec![ToAgent::Stored { id }, ToAgent::Cancel { id }], REPEAT)
            }
            Stage::Stored => (vec![ToAgent::Stored { id }], REPEAT),
        }
    }

    /// The order, signed, with a lease that is as long as it can take.
    fn begin(&self, asking: &Asking<'_>) -> Option<ToAgent> {
        let id = asking.id;
        let order = self.order.clone().at_its_site();
        let granted = Granted {
            agent: self.agent.clone(),
            id,
            until: latest(&order, asking.wall),
            order,
        };
        match asking.signer.sign(&granted) {
            Ok(grant) => Some(ToAgent::Begin {
                id,
                grant: Box::new(grant),
            }),
            Err(error) => {
                tracing::error!("{error}");
                None
            }
        }
    }

    /// Whether it cannot be under way any more at `wall`: its agent had to end it long ago.
    pub(super) fn is_overdue(&mut self, wall: Wall) -> bool {
        let longest = self.order.longest(wall) + UNDER_WAY;
        wall > *self.until.get_or_insert(wall + longest) + GRACE
    }

    /// There will be no result.
    pub(super) fn lost(&mut self, reason: &str) -> Update {
        self.stage = Stage::Reported;
        Update::Done(Err(OrderFailed {
            operation: format!("fetch the result from agent {}", self.agent),
            reason: reason.to_owned(),
        }))
    }

    /// Reports, once, that the agent has not answered for long.
    pub(super) fn await_answer(&mut self, now: Span) {
        if !matches!(self.stage, Stage::Sent) {
            return;
        }
        let since = *self.awaited.get_or_insert(now);
        if now - since > MISSED && !self.is_missed {
            self.is_missed = true;
            tracing::warn!(
                "agent {} does not answer; its order waits until it does",
                self.agent
            );
        }
    }
}

/// Whether it is an order for so many experiments.
pub(super) fn has_experiments(order: &Order, count: usize) -> bool {
    match order {
        Order::Experiments(orders) => orders.len() == count,
        _ => false,
    }
}

/// Whether a file is no longer than its order allows: a capture ends when it has as much, with what waits then.
fn is_bounded(order: &Order, file: &FileLength) -> bool {
    const WAITING: u64 = 128 << 20;
    match order {
        Order::Capture(CaptureOrder {
            limit: Some(limit), ..
        }) => file.bytes <= limit.0.saturating_add(WAITING),
        _ => true,
    }
}

/// Whether a result is one of this order: its files, each once, and what it reports.
pub(super) fn fits(order: &Order, ended: &Ended) -> bool {
    let files: BTreeSet<ResultFile> = ended.files.iter().map(|one| one.file).collect();
    let belong = files.len() == ended.files.len() && files.iter().all(|one| one.belongs_to(order));
    let prepared = ended.prepared.as_ref();
    belong
        && ended.files.iter().all(|one| is_bounded(order, one))
        && prepared.is_none_or(|prepared| has_experiments(order, prepared.len()))
        && match (order, &ended.result) {
            (_, Err(_))
            | (Order::Throughput(_), Ok(OrderResult::Throughput(_)))
            | (Order::Traceroute(_), Ok(OrderResult::Traceroute(_)))
            | (Order::Pings(_), Ok(OrderResult::Pings))
            | (Order::Load(_), Ok(OrderResult::Load))
            | (Order::Reflector(_), Ok(OrderResult::Reflector)) => true,
            (Order::Capture(_), Ok(OrderResult::Captured(_))) => {
                files.contains(&ResultFile::Capture)
            }
            (Order::Experiments(_), Ok(OrderResult::Experiments(results))) => {
                has_experiments(order, results.len())
            }
            _ => false,
        }
}
