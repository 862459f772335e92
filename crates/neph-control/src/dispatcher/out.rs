//! An order that is out: its stage, and which results it can have.

use std::collections::BTreeSet;

use neph_agent::remote::{Ended, FileLength, Granted, ResultFile, Signer, ToAgent};
use neph_model::{
    AgentName, CaptureOrder, Order, OrderFailed, OrderId, OrderResult, Span, Update, Wall,
};

use crate::inbox::{Inbox, SentOrder};

/// Time without an answer until a message is repeated. It doubles with each repetition: many agents
/// that answer late are not sent still more messages.
const REPEAT_DELAY: Span = Span::from_secs(2);
const MAX_REPEAT_DELAY: Span = Span::from_secs(16);
/// The same for a cancellation, which is short: it does not double.
const CANCEL_REPEAT_DELAY: Span = Span::from_secs(1);
/// The same for a part of a file, which takes longer on a slow path.
const FETCH_REPEAT_DELAY: Span = Span::from_secs(5);
/// Interval at which a running order is polled: the agent reports its end, but that message may be
/// lost.
const POLL_INTERVAL: Span = Span::from_secs(2);
/// Time without an answer until a warning is printed.
const ANSWER_WARNING_DELAY: Span = Span::from_secs(5);
/// The same after a cancellation.
const CANCEL_WARNING_DELAY: Span = Span::from_secs(2);

/// Maximum time between the sending of an order and its start.
const MAX_TRANSIT_TIME: Span = Span::from_secs(60);

/// The end of the longest lease of an order that is sent at `wall`.
pub(crate) fn latest_lease_end(order: &Order, wall: Wall) -> Wall {
    wall + order.longest(wall) + MAX_TRANSIT_TIME
}

/// How long after its lease an agent may report an order as under way.
const LEASE_GRACE: Span = Span::from_secs(180);

/// Context for messages about an order.
#[derive(Debug)]
pub(super) struct OrderMessageContext<'a> {
    pub(super) id: OrderId,
    /// Bytes of a file to request at once.
    pub(super) part_bytes: u32,
    pub(super) inbox: &'a Inbox,
    pub(super) signer: &'a Signer,
    /// Current wall-clock time.
    pub(super) wall: Wall,
}

/// The stage of an order.
#[derive(Debug)]
pub(super) enum Stage {
    /// Sent, without an answer yet.
    Sent,
    /// The agent carries it out.
    Running,
    /// It has ended; its files are being fetched.
    Fetching {
        ended: Box<Ended>,
        /// Index of the current file.
        file: usize,
        /// The last request: index of the file, and its first byte.
        requested: Option<(usize, u64)>,
    },
    /// The result is complete and was reported.
    Reported,
    /// The result is stored; the agent is notified until it has forgotten the order.
    Stored,
}

/// An order that is out.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct OutstandingOrder {
    pub(crate) agent: AgentName,
    pub(crate) order: Order,
    pub(super) stage: Stage,
    /// When its next message is due, since the dispatcher's start.
    pub(super) due: Span,
    /// Time from that message until its repetition.
    pub(super) repeat: Span,
    /// Submitted or adopted by this process.
    pub(super) is_followed: bool,
    /// It was sent while its agent was not known to be away, so the agent may have it.
    pub(super) may_have_arrived: bool,
    /// When it was first sent.
    pub(super) first_sent_at: Option<Span>,
    /// A warning about the missing answer was printed.
    pub(super) is_missed: bool,
    pub(super) is_cancelled: bool,
    /// Since when the cancellation is unanswered.
    pub(super) cancelled_at: Option<Span>,
    /// A message about the unanswered cancellation was printed.
    pub(super) is_end_missed: bool,
    pub(super) is_prepared: bool,
    /// Latest end, once it is known to run.
    pub(super) until: Option<Wall>,
}

impl OutstandingOrder {
    pub(super) fn new(sent: SentOrder, stage: Stage) -> Self {
        Self {
            agent: sent.agent,
            order: sent.order,
            stage,
            due: Span::ZERO,
            repeat: REPEAT_DELAY,
            is_followed: false,
            may_have_arrived: true,
            first_sent_at: None,
            is_missed: false,
            is_cancelled: false,
            cancelled_at: None,
            is_end_missed: false,
            is_prepared: false,
            until: None,
        }
    }

    /// Whether its result is still awaited.
    pub(super) const fn is_open(&self) -> bool {
        !matches!(self.stage, Stage::Reported | Stage::Stored)
    }

    /// Makes its next message due now.
    pub(super) fn send_now(&mut self) {
        self.send_at(Span::ZERO);
    }

    /// Makes its next message due at this time.
    pub(super) fn send_at(&mut self, due: Span) {
        self.due = due;
        self.repeat = REPEAT_DELAY;
    }

    /// Time until the message that is sent now is repeated.
    fn next_repeat(&mut self) -> Span {
        let repeat = self.repeat;
        self.repeat = repeat.times(2).min(MAX_REPEAT_DELAY);
        repeat
    }

    /// The next messages to its agent, and the time until they are repeated.
    pub(super) fn next(&mut self, context: &OrderMessageContext<'_>) -> (Vec<ToAgent>, Span) {
        let id = context.id;
        match &mut self.stage {
            Stage::Sent => {
                let begin = self.begin(context);
                (begin.into_iter().collect(), self.next_repeat())
            }
            Stage::Running if self.is_cancelled => (
                vec![ToAgent::Cancel { id }, ToAgent::Ask { id }],
                CANCEL_REPEAT_DELAY,
            ),
            Stage::Running => (vec![ToAgent::Ask { id }], POLL_INTERVAL),
            Stage::Fetching {
                ended,
                file,
                requested,
            } => {
                let current_file = ended.files.get(*file).map(|file_length| file_length.file);
                let received_bytes =
                    current_file.map_or(Ok(0), |file| context.inbox.length_of(id, file));
                // If the file cannot be read, it cannot be appended to either, which ends the run.
                let from = received_bytes.unwrap_or(0);
                let mut messages = vec![ToAgent::Fetch {
                    id,
                    file: u32::try_from(*file).unwrap_or(u32::MAX),
                    from,
                    most: context.part_bytes,
                }];
                // An unanswered fetch has an unknown cause: the agent may have lost the order.
                if requested.replace((*file, from)) == Some((*file, from)) {
                    messages.push(ToAgent::Ask { id });
                }
                (messages, FETCH_REPEAT_DELAY)
            }
            Stage::Reported => (Vec::new(), REPEAT_DELAY),
            // The result is not needed. The cancellation is repeated: an agent forgets only orders
            // that are over.
            Stage::Stored if self.is_cancelled => (
                vec![ToAgent::Stored { id }, ToAgent::Cancel { id }],
                CANCEL_REPEAT_DELAY,
            ),
            Stage::Stored => (vec![ToAgent::Stored { id }], self.next_repeat()),
        }
    }

    /// The signed order, with a lease for its longest duration.
    fn begin(&self, context: &OrderMessageContext<'_>) -> Option<ToAgent> {
        let id = context.id;
        let order = self.order.clone().at_its_site();
        let granted = Granted {
            agent: self.agent.clone(),
            id,
            until: latest_lease_end(&order, context.wall),
            order,
        };
        match context.signer.sign(&granted) {
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

    /// Whether it cannot be under way at `wall`: its agent should have ended it long ago.
    pub(super) fn is_overdue(&mut self, wall: Wall) -> bool {
        let longest = self.order.longest(wall) + MAX_TRANSIT_TIME;
        wall > *self.until.get_or_insert(wall + longest) + LEASE_GRACE
    }

    /// Marks the result as lost.
    pub(super) fn mark_lost(&mut self, reason: &str) -> Update {
        self.stage = Stage::Reported;
        let operation = format!("fetch the result from agent {}", self.agent);
        Update::Done(Err(OrderFailed::new(operation, reason)))
    }

    /// Warns once if the agent has not answered for long.
    pub(super) fn await_answer(&mut self, now: Span) {
        if !matches!(self.stage, Stage::Sent) {
            return;
        }
        let since = *self.first_sent_at.get_or_insert(now);
        if now - since > ANSWER_WARNING_DELAY && !self.is_missed {
            self.is_missed = true;
            tracing::warn!(
                "agent {} does not answer; its order waits until it does",
                self.agent
            );
        }
    }

    /// Reports once that the agent has not ended a cancelled order yet.
    pub(super) fn await_end(&mut self, now: Span) {
        let since = *self.cancelled_at.get_or_insert(now);
        if self.is_open() && now - since > CANCEL_WARNING_DELAY && !self.is_end_missed {
            self.is_end_missed = true;
            tracing::warn!(
                "agent {} has not ended its order yet; waiting for it at most {} s",
                self.agent,
                super::CANCEL_TIMEOUT.nanos() / 1_000_000_000
            );
        }
    }
}

/// Whether it is an order for `count` experiments.
pub(super) fn has_experiments(order: &Order, count: usize) -> bool {
    match order {
        Order::Experiments(orders) => orders.len() == count,
        _ => false,
    }
}

/// Whether a file is within its order's limit. A capture may exceed the limit by the packets in the
/// buffer.
fn is_bounded(order: &Order, file: &FileLength) -> bool {
    const MAX_BUFFERED_BYTES: u64 = 128 << 20;
    match order {
        Order::Capture(CaptureOrder {
            limit: Some(limit), ..
        }) => file.bytes <= limit.0.saturating_add(MAX_BUFFERED_BYTES),
        _ => true,
    }
}

/// Whether a result belongs to this order: its files, each once, and its contents.
pub(super) fn is_result_of(order: &Order, ended: &Ended) -> bool {
    let files: BTreeSet<ResultFile> = ended
        .files
        .iter()
        .map(|file_length| file_length.file)
        .collect();
    let files_belong =
        files.len() == ended.files.len() && files.iter().all(|file| file.belongs_to(order));
    let prepared = ended.prepared.as_ref();
    files_belong
        && ended
            .files
            .iter()
            .all(|file_length| is_bounded(order, file_length))
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
