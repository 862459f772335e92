use neph_model::{ParameterName, Permit};
use std::net::UdpSocket;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::*;
use crate::executor::tests::{context, fleet_order, reflector};
use crate::flows;

#[test]
fn a_fleet_ends_with_its_course_also_where_that_never_ran() {
    let local_reflector = reflector();
    let mut order = fleet_order(&format!("udp://{}", local_reflector.address()));
    // More than half an hour.
    order.scenario.messages = 100_000;
    let ready = flows::ready(&order, None, &Permit::ANYTHING).expect("a reflector is there");
    let (context, _updates) = context();
    let mut course = Course::begin(&order, ready, &context).expect("it starts");
    let fleet = course.fleet.take().expect("a fleet");
    // As if a flow alongside it has no thread: the caller that began it gets an error.
    drop(course);
    let latest = neph_probe::now() + Span::from_secs(30);
    loop {
        match fleet.reports().recv_timeout(Duration::from_secs(1)) {
            Err(RecvTimeoutError::Disconnected) => break,
            _ => assert!(neph_probe::now() < latest, "it goes on asking"),
        }
    }
    fleet.join().expect("it was fine");
}

#[test]
fn unanswered_fleets_and_flows_are_given_up_early() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let url = format!("udp://{}", silent.local_addr().expect("bound"));
    let fleet = fleet_order(&url);
    let mut single_flow = fleet.clone();
    for name in [ParameterName::Flows, ParameterName::FlowLifetime] {
        single_flow.scenario.parameters.remove(name);
    }
    for order in [fleet, single_flow] {
        given_up(order, "no answer");
    }
}

#[test]
fn a_port_unreachable_is_no_answer_of_the_endpoint() {
    let closed = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let url = format!("udp://{}", closed.local_addr().expect("bound"));
    drop(closed);
    let mut order = fleet_order(&url);
    for name in [ParameterName::Flows, ParameterName::FlowLifetime] {
        order.scenario.parameters.remove(name);
    }
    given_up(
        order,
        "nothing listens at its port (ICMP: port unreachable)",
    );
}

fn given_up(mut order: ExperimentOrder, expected: &str) {
    // More than half an hour.
    order.scenario.messages = 100_000;
    let mut ready =
        flows::ready(&order, None, &Permit::ANYTHING).expect("silence is an answer for UDP");
    ready.origin.at = ready.origin.at - FIRST_ANSWER_TIMEOUT;
    let (context, _updates) = context();
    let mut courses = [Course::begin(&order, ready, &context)];
    run(&mut courses, &context);
    let [course] = courses;
    let ended = course
        .expect("it began")
        .end(&SharedContext::default(), Vec::new());
    let Ending::Failed(reason) = ended.ending else {
        panic!("nobody answered");
    };
    assert!(reason.ends_with(expected), "{reason}");
}
