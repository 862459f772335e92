use neph_model::{ParameterName, Permit};
use std::net::UdpSocket;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::*;
use crate::executor::tests::{context, fleet_order, reflector};
use crate::flows;

#[test]
fn a_fleet_ends_with_its_experiment_even_if_that_never_ran() {
    let local_reflector = reflector();
    let mut order = fleet_order(&format!("udp://{}", local_reflector.address()));
    // More than half an hour.
    order.scenario.messages = 100_000;
    let ready = flows::ready(&order, None, &Permit::ANYTHING).expect("a reflector is there");
    let (context, _updates) = context();
    let mut experiment = RunningExperiment::begin(&order, ready, &context).expect("it starts");
    let fleet = experiment.fleet.take().expect("a fleet");
    // As if a flow alongside it has no thread: the caller that began it gets an error.
    drop(experiment);
    let deadline = neph_probe::now() + Span::from_secs(30);
    loop {
        match fleet.reports().recv_timeout(Duration::from_secs(1)) {
            Err(RecvTimeoutError::Disconnected) => break,
            _ => assert!(neph_probe::now() < deadline, "it goes on asking"),
        }
    }
    fleet.join().expect("it was fine");
}

#[test]
fn unanswered_fleets_and_flows_are_given_up_early() {
    let silent_socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let url = format!("udp://{}", silent_socket.local_addr().expect("bound"));
    let fleet = fleet_order(&url);
    let mut single_flow = fleet.clone();
    for name in [ParameterName::Flows, ParameterName::FlowLifetime] {
        single_flow.scenario.parameters.remove(name);
    }
    for order in [fleet, single_flow] {
        assert_given_up(order, "no answer");
    }
}

#[test]
fn a_port_unreachable_is_no_answer_of_the_endpoint() {
    let closed_socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let url = format!("udp://{}", closed_socket.local_addr().expect("bound"));
    drop(closed_socket);
    let mut order = fleet_order(&url);
    for name in [ParameterName::Flows, ParameterName::FlowLifetime] {
        order.scenario.parameters.remove(name);
    }
    assert_given_up(
        order,
        "nothing listens at its port (ICMP: port unreachable)",
    );
}

fn assert_given_up(mut order: ExperimentOrder, expected: &str) {
    // More than half an hour.
    order.scenario.messages = 100_000;
    let mut ready =
        flows::ready(&order, None, &Permit::ANYTHING).expect("silence is an answer for UDP");
    ready.origin.at = ready.origin.at - FIRST_ANSWER_TIMEOUT;
    let (context, _updates) = context();
    let mut experiments = [RunningExperiment::begin(&order, ready, &context)];
    run(&mut experiments, &context);
    let [experiment] = experiments;
    let result = experiment
        .expect("it began")
        .end(&SharedContext::default(), Vec::new());
    let Ending::Failed(reason) = result.ending else {
        panic!("nobody answered");
    };
    assert!(reason.ends_with(expected), "{reason}");
}
