use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::*;
use crate::local::flows;
use crate::local::tests::{Told, fleet_order, reflector};

#[test]
fn a_fleet_ends_with_its_course_also_where_that_never_ran() {
    let ours = reflector();
    let mut order = fleet_order(&format!("udp://{}", ours.address()));
    // More than half an hour.
    order.scenario.messages = 100_000;
    let ready = flows::ready(&order, None).expect("a reflector is there");
    let mut told = Told::default();
    let mut part = Part {
        order: &order,
        recorder: &mut told,
    };
    let mut course = Course::begin(&mut part, ready).expect("it starts");
    let fleet = course.fleet.take().expect("a fleet");
    // As where a flow beside it has no thread: whoever began it is told of an error.
    drop(course);
    let latest = Instant::now() + Duration::from_secs(30);
    loop {
        match fleet.reports().recv_timeout(Duration::from_secs(1)) {
            Err(RecvTimeoutError::Disconnected) => break,
            _ => assert!(Instant::now() < latest, "it goes on asking"),
        }
    }
    fleet.join().expect("it was fine");
}
