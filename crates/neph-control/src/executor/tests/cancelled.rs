//! Orders that are cancelled before their agent has them.

use std::collections::BTreeMap;
use std::path::Path;

use neph_model::{AgentName, Executor, Order, ReflectorOrder, ReflectorSpec, Span, Ticket, Update};

use super::super::Elapsed;
use super::agent::{order, signer};
use super::wire::Wire;
use crate::dispatcher::Dispatcher;
use crate::{AgentReflector, AgentsExecutor, Sites};

fn agent() -> AgentName {
    "a".parse().expect("a name")
}

/// An executor with one agent, and with this reflector.
fn executor(
    folder: &Path,
    reflectors: BTreeMap<AgentName, AgentReflector>,
) -> AgentsExecutor<Wire> {
    let sites = Sites {
        agents: BTreeMap::new(),
        default: Some(agent()),
        reflectors,
    };
    let dispatcher = Dispatcher::open(folder, signer()).expect("readable");
    let elapsed = Elapsed(Box::new(|| Span::ZERO));
    let mut executor = AgentsExecutor::with_time(dispatcher, sites, Wire::default(), elapsed);
    executor.confirmation_wait = Span::ZERO;
    executor
}

/// Cancels an order that was not sent, and checks that this ends it.
fn cancel_unsent(executor: &mut AgentsExecutor<Wire>, ticket: Ticket) {
    executor.cancel(ticket);
    let updates = executor.poll(Span::ZERO).expect("it goes on");
    assert!(
        matches!(&updates[..], [(of, Update::Done(Err(_)))] if *of == ticket),
        "{updates:?}"
    );
}

#[test]
fn a_cancelled_order_is_not_sent_to_a_reconnected_agent() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut executor = executor(folder.path(), BTreeMap::new());
    executor.dispatcher.mark_disconnected(&agent());
    let ticket = executor.submit(Order::Experiments(vec![order("udp://127.0.0.1:8600")]));
    assert_eq!(executor.poll(Span::ZERO), Ok(Vec::new()), "it is away");
    cancel_unsent(&mut executor, ticket);
    assert!(executor.dispatcher.is_empty());
}

#[test]
fn an_order_that_may_have_arrived_is_cancelled_at_the_agent() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut executor = executor(folder.path(), BTreeMap::new());
    let ticket = executor.submit(Order::Experiments(vec![order("udp://127.0.0.1:8600")]));
    assert_eq!(executor.poll(Span::ZERO), Ok(Vec::new()), "it was sent");
    executor.dispatcher.mark_disconnected(&agent());
    executor.cancel(ticket);
    assert_eq!(executor.poll(Span::ZERO), Ok(Vec::new()), "unknown");
    assert!(!executor.dispatcher.is_empty());
}

#[test]
fn a_cancelled_order_that_waited_for_a_reflector_is_not_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let reflector = AgentReflector {
        order: ReflectorOrder {
            spec: ReflectorSpec::at(([127, 0, 0, 1], 8600).into()),
            duration: Span::from_secs(60),
        },
        host: "127.0.0.1".to_owned(),
    };
    let mut executor = executor(folder.path(), [(agent(), reflector)].into());
    let ticket = executor.submit(Order::Experiments(vec![order("udp://127.0.0.1:8600")]));
    assert_eq!(executor.poll(Span::ZERO), Ok(Vec::new()), "it waits");
    let orders_before = executor.dispatcher.open_orders().count();
    cancel_unsent(&mut executor, ticket);
    assert_eq!(executor.dispatcher.open_orders().count(), orders_before);
}

#[test]
fn a_revoked_agent_ends_the_campaign_with_its_orders() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut executor = executor(folder.path(), BTreeMap::new());
    let ticket = executor.submit(Order::Experiments(vec![order("udp://127.0.0.1:8600")]));
    assert_eq!(executor.poll(Span::ZERO), Ok(Vec::new()), "it was sent");
    let updates = executor.end_orders_of(&agent()).expect("writable");
    assert!(
        matches!(&updates[..], [(of, Update::Done(Err(_)))] if *of == ticket),
        "{updates:?}"
    );
    let lost = executor.poll(Span::ZERO).expect_err("it cannot go on");
    assert!(lost.reason.contains("agent a was revoked"), "{lost:?}");
}
