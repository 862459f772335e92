//! What every executor promises, of an agent that measures with sockets behind a bus in this process.

use std::path::{Path, PathBuf};

use neph_journal::{Contents, JournalError, journal_path};
use neph_model::executor::contract;
use neph_model::{
    Executor, ExecutorLost, ExperimentId, ExperimentOrder, FlowIndex, Order, Seq, Span, Ticket,
    Update,
};

use super::agent::{OneAgent, ToOne, lasting, order};
use crate::AgentsExecutor;

pub(super) fn of_messages(messages: u64) -> ExperimentOrder {
    let mut order = order(&format!("ws://{}", lasting()));
    order.scenario.interval = Span::from_millis(5);
    order.scenario.messages = messages;
    order.timeout = Span::from_secs(1);
    order
}

pub(super) fn journalled(folder: &Path, id: ExperimentId) -> Vec<(FlowIndex, Seq)> {
    let contents = Contents::of(&journal_path(folder, id), id).expect("readable");
    let mut messages = Vec::new();
    let each = contents.expect("there").each_message(|message| {
        messages.push((message.flow, message.seq));
        Ok::<(), JournalError>(())
    });
    each.expect("readable");
    messages
}

/// An executor with an agent of its own.
#[derive(Debug)]
struct WithAgent {
    executor: AgentsExecutor<ToOne>,
    _agent: OneAgent,
}

impl Executor for WithAgent {
    fn submit(&mut self, order: Order) -> Ticket {
        self.executor.submit(order)
    }

    fn poll(&mut self, patience: Span) -> Result<Vec<(Ticket, Update)>, ExecutorLost> {
        self.executor.poll(patience)
    }

    fn cancel(&mut self, ticket: Ticket) {
        self.executor.cancel(ticket);
    }

    fn gives_journals(&self) -> bool {
        self.executor.gives_journals()
    }
}

#[test]
fn the_contract_of_executors_holds_over_a_bus() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut count = 0;
    let mut make = || -> Box<dyn Executor> {
        count += 1;
        let agent = OneAgent::start();
        let inbox: PathBuf = folder.path().join(count.to_string());
        Box::new(WithAgent {
            executor: agent.executor(&inbox),
            _agent: agent,
        })
    };
    let subject = contract::Subject {
        short: || of_messages(40),
        long: || of_messages(100_000),
        impossible: || order("ws://127.0.0.1:1"),
        journalled,
    };
    contract::hold(&mut make, subject);
}
