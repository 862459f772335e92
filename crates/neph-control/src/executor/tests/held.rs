//! Orders that wait for a reflector.

use std::collections::BTreeMap;

use neph_model::{AgentName, Executor, Order, ReflectorOrder, ReflectorSpec, Span, Update};

use super::super::Elapsed;
use super::agent::{order, signer};
use super::wire::Wire;
use crate::dispatcher::Dispatcher;
use crate::{AgentReflector, AgentsExecutor, Sites};

#[test]
fn a_cancelled_order_that_waited_for_a_reflector_is_not_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let agent: AgentName = "a".parse().expect("a name");
    let reflector = AgentReflector {
        order: ReflectorOrder {
            spec: ReflectorSpec::at(([127, 0, 0, 1], 8600).into()),
            duration: Span::from_secs(60),
        },
        host: "127.0.0.1".to_owned(),
    };
    let sites = Sites {
        agents: BTreeMap::new(),
        default: Some(agent.clone()),
        reflectors: [(agent, reflector)].into(),
    };
    let dispatcher = Dispatcher::open(folder.path(), signer()).expect("readable");
    let elapsed = Elapsed(Box::new(|| Span::ZERO));
    let mut executor = AgentsExecutor::with_time(dispatcher, sites, Wire::default(), elapsed);
    executor.confirmation_wait = Span::ZERO;
    let ticket = executor.submit(Order::Experiments(vec![order("udp://127.0.0.1:8600")]));
    assert_eq!(executor.poll(Span::ZERO), Ok(Vec::new()), "it waits");
    let orders_before = executor.dispatcher.open_orders().count();
    executor.cancel(ticket);
    let updates = executor.poll(Span::ZERO).expect("it goes on");
    assert!(
        matches!(&updates[..], [(of, Update::Done(Err(_)))] if *of == ticket),
        "{updates:?}"
    );
    assert_eq!(executor.dispatcher.open_orders().count(), orders_before);
}
