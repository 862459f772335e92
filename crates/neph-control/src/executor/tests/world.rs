//! A controller, two agents and a bus between them, on one thread and in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use neph_agent::remote::{Ended, FileLength, FromAgent, OrderState, Part, ResultFile, Worker};
use neph_journal::{Contents, JournalError, journal_path};
use neph_model::{
    AgentName, CampaignId, Ending, Executor, ExperimentId, ExperimentOrder, Message, Order,
    OrderFailed, OrderId, OrderResult, Span, Ticket, Update,
};

use super::super::Elapsed;
use super::agent::{authority, guard, order, signer};
use super::fake::{Fake, MESSAGES, ended, message};
use super::wire::{SeededRandom, Wire};
use crate::dispatcher::Dispatcher;
use crate::{AgentsExecutor, Sites};

/// Bytes of a file per message: a journal takes several.
const PART: u32 = 100;
/// Orders of a run.
const ORDERS: usize = 5;

#[derive(Debug)]
pub(super) struct ControllerWorld {
    folder: tempfile::TempDir,
    wire: Wire,
    time: Arc<AtomicI64>,
    controller: Option<AgentsExecutor<Wire>>,
    agents: BTreeMap<AgentName, Option<Worker<Fake>>>,
    starts: Arc<Mutex<BTreeMap<ExperimentId, u64>>>,
    campaign: CampaignId,
    orders: Vec<Order>,
    /// Experiments of each open ticket.
    open: BTreeMap<Ticket, Vec<ExperimentId>>,
    journals: BTreeMap<ExperimentId, PathBuf>,
    /// The store: messages and endings.
    stored: BTreeMap<ExperimentId, (Vec<Message>, Ending)>,
    random: SeededRandom,
    lossy: bool,
    pub(super) happened: BTreeMap<&'static str, u64>,
}

fn name(text: &str) -> AgentName {
    text.parse().expect("a name")
}

impl ControllerWorld {
    pub(super) fn new(seed: u64) -> Self {
        let campaign = CampaignId::new();
        let of = |at: usize| {
            let mut experiments: Vec<ExperimentOrder> =
                (0..=at % 3).map(|_| order("udp://127.0.0.1:1")).collect();
            for (index, order) in experiments.iter_mut().enumerate() {
                order.experiment.campaign = campaign;
                order.site = Some(["a", "b"][(index + at) % 2].to_owned());
            }
            Order::Experiments(experiments)
        };
        let agents = [name("a"), name("b")].map(|agent| (agent, None));
        Self {
            folder: tempfile::tempdir_in(memory_or_disk()).expect("a folder"),
            wire: Wire::default(),
            time: Arc::default(),
            controller: None,
            agents: agents.into_iter().collect(),
            starts: Arc::default(),
            campaign,
            orders: (0..ORDERS).map(of).collect(),
            open: BTreeMap::new(),
            journals: BTreeMap::new(),
            stored: BTreeMap::new(),
            random: SeededRandom::new(seed),
            lossy: true,
            happened: BTreeMap::new(),
        }
    }

    pub(super) fn controller(&mut self) -> &mut AgentsExecutor<Wire> {
        if self.controller.is_none() {
            let sites = Sites {
                agents: ["a", "b"].map(|site| (site.to_owned(), name(site))).into(),
                default: None,
                reflectors: BTreeMap::new(),
            };
            let time = Arc::clone(&self.time);
            let time = Elapsed(Box::new(move || {
                Span::from_nanos(time.load(Ordering::Relaxed))
            }));
            let folder = self.folder.path().join("controller");
            let dispatcher = Dispatcher::open(&folder, signer()).expect("readable");
            let mut created = AgentsExecutor::with_time(dispatcher, sites, self.wire.clone(), time);
            self.open.clear();
            for (ticket, order) in created.adopt(self.campaign).expect("readable") {
                self.open.insert(ticket, experiments_of(&order));
            }
            created.dispatcher.part_bytes = PART;
            // No wait at the end, as after a kill.
            created.confirmation_wait = Span::ZERO;
            self.controller = Some(created);
        }
        self.controller.as_mut().expect("made")
    }

    fn count(&mut self, event: &'static str) {
        *self.happened.entry(event).or_default() += 1;
    }

    /// Runs this many steps.
    pub(super) fn live(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step();
        }
    }

    /// Runs without losses until all is done.
    pub(super) fn settle(&mut self) {
        self.lossy = false;
        for _ in 0..20_000 {
            self.step();
            let idle = self.agents.values().flatten().all(
                |worker| matches!(worker.hello(), FromAgent::Hello(hello) if hello.holds.is_empty()),
            );
            let inbox = self.folder.path().join("controller");
            let is_empty = self.controller().dispatcher.is_empty()
                && std::fs::read_dir(inbox)
                    .is_ok_and(|entries| entries.flatten().all(|file| file.path().is_file()));
            if self.orders.is_empty() && self.open.is_empty() && idle && is_empty {
                return;
            }
        }
        panic!("it does not come to its end: {self:?}");
    }

    fn step(&mut self) {
        self.time.fetch_add(100_000_000, Ordering::Relaxed);
        match self.random.roll() % 10 {
            0 => self.order_one(),
            1..=3 => self.control(),
            4..=8 => self.agent(),
            _ if self.lossy && self.random.percent(25) => self.kill(),
            _ => self.control(),
        }
    }

    /// Like a campaign: orders experiments that are not stored and not out.
    fn order_one(&mut self) {
        self.controller();
        if !self.open.is_empty() {
            return;
        }
        while let Some(order) = self.orders.pop() {
            let experiments = experiments_of(&order);
            if experiments.iter().all(|id| self.stored.contains_key(id)) {
                continue;
            }
            let ticket = self.controller().submit(order);
            self.open.insert(ticket, experiments);
            return;
        }
    }

    fn control(&mut self) {
        let updates = self.controller().poll(Span::ZERO).expect("it is there");
        for (ticket, update) in updates {
            match update {
                Update::Journalled(experiment, folder) => {
                    self.journals.insert(experiment, folder);
                }
                Update::Done(result) => {
                    let experiments = self.open.remove(&ticket).expect("it was open");
                    if !self.store(&experiments, result) {
                        return;
                    }
                }
                _ => {}
            }
        }
    }

    /// Stores a result like a campaign, possibly with a kill in between; false after a kill.
    fn store(
        &mut self,
        experiments: &[ExperimentId],
        result: Result<OrderResult, OrderFailed>,
    ) -> bool {
        let endings: Vec<Ending> = match result {
            Ok(OrderResult::Experiments(results)) => {
                let endings = results.into_iter().map(|result| match result {
                    Ok(result) => result.ending,
                    Err(reason) => Ending::Failed(reason.to_string()),
                });
                endings.collect()
            }
            Ok(_) => panic!("a result of another kind"),
            Err(reason) => vec![Ending::Failed(reason.to_string()); experiments.len()],
        };
        assert_eq!(endings.len(), experiments.len());
        for (id, ending) in experiments.iter().zip(endings) {
            if self.lossy && self.random.percent(10) {
                self.kill_controller();
                return false;
            }
            if !self.stored.contains_key(id) {
                let journal = self.journals.get(id);
                let messages = journal.map_or_else(Vec::new, |folder| read(folder, *id));
                self.stored.insert(*id, (messages, ending));
            }
            if self.lossy && self.random.percent(10) {
                self.kill_controller();
                return false;
            }
            self.controller().stored(*id).expect("writable");
        }
        true
    }

    /// One step of one agent.
    fn agent(&mut self) {
        let agent = name(["a", "b"][usize::try_from(self.random.roll() % 2).expect("small")]);
        let starts = Arc::clone(&self.starts);
        let folder = self.folder.path().join(agent.as_str());
        let mut sent_messages = Vec::new();
        let worker = self.agents.get_mut(&agent).expect("it is there");
        let worker = worker.get_or_insert_with(|| {
            let guard = guard(&folder, &agent, authority().certificate());
            let worker = Worker::new(&folder, Fake::new(starts), "1", guard).expect("readable");
            sent_messages.push(worker.hello());
            worker
        });
        let received = {
            let mut wires = self.wire.lock();
            wires
                .to_agents
                .entry(agent.clone())
                .or_default()
                .pop_front()
        };
        if let Some(message) = received {
            if self.lossy && self.random.percent(15) {
                *self.happened.entry("doubled").or_default() += 1;
                let mut wires = self.wire.lock();
                let queue = wires.to_agents.entry(agent.clone()).or_default();
                queue.push_back(message.clone());
            }
            if self.lossy && self.random.percent(15) {
                *self.happened.entry("lost").or_default() += 1;
            } else {
                sent_messages.extend(worker.take(message).expect("writable"));
            }
        } else {
            sent_messages.extend(worker.work(Span::ZERO).expect("writable"));
        }
        for message in sent_messages {
            if self.lossy && self.random.percent(15) {
                self.count("lost");
                continue;
            }
            let is_reset = self.lossy && self.random.percent(10);
            let mut wires = self.wire.lock();
            if is_reset && let Some(late) = wires.late.replace((agent.clone(), message.clone())) {
                wires.to_controller.push_back(late);
            }
            wires.to_controller.push_back((agent.clone(), message));
        }
    }

    fn kill(&mut self) {
        if self.random.percent(40) {
            self.kill_controller();
            return;
        }
        let agent = name(["a", "b"][usize::try_from(self.random.roll() % 2).expect("small")]);
        self.count("agent killed");
        self.agents.insert(agent.clone(), None);
        self.wire.lock().to_agents.remove(&agent);
    }

    fn kill_controller(&mut self) {
        self.count("controller killed");
        let killed = self.controller.take();
        if let Some(mut killed) = killed.filter(|_| self.random.percent(30)) {
            self.count("power lost");
            killed.dispatcher.lose_power();
        }
        self.journals.clear();
        self.wire.lock().to_controller.clear();
    }

    /// Agent b sends hostile messages about an order of a.
    pub(super) fn send_forged_messages(&mut self) {
        self.orders.clear();
        while !self.open.is_empty() {
            self.lossy = false;
            self.step();
        }
        let mut unsigned = order("udp://127.0.0.1:1");
        unsigned.experiment.campaign = self.campaign;
        unsigned.site = Some("a".to_owned());
        let experiment = unsigned.experiment.id;
        let ticket = self.controller().submit(Order::Experiments(vec![unsigned]));
        self.open.insert(ticket, vec![experiment]);
        let id = self
            .controller()
            .dispatcher
            .open_orders()
            .next()
            .expect("it is out")
            .0;
        let ended = |files| {
            OrderState::Ended(Box::new(Ended {
                prepared: None,
                result: Ok(OrderResult::Experiments(vec![Ok(ended(Ending::Complete))])),
                files,
            }))
        };
        let of = |file| FileLength { file, bytes: 3 };
        let foreign = vec![of(ResultFile::Journal(ExperimentId::new()))];
        let part = Part {
            id,
            file: 0,
            from: 0,
            bytes: vec![1, 2, 3],
        };
        let state = |id: OrderId, state: OrderState| FromAgent::State { id, state };
        let forged_messages = [
            ("b", state(id, ended(Vec::new()))),
            ("b", FromAgent::Part(part)),
            ("b", state(id, OrderState::Forgotten)),
            ("a", state(id, ended(foreign))),
            (
                "a",
                state(
                    id,
                    OrderState::Running {
                        prepared: Some(Vec::new()),
                    },
                ),
            ),
            ("a", state(OrderId::new(), OrderState::Forgotten)),
        ];
        for (agent, message) in forged_messages {
            let mut wires = self.wire.lock();
            wires.to_controller.push_back((name(agent), message));
        }
    }

    /// Nothing was done twice, lost or invented.
    pub(super) fn check(&mut self) {
        let failed = |(_, ending): &&(Vec<Message>, Ending)| *ending != Ending::Complete;
        let cut_off = self.stored.values().filter(failed).count();
        *self.happened.entry("cut off").or_default() += cut_off as u64;
        let starts = self.starts.lock().expect("whole");
        assert!(starts.values().all(|times| *times == 1), "{starts:?}");
        let expected: Vec<Message> = (0..MESSAGES).map(message).collect();
        let ids: BTreeSet<_> = self.stored.keys().collect();
        assert!(
            starts.keys().all(|id| ids.contains(id)),
            "what was carried out is stored"
        );
        for (id, (messages, ending)) in &self.stored {
            match ending {
                Ending::Complete => assert_eq!(*messages, expected, "{id}"),
                Ending::Failed(reason)
                    if reason.contains("ended before the order was complete") =>
                {
                    assert!(expected.starts_with(messages), "{id}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A folder in memory if there is one, where sync costs nothing.
fn memory_or_disk() -> PathBuf {
    let memory = Some(PathBuf::from("/dev/shm")).filter(|memory| memory.is_dir());
    memory.unwrap_or_else(std::env::temp_dir)
}

fn experiments_of(order: &Order) -> Vec<ExperimentId> {
    match order {
        Order::Experiments(orders) => orders.iter().map(|order| order.experiment.id).collect(),
        _ => Vec::new(),
    }
}

fn read(folder: &Path, id: ExperimentId) -> Vec<Message> {
    let contents = Contents::of(&journal_path(folder, id), id).expect("readable");
    let mut messages = Vec::new();
    let visited = contents.expect("there").each_message(|message| {
        messages.push(message);
        Ok::<(), JournalError>(())
    });
    visited.expect("readable");
    messages
}
