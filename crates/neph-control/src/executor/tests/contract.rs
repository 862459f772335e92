//! The contract of executors, with a socket-based agent behind an in-process bus.

use std::path::Path;

use neph_journal::{Contents, JournalError, journal_path};
use neph_model::executor::contract;
use neph_model::{Executor, ExperimentId, ExperimentOrder, FlowIndex, Seq, Span};

use super::agent::{OneAgent, lasting, order};

fn of_messages(messages: u64) -> ExperimentOrder {
    let mut order = order(&format!("ws://{}", lasting()));
    order.scenario.interval = Span::from_millis(5);
    order.scenario.messages = messages;
    order.timeout = Span::from_secs(1);
    order
}

pub(super) fn journalled(folder: &Path, id: ExperimentId) -> Vec<(FlowIndex, Seq)> {
    let contents = Contents::of(&journal_path(folder, id), id).expect("readable");
    let mut messages = Vec::new();
    let visited = contents.expect("there").each_message(|message| {
        messages.push((message.flow, message.seq));
        Ok::<(), JournalError>(())
    });
    visited.expect("readable");
    messages
}

/// Tests the claims on executors of socket-based agents; `make` owns what they need.
pub(super) fn check(make: &mut dyn FnMut() -> Box<dyn Executor>) {
    let subject = contract::Subject {
        short_order: || of_messages(40),
        long_order: || of_messages(100_000),
        impossible_order: || order("ws://127.0.0.1:1"),
        journalled,
    };
    contract::check(make, subject);
}

#[test]
fn the_agents_executor_fulfils_the_contract_over_a_bus() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut agents = Vec::new();
    check(&mut || {
        let agent = OneAgent::start();
        let executor = agent.executor(&folder.path().join(agents.len().to_string()));
        agents.push(agent);
        Box::new(executor)
    });
}
