//! Orders that are out, each from its sending until its agent has forgotten it. A state machine: messages and
//! time in, messages and updates out.
//!
//! Owns what is asked, when it is asked a second time, and what is believed. An agent is believed about its
//! own orders only.

use std::collections::BTreeMap;
use std::path::Path;

use neph_agent::remote::{
    Ended, FromAgent, OrderState, PART_BYTES, PROTOCOL, Part, ResultFile, ToAgent,
};
use neph_model::AgentName;
use neph_model::{Order, OrderFailed, OrderId, OrderResult, Span, Update};

use crate::inbox::{Inbox, InboxError, Sent};

/// After how long without an answer a message is sent a second time.
const REPEAT: Span = Span::from_secs(1);
/// How long an agent may take to end an order that is cancelled, also where a connection has to be made anew.
const MOST_AFTER_CANCEL: Span = Span::from_secs(30);
/// How often an order that runs is asked for: its end is reported without being asked, unless that is lost.
const ASK: Span = Span::from_secs(2);

/// How far an order is.
#[derive(Debug)]
enum Stage {
    /// It is not known to have come.
    Sent,
    /// The agent carries it out.
    Running,
    /// It is over, and its files are fetched: this one, by its place.
    Fetching { ended: Box<Ended>, file: usize },
    /// All of its result is here and was reported.
    Reported,
    /// The result is stored; its agent is told so until it has forgotten it.
    Stored,
}

/// An order that is out.
#[derive(Debug)]
struct Out {
    agent: AgentName,
    order: Order,
    stage: Stage,
    /// When its next message is due, since the dispatcher's start.
    due: Span,
    is_cancelled: bool,
    /// When that was sent first.
    cancelled: Option<Span>,
    is_prepared: bool,
}

impl Out {
    fn new(sent: Sent, stage: Stage) -> Self {
        Self {
            agent: sent.agent,
            order: sent.order,
            stage,
            due: Span::ZERO,
            is_cancelled: false,
            cancelled: None,
            is_prepared: false,
        }
    }
}

/// All orders that are out.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    inbox: Inbox,
    out: BTreeMap<OrderId, Out>,
    /// How much of a file is asked for at once.
    pub(crate) part_bytes: u32,
    /// Messages about orders that are not the sender's, or that make no sense.
    pub(crate) disbelieved: u64,
}

impl Dispatcher {
    /// The orders that an earlier one left in `folder`, and those to come.
    pub(crate) fn open(folder: &Path) -> Result<Self, InboxError> {
        let (inbox, orders) = Inbox::open(folder)?;
        let out = orders.into_iter().map(|found| {
            let stage = if found.is_stored {
                Stage::Stored
            } else {
                Stage::Sent
            };
            (found.id, Out::new(found.sent, stage))
        });
        Ok(Self {
            out: out.collect(),
            inbox,
            part_bytes: PART_BYTES,
            disbelieved: 0,
        })
    }

    /// Orders whose result is not stored.
    pub(crate) fn open_orders(&self) -> impl Iterator<Item = (OrderId, &Order)> {
        let open = self.out.iter();
        let open = open.filter(|(_, out)| !matches!(out.stage, Stage::Stored));
        open.map(|(id, out)| (*id, &out.order))
    }

    /// Whether an agent is still to be told that its result is stored.
    pub(crate) fn has_confirmations(&self) -> bool {
        let mut out = self.out.values();
        out.any(|one| matches!(one.stage, Stage::Stored))
    }

    /// Takes an order on: from here on it is carried out once.
    pub(crate) fn submit(&mut self, agent: AgentName, order: Order) -> Result<OrderId, InboxError> {
        let id = OrderId::new();
        let sent = Sent { agent, order };
        self.inbox.add(id, &sent)?;
        self.out.insert(id, Out::new(sent, Stage::Sent));
        Ok(id)
    }

    /// Ends an order early.
    pub(crate) fn cancel(&mut self, id: OrderId) {
        if let Some(out) = self.out.get_mut(&id).filter(|out| !out.is_cancelled) {
            out.is_cancelled = true;
            out.due = Span::ZERO;
        }
    }

    /// An agent that has not ended a cancelled order in time.
    pub(crate) fn unanswered(&self, now: Span) -> Option<&AgentName> {
        let is_late = |out: &&Out| {
            let is_open = matches!(out.stage, Stage::Sent | Stage::Running);
            let cancelled = out.cancelled.filter(|_| is_open);
            cancelled.is_some_and(|since| now - since > MOST_AFTER_CANCEL)
        };
        self.out.values().find(is_late).map(|out| &out.agent)
    }

    /// Its result is stored, or will never be wanted.
    pub(crate) fn stored(&mut self, id: OrderId) -> Result<(), InboxError> {
        if let Some(out) = self.out.get_mut(&id) {
            self.inbox.mark_stored(id)?;
            out.stage = Stage::Stored;
            out.due = Span::ZERO;
        }
        Ok(())
    }

    /// What is to be sent by `now`.
    pub(crate) fn due(&mut self, now: Span) -> Vec<(AgentName, ToAgent)> {
        let mut messages = Vec::new();
        for (id, out) in &mut self.out {
            if out.due > now {
                continue;
            }
            if out.is_cancelled {
                out.cancelled.get_or_insert(now);
            }
            let id = *id;
            let (message, again) = match &out.stage {
                Stage::Sent => {
                    let order = Box::new(out.order.clone().at_its_site());
                    (ToAgent::Begin { id, order }, REPEAT)
                }
                Stage::Running if out.is_cancelled => (ToAgent::Cancel { id }, REPEAT),
                Stage::Running => (ToAgent::Ask { id }, ASK),
                Stage::Fetching { ended, file } => {
                    let wanted = ended.files.get(*file).map(|one| one.file);
                    let here = wanted.map_or(Ok(0), |wanted| self.inbox.length_of(id, wanted));
                    // A file that cannot be looked at cannot be appended to either, which ends the run.
                    let from = here.unwrap_or(0);
                    let file = u32::try_from(*file).unwrap_or(u32::MAX);
                    let most = self.part_bytes;
                    let fetch = ToAgent::Fetch {
                        id,
                        file,
                        from,
                        most,
                    };
                    (fetch, REPEAT)
                }
                Stage::Reported => continue,
                Stage::Stored => (ToAgent::Stored { id }, REPEAT),
            };
            out.due = now + again;
            messages.push((out.agent.clone(), message));
            match out.stage {
                Stage::Running if out.is_cancelled => {
                    messages.push((out.agent.clone(), ToAgent::Ask { id }));
                }
                // Nothing will be done with it: an agent forgets only what is over.
                Stage::Stored if out.is_cancelled => {
                    messages.push((out.agent.clone(), ToAgent::Cancel { id }));
                }
                _ => {}
            }
        }
        messages
    }

    /// What follows from a message of an agent.
    pub(crate) fn heard(
        &mut self,
        agent: &AgentName,
        message: FromAgent,
    ) -> Result<Vec<(OrderId, Update)>, InboxError> {
        match message {
            FromAgent::Hello(hello) => {
                if hello.protocol != PROTOCOL {
                    let theirs = hello.protocol;
                    tracing::warn!(
                        "agent {agent} speaks version {theirs} of the messages, this controller {PROTOCOL}"
                    );
                }
                let own = self.out.values_mut().filter(|out| out.agent == *agent);
                own.for_each(|out| out.due = Span::ZERO);
                Ok(Vec::new())
            }
            FromAgent::Progress { id, progress } => Ok(match self.of(agent, id) {
                Some(out) if matches!(out.stage, Stage::Running) => {
                    vec![(id, Update::Progress(progress))]
                }
                _ => Vec::new(),
            }),
            FromAgent::State { id, state } => self.state(agent, id, state),
            FromAgent::Part(part) => self.part(agent, &part),
        }
    }

    /// The order, if it is this agent's.
    fn of(&mut self, agent: &AgentName, id: OrderId) -> Option<&mut Out> {
        let found = self.out.get_mut(&id).filter(|out| out.agent == *agent);
        self.disbelieved += u64::from(found.is_none());
        found
    }

    fn state(
        &mut self,
        agent: &AgentName,
        id: OrderId,
        state: OrderState,
    ) -> Result<Vec<(OrderId, Update)>, InboxError> {
        let Some(out) = self.of(agent, id) else {
            return Ok(Vec::new());
        };
        let mut updates = Vec::new();
        match (&out.stage, state) {
            (Stage::Sent | Stage::Running, OrderState::Unknown) => {
                out.stage = Stage::Sent;
                out.due = Span::ZERO;
            }
            (Stage::Sent | Stage::Running, OrderState::Running { prepared }) => {
                out.stage = Stage::Running;
                if let Some(prepared) = prepared.filter(|_| !out.is_prepared) {
                    out.is_prepared = true;
                    updates.push((id, Update::Prepared(prepared)));
                }
            }
            (Stage::Sent | Stage::Running, OrderState::Ended(ended)) => {
                return self.ended(id, ended);
            }
            (Stage::Sent | Stage::Running | Stage::Fetching { .. }, OrderState::Forgotten) => {
                out.stage = Stage::Reported;
                let why = OrderFailed {
                    operation: format!("fetch the result from agent {agent}"),
                    reason: "the agent has it no more".to_owned(),
                };
                updates.push((id, Update::Done(Err(why))));
            }
            (Stage::Stored, OrderState::Forgotten | OrderState::Unknown) => {
                self.out.remove(&id);
                self.inbox.remove(id)?;
            }
            // It was late, or says what is known.
            _ => {}
        }
        Ok(updates)
    }

    fn ended(
        &mut self,
        id: OrderId,
        ended: Box<Ended>,
    ) -> Result<Vec<(OrderId, Update)>, InboxError> {
        let Some(out) = self.out.get_mut(&id) else {
            return Ok(Vec::new());
        };
        if !ended
            .files
            .iter()
            .all(|one| one.file.belongs_to(&out.order))
            || !fits(&out.order, &ended)
        {
            self.disbelieved += 1;
            return Ok(Vec::new());
        }
        let mut updates = Vec::new();
        if let Some(prepared) = ended.prepared.clone().filter(|_| !out.is_prepared) {
            out.is_prepared = true;
            updates.push((id, Update::Prepared(prepared)));
        }
        out.stage = Stage::Fetching { ended, file: 0 };
        updates.extend(self.next_file(id)?);
        Ok(updates)
    }

    fn part(
        &mut self,
        agent: &AgentName,
        part: &Part,
    ) -> Result<Vec<(OrderId, Update)>, InboxError> {
        let Some(out) = self.of(agent, part.id) else {
            return Ok(Vec::new());
        };
        let Stage::Fetching { ended, file } = &out.stage else {
            return Ok(Vec::new());
        };
        let (place, wanted) = (*file, ended.files.get(*file).copied());
        let Some(wanted) = wanted.filter(|_| part.file as usize == place) else {
            return Ok(Vec::new());
        };
        let here = self.inbox.length_of(part.id, wanted.file)?;
        let is_next = part.from == here && !part.bytes.is_empty();
        if is_next && here + part.bytes.len() as u64 <= wanted.bytes {
            self.inbox.append(wanted.file, part)?;
        }
        self.next_file(part.id)
    }

    /// Goes on to the next file that is not whole; reports the result when all are.
    fn next_file(&mut self, id: OrderId) -> Result<Vec<(OrderId, Update)>, InboxError> {
        let Some(out) = self.out.get_mut(&id) else {
            return Ok(Vec::new());
        };
        let Stage::Fetching { ended, file } = &mut out.stage else {
            return Ok(Vec::new());
        };
        out.due = Span::ZERO;
        while let Some(wanted) = ended.files.get(*file) {
            let here = self.inbox.length_of(id, wanted.file)?;
            if here < wanted.bytes {
                return Ok(Vec::new());
            }
            if here > wanted.bytes {
                self.inbox.discard(id, wanted.file)?;
                return Ok(Vec::new());
            }
            *file += 1;
        }
        let ended = ended.clone();
        out.stage = Stage::Reported;
        let updates = self.whole(id, *ended);
        Ok(updates.into_iter().map(|update| (id, update)).collect())
    }

    /// What is reported when all of a result is here.
    fn whole(&self, id: OrderId, ended: Ended) -> Vec<Update> {
        let mut updates = Vec::new();
        for one in &ended.files {
            match one.file {
                ResultFile::Journal(experiment) => {
                    updates.push(Update::Journalled(experiment, self.inbox.folder_of(id)));
                }
                ResultFile::Segment(..) => {}
                ResultFile::Pings => {
                    let path = self.inbox.path_of(id, one.file);
                    match neph_agent::remote::read_pings(&path) {
                        Ok(pings) => updates.push(Update::Pinged(pings)),
                        Err(error) => tracing::warn!("cannot read {}: {error}", path.display()),
                    }
                }
            }
        }
        updates.push(Update::Done(ended.result));
        updates
    }
}

/// Whether a result is one of this order.
fn fits(order: &Order, ended: &Ended) -> bool {
    let as_many = |count: usize| match order {
        Order::Experiments(orders) => orders.len() == count,
        _ => false,
    };
    let prepared = ended.prepared.as_ref();
    let is_prepared = prepared.is_none_or(|prepared| as_many(prepared.len()));
    is_prepared
        && match (order, &ended.result) {
            (_, Err(_))
            | (Order::Throughput(_), Ok(OrderResult::Throughput(_)))
            | (Order::Traceroute(_), Ok(OrderResult::Traceroute(_)))
            | (Order::Pings(_), Ok(OrderResult::Pings))
            | (Order::Load(_), Ok(OrderResult::Load)) => true,
            (Order::Experiments(_), Ok(OrderResult::Experiments(results))) => {
                as_many(results.len())
            }
            _ => false,
        }
}
