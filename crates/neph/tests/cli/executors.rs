//! `neph execute -`: orders as JSON on standard input, updates as JSON lines. The contract of executors
//! is tried on it, each order in a process of its own.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use neph_campaign::{expand, plan};
use neph_model::executor::contract;
use neph_model::{
    Campaign, Executor, ExecutorLost, Experiment, ExperimentOrder, ExperimentStatus, Order,
    OrderResult, Span, Ticket, Update, Wall,
};
use neph_probe::Reflector;
use neph_store::{Access, IntakeResult, Journalled};
use neph_text::Source;

use crate::neph::{TestFolder, command, send_signal};
use crate::pings::reflector;

/// Carries each order out in a neph of its own.
#[derive(Debug)]
struct Processes {
    running: Vec<Child>,
    cancelled: BTreeSet<Ticket>,
    sender: Sender<(Ticket, Update)>,
    updates: Receiver<(Ticket, Update)>,
}

impl Processes {
    fn new() -> Self {
        let (sender, updates) = channel();
        Self {
            running: Vec::new(),
            cancelled: BTreeSet::new(),
            sender,
            updates,
        }
    }
}

impl Executor for Processes {
    fn submit(&mut self, order: Order) -> Ticket {
        let mut command = command();
        command.args(["execute", "-"]).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("neph runs");
        let text = serde_json::to_string(&order).expect("plain data");
        let mut input = child.stdin.take().expect("piped");
        input.write_all(text.as_bytes()).expect("it reads");
        drop(input);
        let ticket = Ticket(self.running.len() as u64);
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let sender = self.sender.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let update = serde_json::from_str(&line).expect("an update");
                if sender.send((ticket, update)).is_err() {
                    return;
                }
            }
        });
        self.running.push(child);
        ticket
    }

    fn poll(&mut self, patience: Span) -> Result<Vec<(Ticket, Update)>, ExecutorLost> {
        let first = self.updates.recv_timeout(patience.to_duration());
        let mut updates: Vec<_> = first.into_iter().collect();
        updates.extend(self.updates.try_iter());
        Ok(updates)
    }

    fn cancel(&mut self, ticket: Ticket) {
        let index = usize::try_from(ticket.0).expect("few");
        let child = &mut self.running[index];
        // A second ctrl-C would end it at once.
        let is_first = self.cancelled.insert(ticket);
        if is_first && child.try_wait().expect("it is ours").is_none() {
            send_signal("INT", child.id());
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.running {
            // It has ended, or it is not wanted any more.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn lasting() -> SocketAddr {
    static OURS: OnceLock<Reflector> = OnceLock::new();
    OURS.get_or_init(reflector).address()
}

fn order(url: &str, messages: u64) -> ExperimentOrder {
    let text = format!(
        "version = 1\nname = \"p\"\ninterval = \"5ms\"\nmessages = {messages}\n\
         [[endpoint]]\nname = \"e\"\nurl = \"{url}\"\n"
    );
    let plan = plan::parse(&Source::new("p.toml", text)).expect("a good plan");
    contract::order_of(expand::scenarios(&plan).remove(0), Span::from_secs(1))
}

/// A host that measures journals; the journals are taken in where the store is.
#[test]
fn a_store_takes_in_each_journal_once() {
    let test_folder = TestFolder::empty();
    let text = format!(
        "version = 1\nname = \"p\"\ninterval = \"5ms\"\nmessages = 40\n\
         [[endpoint]]\nname = \"e\"\nurl = \"ws://{}\"\n",
        lasting()
    );
    let plan = plan::parse(&Source::new("p.toml", text)).expect("a good plan");
    let campaign = Campaign::new("p", Wall::from_unix_nanos(1));
    let mut experiment_order = order(&format!("ws://{}", lasting()), 40);
    experiment_order.experiment.campaign = campaign.id;
    let folder = test_folder.path("journals");
    let mut command = command();
    let folder_text = folder.display().to_string();
    command.args(["execute", "-", "--journal", &folder_text]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("neph runs");
    let text =
        serde_json::to_string(&Order::Experiments(vec![experiment_order.clone()])).expect("data");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    let ran = child.wait_with_output().expect("it ends");
    assert!(ran.status.success());
    let (mut events, mut result) = (Vec::new(), None);
    for line in ran.stdout.lines() {
        match serde_json::from_str(&line.expect("text")).expect("an update") {
            Update::Recorded(_, records) => events.extend(records.messages),
            Update::Done(Ok(OrderResult::Experiments(mut results))) => result = results.pop(),
            _ => (),
        }
    }
    let result = result.expect("a result").expect("it ran");
    let mut ended = Experiment {
        status: ExperimentStatus::Complete,
        ended: Some(result.ended),
        flows: result.flows,
        ..experiment_order.experiment
    };
    ended.tally.messages = 40;
    let stored = format!("file://{}", test_folder.path("kept").display());
    let mut store = neph_store::open(&stored, Access::Write).expect("a new store");
    let added = store.add_campaign(&campaign, &expand::scenarios(&plan));
    added.expect("added");
    let journalled = Journalled {
        folder: &folder,
        experiment: &ended,
        provenance: None,
        events: &[],
        flow_trace: None,
    };
    let taken = [store.take_in(&journalled), store.take_in(&journalled)];
    let [now, before] = taken.map(|taken| taken.expect("taken in"));
    assert_eq!(now, IntakeResult::Stored);
    assert_eq!(before, IntakeResult::Existing(ExperimentStatus::Complete));
    events.sort_by_key(|message| (message.flow, message.seq));
    assert_eq!(store.messages(ended.id).expect("readable"), events);
    assert_eq!(store.experiments(campaign.id).expect("readable"), [ended]);
}

#[test]
fn the_contract_of_executors_holds_across_processes() {
    contract::check(
        &mut || Box::new(Processes::new()),
        contract::Subject {
            short_order: || order(&format!("ws://{}", lasting()), 40),
            long_order: || order(&format!("ws://{}", lasting()), 100_000),
            impossible_order: || order("ws://127.0.0.1:1", 40),
            journalled: |_, _| panic!("what is measured is reported as it comes"),
        },
    );
}
