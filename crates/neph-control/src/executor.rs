//! The executor whose orders are carried out by remote agents.
//!
//! Owns the orders of a campaign and their parts, and joins the updates of several agents for one
//! order.

mod adopt;
mod agent_reflector;
mod campaign_reflectors;
mod cancellation;
mod order_parts;
mod part_updates;
mod sites;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use neph_agent::remote::{FromAgent, OrderState, Signer};
use neph_model::{
    CampaignId, Executor, ExecutorLost, ExperimentId, Order, OrderFailed, OrderId, Span, Ticket,
    Update,
};
use neph_sys::clock;

use crate::dispatcher::Dispatcher;
use crate::{Bus, FromBus, InboxError};
pub use agent_reflector::AgentReflector;
use campaign_reflectors::CampaignReflectors;
use order_parts::{AgentPart, RunningOrder};
pub use sites::Sites;

/// Time from sending orders to several sites to their common start: for transmission, name
/// resolution and reaching the targets.
const START_LEAD: Span = Span::from_secs(3);
/// Additional time per site, for signing and sending its order.
const START_LEAD_PER_SITE: Span = Span::from_millis(2);
/// How long the end waits until agents know what is stored; the next campaign notifies the rest.
const CONFIRMATION_WAIT: Span = Span::from_secs(2);

/// The time since the executor was created.
struct Elapsed(Box<dyn Fn() -> Span + Send>);

impl fmt::Debug for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (self.0)())
    }
}

/// Lets agents carry out orders.
#[derive(Debug)]
pub struct AgentsExecutor<B: Bus> {
    bus: B,
    sites: Sites,
    dispatcher: Dispatcher,
    elapsed: Elapsed,
    /// How long the end waits until agents know what is stored.
    confirmation_wait: Span,
    next: Ticket,
    running: BTreeMap<Ticket, RunningOrder>,
    /// Ticket of each part.
    ticket_by_part: BTreeMap<OrderId, Ticket>,
    /// Reported experiments that are not stored yet, by the agent's order.
    unstored: BTreeMap<OrderId, BTreeSet<ExperimentId>>,
    pending_updates: Vec<(Ticket, Update)>,
    reflectors: CampaignReflectors,
    /// Why the campaign cannot go on, and what to do.
    end_reason: Option<String>,
    /// Orders that wait for reflectors.
    pending_orders: Vec<(Ticket, Order)>,
}

impl<B: Bus> AgentsExecutor<B> {
    /// An executor with its orders and results in `folder`; `signer` signs its orders.
    ///
    /// # Errors
    /// A disk operation failed.
    pub fn new(folder: &Path, sites: Sites, bus: B, signer: Signer) -> Result<Self, InboxError> {
        let start = clock::raw();
        let elapsed = move || Span::from_nanos(clock::raw().0 - start.0);
        let dispatcher = Dispatcher::open(folder, signer)?;
        Ok(Self::with_time(
            dispatcher,
            sites,
            bus,
            Elapsed(Box::new(elapsed)),
        ))
    }

    fn with_time(dispatcher: Dispatcher, sites: Sites, bus: B, elapsed: Elapsed) -> Self {
        Self {
            bus,
            reflectors: CampaignReflectors::new(sites.reflectors.clone()),
            pending_orders: Vec::new(),
            end_reason: None,
            sites,
            dispatcher,
            elapsed,
            confirmation_wait: CONFIRMATION_WAIT,
            next: Ticket(0),
            running: BTreeMap::new(),
            ticket_by_part: BTreeMap::new(),
            unstored: BTreeMap::new(),
            pending_updates: Vec::new(),
        }
    }

    /// Rejected messages: invalid, or about orders of another agent. None had an effect.
    pub const fn rejected(&self) -> u64 {
        self.dispatcher.rejected
    }

    /// Cancels all open orders, including those of an earlier process, and discards their results.
    pub(crate) fn abandon(&mut self) -> Result<(), InboxError> {
        let open_ids: Vec<OrderId> = self.dispatcher.open_orders().map(|(id, _)| id).collect();
        for id in open_ids {
            self.dispatcher.cancel(id);
            self.dispatcher.mark_stored(id)?;
        }
        Ok(())
    }

    fn next_ticket(&mut self) -> Ticket {
        let ticket = self.next;
        self.next.0 += 1;
        ticket
    }

    /// Submits a part of an order.
    fn submit_part(
        &mut self,
        site: Option<&str>,
        order: Order,
        experiment_indices: Vec<usize>,
    ) -> AgentPart {
        let agent = self.sites.agent_at(site);
        let submit = |agent| self.dispatcher.submit(agent, order);
        let submitted = agent.clone().and_then(|agent| {
            submit(agent).map_err(|error| OrderFailed::new("keep an order", error))
        });
        AgentPart {
            agent: agent.ok(),
            id: submitted.as_ref().ok().copied(),
            experiment_indices,
            prepared: None,
            result: submitted.err().map(Err),
        }
    }

    /// Sends an order to its agents.
    fn send(&mut self, ticket: Ticket, order: Order) {
        let (mut experiments, mut targets, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        if let Order::Experiments(orders) = order {
            targets.extend(
                orders
                    .iter()
                    .map(|order| order.scenario.target.first().cloned()),
            );
            experiments.extend(orders.iter().map(|order| order.experiment.id));
            let mut by_site: BTreeMap<Option<String>, (Vec<usize>, Vec<_>)> = BTreeMap::new();
            for (index, order) in orders.into_iter().enumerate() {
                let (experiment_indices, site_orders) =
                    by_site.entry(order.site.clone()).or_default();
                experiment_indices.push(index);
                site_orders.push(order);
            }
            let sites = i64::try_from(by_site.len()).unwrap_or(i64::MAX);
            let lead = START_LEAD + START_LEAD_PER_SITE.times(sites);
            let start = (sites > 1).then(|| self.bus.now() + lead);
            for (site, (experiment_indices, mut site_orders)) in by_site {
                for order in &mut site_orders {
                    order.start = start;
                }
                let order = Order::Experiments(site_orders);
                parts.push(self.submit_part(site.as_deref(), order, experiment_indices));
            }
        } else {
            let site = order.site().map(str::to_owned);
            parts.push(self.submit_part(site.as_deref(), order, Vec::new()));
        }
        let mut running = RunningOrder {
            parts,
            experiments,
            is_prepared: false,
            pending: Vec::new(),
            targets,
            without_reflector: BTreeMap::new(),
        };
        let lost_reflectors = self.reflectors.lost_reflectors();
        lost_reflectors.for_each(|lost| running.mark_lost_reflector(&lost));
        if let Some(result) = running.take_result() {
            self.pending_updates.push((ticket, Update::Done(result)));
        } else {
            self.run(ticket, running);
        }
    }

    /// Registers an order for updates.
    fn run(&mut self, ticket: Ticket, running: RunningOrder) {
        let part_ids = running.parts.iter().filter_map(|part| part.id);
        self.ticket_by_part.extend(part_ids.map(|id| (id, ticket)));
        self.running.insert(ticket, running);
    }

    /// Sends an order, or holds it until its reflectors are ready.
    fn send_or_hold(&mut self, ticket: Ticket, order: Order, now: Span) {
        if self.end_reason.is_none() && self.reflectors.is_ready_for(&order, now) {
            self.send(ticket, order);
        } else {
            self.pending_orders.push((ticket, order));
        }
    }

    /// Orders reflectors, and sends the orders that waited for them.
    fn send_held(&mut self) -> Result<(), InboxError> {
        let now = (self.elapsed.0)();
        for (agent, order) in self.reflectors.due_orders(now) {
            let id = self
                .dispatcher
                .submit(agent.clone(), Order::Reflector(order))?;
            self.reflectors.set_ordered(&agent, id);
        }
        for (ticket, order) in std::mem::take(&mut self.pending_orders) {
            self.send_or_hold(ticket, order, now);
        }
        Ok(())
    }

    /// Processes an update of a reflector or of an order.
    fn process_update(
        &mut self,
        id: OrderId,
        update: Update,
    ) -> Result<Vec<(Ticket, Update)>, InboxError> {
        match self
            .reflectors
            .apply_update(id, &update, (self.elapsed.0)())
        {
            None => self.process_part_update(id, update),
            Some(effect) => {
                if effect.refusal.is_some() {
                    self.end_reason = effect.refusal;
                }
                if let Some(lost_reflector) = &effect.lost_reflector {
                    let running = self.running.values_mut();
                    running.for_each(|running| running.mark_lost_reflector(lost_reflector));
                }
                if effect.is_over {
                    self.dispatcher.mark_stored(id)?;
                }
                Ok(Vec::new())
            }
        }
    }

    fn send_due(&mut self) -> Result<(), InboxError> {
        let elapsed = (self.elapsed.0)();
        let wall = self.bus.now();
        let bus = &mut self.bus;
        self.dispatcher.send_due(elapsed, wall, |agent, message| {
            if let Err(error) = bus.send(agent, message) {
                tracing::debug!("{error}");
            }
        })
    }
}

impl From<InboxError> for ExecutorLost {
    fn from(error: InboxError) -> Self {
        Self::new(error.to_string())
    }
}

/// Waits until connected agents know what is stored.
impl<B: Bus> Drop for AgentsExecutor<B> {
    fn drop(&mut self) {
        // Else the next poll would send them.
        self.pending_orders.clear();
        // It was reported; the end of the reflectors is still awaited.
        self.end_reason = None;
        for id in self.reflectors.end() {
            self.dispatcher.cancel(id);
        }
        self.dispatcher.confirm_now();
        let deadline = (self.elapsed.0)() + self.confirmation_wait;
        while (self.dispatcher.has_confirmations() || self.reflectors.has_orders())
            && (self.elapsed.0)() < deadline
        {
            if self.poll(Span::from_millis(20)).is_err() {
                return;
            }
        }
    }
}

impl<B: Bus> Executor for AgentsExecutor<B> {
    fn submit(&mut self, order: Order) -> Ticket {
        let ticket = self.next_ticket();
        let now = (self.elapsed.0)();
        self.send_or_hold(ticket, order, now);
        // The next poll sends it, with all orders submitted until then.
        ticket
    }

    fn poll(&mut self, patience: Span) -> Result<Vec<(Ticket, Update)>, ExecutorLost> {
        self.send_held()?;
        let mut updates = std::mem::take(&mut self.pending_updates);
        self.send_due()?;
        let patience = updates.first().map_or(patience, |_| Span::ZERO);
        for from_bus in self.bus.receive(patience) {
            let (agent, message) = match from_bus {
                FromBus::Message(agent, message) => (agent, message),
                FromBus::Gone(agent) => {
                    self.dispatcher.mark_disconnected(&agent);
                    self.reflectors.mark_away(&agent);
                    continue;
                }
                FromBus::Revoked(agent) => {
                    updates.extend(self.end_orders_of(&agent)?);
                    continue;
                }
                FromBus::Refused(reason) => return Err(ExecutorLost::new(reason)),
            };
            if let FromAgent::State {
                id,
                state: OrderState::Running { .. },
            } = &message
            {
                self.reflectors.mark_running(&agent, *id);
            }
            for (id, update) in self.dispatcher.process_message(&agent, message)? {
                updates.extend(self.process_update(id, update)?);
            }
        }
        self.send_due()?;
        if let Some(reason) = self.end_reason.clone() {
            self.cancel_running();
            if self.running.is_empty() && updates.is_empty() {
                return Err(ExecutorLost::new(reason));
            }
        }
        // Reports come first.
        let silent_agent = self.dispatcher.overdue_agent((self.elapsed.0)());
        match silent_agent.filter(|_| updates.is_empty()) {
            Some(agent) => Err(ExecutorLost {
                reason: format!("agent {agent} does not answer"),
                has_open_orders: true,
            }),
            None => Ok(updates),
        }
    }

    fn cancel(&mut self, ticket: Ticket) {
        self.cancel_order(ticket);
    }

    fn gives_journals(&self) -> bool {
        true
    }

    fn stored(&mut self, experiment: ExperimentId) -> Result<(), ExecutorLost> {
        let mut complete_ids = Vec::new();
        for (id, experiments) in &mut self.unstored {
            experiments.remove(&experiment);
            if experiments.is_empty() {
                complete_ids.push(*id);
            }
        }
        for id in complete_ids {
            self.unstored.remove(&id);
            self.dispatcher.mark_stored(id)?;
        }
        self.send_due()?;
        Ok(())
    }

    fn adopt(&mut self, campaign: CampaignId) -> Result<Vec<(Ticket, Order)>, ExecutorLost> {
        self.adopt_orders(campaign)
    }
}

#[cfg(test)]
mod tests;
