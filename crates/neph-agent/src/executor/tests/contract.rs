//! What every executor promises, of the one in this process.

use std::net::SocketAddr;
use std::sync::OnceLock;

use neph_model::executor::contract;
use neph_model::{Executor, ExperimentOrder, Span};
use neph_probe::Reflector;

use super::{LocalExecutor, order, reflector};

/// A reflector that stays for all tests of the contract.
fn shared_reflector_address() -> SocketAddr {
    static REFLECTOR: OnceLock<Reflector> = OnceLock::new();
    REFLECTOR.get_or_init(reflector).address()
}

fn order_with_messages(messages: u64) -> ExperimentOrder {
    let mut order = order(&format!("ws://{}", shared_reflector_address()));
    order.scenario.interval = Span::from_millis(5);
    order.scenario.messages = messages;
    order.timeout = Span::from_secs(1);
    order
}

pub(crate) fn contract_subject() -> contract::Subject {
    contract::Subject {
        short_order: || order_with_messages(40),
        long_order: || order_with_messages(100_000),
        impossible_order: || order("ws://127.0.0.1:1"),
        journalled: |_, _| panic!("what is measured is reported as it comes"),
    }
}

#[test]
fn the_local_executor_fulfils_the_executor_contract() {
    let mut make = || -> Box<dyn Executor> { Box::new(LocalExecutor::new()) };
    contract::check(&mut make, contract_subject());
}
