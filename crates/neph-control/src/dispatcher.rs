//! Orders that are out: from their submission until the agent has forgotten them. A state machine:
//! messages and time in, messages and updates out.
//!
//! Owns which messages are sent and repeated, and which answers are accepted. An agent may only
//! report on its orders.

mod cancellation;
mod out;
#[cfg(test)]
mod tests;
mod updates;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use neph_agent::remote::{
    Ended, FromAgent, LONGEST_FRAME, MAX_PART_BYTES, OrderState, Part, Signer, ToAgent,
};
use neph_model::{AgentName, Order, OrderId, Span, Update, Wall};

use crate::inbox::{Inbox, InboxError, SentOrder};
use out::{OrderMessageContext, Stage, has_experiments, is_result_of};
pub(crate) use out::{OutstandingOrder, latest_lease_end};
use updates::completed_updates;

/// Time for an agent to end a cancelled order, including a reconnection.
const CANCEL_TIMEOUT: Span = Span::from_secs(30);

/// Time until an agent gets the confirmation that a result is stored. Orders and results of other
/// agents come first.
const CONFIRMATION_DELAY: Span = Span::from_secs(1);

/// Maximum size of an order in bytes: a message contains its JSON as a string with escaped quotes
/// and backslashes.
const MAX_ORDER_BYTES: usize = LONGEST_FRAME / 3;

/// All orders that are out.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    inbox: Inbox,
    signer: Signer,
    out: BTreeMap<OrderId, OutstandingOrder>,
    /// Agents that have connected since the last [`Self::send_due`]: their orders are due.
    greeted_agents: BTreeSet<AgentName>,
    /// Agents that have disconnected and have sent nothing since.
    away: BTreeSet<AgentName>,
    /// Time from a stored result until its confirmation is sent.
    confirm_after: Span,
    /// Time since the dispatcher's start, and wall-clock time, at the last [`Self::send_due`].
    now: Span,
    wall: Wall,
    /// Bytes of a file to request at once.
    pub(crate) part_bytes: u32,
    /// Invalid messages, and messages about orders of another agent.
    pub(crate) rejected: u64,
}

impl Dispatcher {
    /// Opens the orders that an earlier process left in `folder`; `signer` signs new ones.
    pub(crate) fn open(folder: &Path, signer: Signer) -> Result<Self, InboxError> {
        let (inbox, orders) = Inbox::open(folder)?;
        let out = orders.into_iter().map(|order| {
            let stage = if order.is_stored {
                Stage::Stored
            } else {
                Stage::Sent
            };
            (order.id, OutstandingOrder::new(order.sent, stage))
        });
        Ok(Self {
            out: out.collect(),
            greeted_agents: BTreeSet::new(),
            away: BTreeSet::new(),
            inbox,
            signer,
            confirm_after: CONFIRMATION_DELAY,
            now: Span::ZERO,
            wall: Wall::from_unix_nanos(0),
            part_bytes: MAX_PART_BYTES,
            rejected: 0,
        })
    }

    /// Orders whose result is not stored.
    pub(crate) fn open_orders(&self) -> impl Iterator<Item = (OrderId, &OutstandingOrder)> {
        let open = self.out.iter();
        let open = open.filter(|(_, out)| !matches!(out.stage, Stage::Stored));
        open.map(|(id, out)| (*id, out))
    }

    /// Whether an agent does not know yet that its result is stored.
    pub(crate) fn has_confirmations(&self) -> bool {
        let mut out = self.out.values();
        out.any(|out| matches!(out.stage, Stage::Stored))
    }

    /// Simulates a power failure.
    #[cfg(test)]
    pub(crate) fn lose_power(&mut self) {
        self.inbox.lose_power();
    }

    /// Whether no order is out.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Accepts an order. It is carried out exactly once after [`Self::send_due`] has sent it.
    pub(crate) fn submit(&mut self, agent: AgentName, order: Order) -> Result<OrderId, InboxError> {
        let sent = SentOrder { agent, order };
        let text = serde_json::to_vec(&sent).unwrap_or_default();
        if text.is_empty() || text.len() > MAX_ORDER_BYTES {
            return Err(InboxError::TooLong(text.len(), MAX_ORDER_BYTES));
        }
        let id = OrderId::new();
        self.inbox.add(id, &text)?;
        let out = OutstandingOrder {
            is_followed: true,
            may_have_arrived: false,
            ..OutstandingOrder::new(sent, Stage::Sent)
        };
        self.out.insert(id, out);
        Ok(id)
    }

    /// Continues an order that an earlier process submitted.
    pub(crate) fn follow(&mut self, id: OrderId) {
        if let Some(out) = self.out.get_mut(&id) {
            out.is_followed = true;
        }
    }

    /// Notes that an agent has disconnected, and reports it if it has an order.
    pub(crate) fn mark_disconnected(&mut self, agent: &AgentName) {
        self.away.insert(agent.clone());
        let is_running =
            |out: &OutstandingOrder| out.agent == *agent && matches!(out.stage, Stage::Running);
        if self.out.values().any(is_running) {
            tracing::warn!(
                "agent {agent} has disconnected during an order. When it is back, neph collects the result. \
                 If the campaign needs a reflector of this agent, neph also starts the reflector again; until then, \
                 experiments to it wait. If the agent was revoked, it needs a new invitation (neph control invite {agent} --control FOLDER) and an empty folder"
            );
        }
    }

    /// The result of the order is stored, or is not needed.
    pub(crate) fn mark_stored(&mut self, id: OrderId) -> Result<(), InboxError> {
        if let Some(out) = self.out.get_mut(&id) {
            self.inbox.mark_stored(id)?;
            out.stage = Stage::Stored;
            out.send_at(self.now + self.confirm_after);
        }
        Ok(())
    }

    /// Sends confirmations at once from now on: the campaign ends.
    pub(crate) fn confirm_now(&mut self) {
        self.confirm_after = Span::ZERO;
        let out = self.out.values_mut();
        let stored = out.filter(|out| matches!(out.stage, Stage::Stored));
        stored.for_each(OutstandingOrder::send_now);
    }

    /// Sends the messages that are due at `now`, each as soon as it is signed; `wall` is the
    /// wall-clock time.
    pub(crate) fn send_due(
        &mut self,
        now: Span,
        wall: Wall,
        mut send: impl FnMut(&AgentName, ToAgent),
    ) -> Result<(), InboxError> {
        (self.now, self.wall) = (now, wall);
        self.inbox.sync()?;
        let greeted_agents = std::mem::take(&mut self.greeted_agents);
        for (id, out) in &mut self.out {
            if greeted_agents.contains(&out.agent) {
                out.send_now();
            }
            // An order of another campaign waits until that campaign continues.
            let is_sendable = out.is_followed || matches!(out.stage, Stage::Stored);
            if out.due > now || !is_sendable {
                continue;
            }
            out.await_answer(now);
            if out.is_cancelled {
                out.await_end(now);
            }
            let context = OrderMessageContext {
                id: *id,
                part_bytes: self.part_bytes,
                inbox: &self.inbox,
                signer: &self.signer,
                wall,
            };
            out.may_have_arrived |= !self.away.contains(&out.agent);
            let (next_messages, repeat) = out.next(&context);
            out.due = now + repeat;
            for message in next_messages {
                send(&out.agent, message);
            }
        }
        Ok(())
    }

    /// Processes a message of an agent; returns the updates.
    pub(crate) fn process_message(
        &mut self,
        agent: &AgentName,
        message: FromAgent,
    ) -> Result<Vec<(OrderId, Update)>, InboxError> {
        self.away.remove(agent);
        match message {
            FromAgent::Hello(_) => {
                self.greeted_agents.insert(agent.clone());
                Ok(Vec::new())
            }
            FromAgent::Progress { id, progress } => {
                Ok(self.running_update(agent, id, Update::Progress(progress)))
            }
            FromAgent::Sample { id, sample } => {
                Ok(self.running_update(agent, id, Update::Sampled(sample)))
            }
            FromAgent::State { id, state } => self.process_state(agent, id, state),
            FromAgent::Beat(_) => Ok(Vec::new()),
            FromAgent::Part(part) => self.process_file_part(agent, &part),
        }
    }

    /// The order, if it is this agent's.
    fn order_of(&mut self, agent: &AgentName, id: OrderId) -> Option<&mut OutstandingOrder> {
        let out = self.out.get_mut(&id).filter(|out| out.agent == *agent);
        self.rejected += u64::from(out.is_none());
        out
    }

    /// The update, if the order is this agent's and runs.
    fn running_update(
        &mut self,
        agent: &AgentName,
        id: OrderId,
        update: Update,
    ) -> Vec<(OrderId, Update)> {
        let out = self.order_of(agent, id);
        let is_running = out.is_some_and(|out| matches!(out.stage, Stage::Running));
        is_running.then_some((id, update)).into_iter().collect()
    }

    fn process_state(
        &mut self,
        agent: &AgentName,
        id: OrderId,
        state: OrderState,
    ) -> Result<Vec<(OrderId, Update)>, InboxError> {
        let wall = self.wall;
        let Some(out) = self.order_of(agent, id) else {
            return Ok(Vec::new());
        };
        let mut updates = Vec::new();
        match (&out.stage, state) {
            (Stage::Sent | Stage::Running, OrderState::Running { prepared }) => {
                if out.is_overdue(wall) {
                    return Ok(vec![(
                        id,
                        out.mark_lost("the agent reports it as under way after its lease"),
                    )]);
                }
                if out.is_cancelled && matches!(out.stage, Stage::Sent) {
                    // Until now the order itself was sent, not its cancellation.
                    out.send_now();
                }
                out.stage = Stage::Running;
                let count = prepared.as_ref().map(Vec::len);
                if count.is_some_and(|count| !has_experiments(&out.order, count)) {
                    self.rejected += 1;
                } else if let Some(prepared) = prepared.filter(|_| !out.is_prepared) {
                    out.is_prepared = true;
                    updates.push((id, Update::Prepared(prepared)));
                }
            }
            (Stage::Sent | Stage::Running, OrderState::Ended(ended)) => {
                return self.process_end(id, ended);
            }
            // It had the order: a retransmission could carry it out a second time.
            (Stage::Running | Stage::Fetching { .. }, OrderState::Unknown)
            | (Stage::Sent | Stage::Running | Stage::Fetching { .. }, OrderState::Forgotten) => {
                updates.push((id, out.mark_lost("the agent has it no more")));
            }
            (Stage::Stored, OrderState::Forgotten | OrderState::Unknown) => {
                self.out.remove(&id);
                self.inbox.remove(id)?;
            }
            // Late or already known.
            _ => {}
        }
        Ok(updates)
    }

    fn process_end(
        &mut self,
        id: OrderId,
        ended: Box<Ended>,
    ) -> Result<Vec<(OrderId, Update)>, InboxError> {
        let Some(out) = self.out.get_mut(&id) else {
            return Ok(Vec::new());
        };
        if !is_result_of(&out.order, &ended) {
            self.rejected += 1;
            let lost = out.is_overdue(self.wall);
            let reason = "what the agent reports is no result of it";
            let lost = lost.then(|| (id, out.mark_lost(reason)));
            return Ok(lost.into_iter().collect());
        }
        let mut updates = Vec::new();
        if let Some(prepared) = ended.prepared.clone().filter(|_| !out.is_prepared) {
            out.is_prepared = true;
            updates.push((id, Update::Prepared(prepared)));
        }
        out.stage = Stage::Fetching {
            ended,
            file: 0,
            requested: None,
        };
        out.cancelled_at = None;
        updates.extend(self.next_file(id)?);
        Ok(updates)
    }

    fn process_file_part(
        &mut self,
        agent: &AgentName,
        part: &Part,
    ) -> Result<Vec<(OrderId, Update)>, InboxError> {
        let Some(out) = self.order_of(agent, part.id) else {
            return Ok(Vec::new());
        };
        let Stage::Fetching { ended, file, .. } = &out.stage else {
            return Ok(Vec::new());
        };
        let (file_index, wanted) = (*file, ended.files.get(*file).copied());
        let Some(wanted) = wanted.filter(|_| part.file as usize == file_index) else {
            return Ok(Vec::new());
        };
        let received_bytes = self.inbox.length_of(part.id, wanted.file)?;
        if part.from != received_bytes {
            // Late or a duplicate.
            return Ok(Vec::new());
        }
        if part.bytes.is_empty() || received_bytes + part.bytes.len() as u64 > wanted.bytes {
            let reason = "its files are not as long as the agent reported";
            let lost = self
                .order_of(agent, part.id)
                .map(|out| (part.id, out.mark_lost(reason)));
            return Ok(lost.into_iter().collect());
        }
        self.inbox.append(part.id, wanted.file, &part.bytes)?;
        if let Some(out) = self.out.get_mut(&part.id) {
            // It answers: a large file may take long.
            out.cancelled_at = None;
        }
        self.next_file(part.id)
    }

    /// Requests the next incomplete file; reports the result when all are complete.
    fn next_file(&mut self, id: OrderId) -> Result<Vec<(OrderId, Update)>, InboxError> {
        let Some(out) = self.out.get_mut(&id) else {
            return Ok(Vec::new());
        };
        out.send_now();
        let Stage::Fetching { ended, file, .. } = &mut out.stage else {
            return Ok(Vec::new());
        };
        while let Some(wanted) = ended.files.get(*file) {
            let received_bytes = self.inbox.length_of(id, wanted.file)?;
            if received_bytes < wanted.bytes {
                return Ok(Vec::new());
            }
            if wanted.bytes == 0 {
                self.inbox.append(id, wanted.file, &[])?;
            }
            if received_bytes > wanted.bytes {
                self.inbox.discard(id, wanted.file)?;
                return Ok(Vec::new());
            }
            *file += 1;
        }
        let Stage::Fetching { ended, .. } = std::mem::replace(&mut out.stage, Stage::Reported)
        else {
            return Ok(Vec::new());
        };
        let updates = completed_updates(&self.inbox, id, *ended);
        Ok(updates.into_iter().map(|update| (id, update)).collect())
    }
}
