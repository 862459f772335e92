use std::num::NonZeroU16;

use neph_model::{Measure, Quantity, SeriesName};

use super::*;
use crate::site_reflector::{BoundService, RunningService};

/// An order for a throughput test of so many seconds with the server at this port of loopback.
fn transfer_order(measure: &str, port: u16, seconds: u64) -> ExperimentOrder {
    let mut order = order("udp://127.0.0.1:9");
    let measure: Measure = measure.parse().expect(measure);
    let port = NonZeroU16::new(port).expect("a port");
    let parameters = &mut order.scenario.parameters;
    parameters.insert(Parameter::Measure(measure));
    parameters.insert(Parameter::ThroughputPort(port));
    order.scenario.interval = Span::from_secs(1);
    order.scenario.messages = seconds;
    order
}

fn free_port() -> NonZeroU16 {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("bound").port();
    NonZeroU16::new(port).expect("no zero")
}

fn serving(spec: &ReflectorSpec) -> RunningService {
    let mut bound = BoundService::alongside(spec, None, &Permit::ANYTHING).expect("a port");
    bound.remove(0).serve().expect("a thread")
}

/// Throughput tests at a port of loopback.
fn throughput() -> RunningService {
    serving(&ReflectorSpec {
        throughput: Some(free_port()),
        ..ReflectorSpec::at(([127, 0, 0, 1], 0).into())
    })
}

#[test]
fn a_transfer_replaces_the_main_flow_and_yields_quantities() {
    let server = throughput();
    let port = server.address().port();
    let run = run(&transfer_order("udp throughput 20Mbit/s", port, 2));
    let prepared = run.prepared[0].as_ref().expect("it began");
    assert!(prepared.flows.is_empty());
    let result = run.result();
    assert_eq!(result.ending, Ending::Complete);
    let quantities = result.quantities.as_ref().expect("quantities");
    let goodput = quantities.values[&Quantity::UpGoodput];
    assert!((15e6..=21e6).contains(&goodput), "{goodput}");
    assert_eq!(
        (quantities.peer, quantities.limits.len()),
        (server.address(), 1)
    );
    let is_goodput = |series| series == SeriesName::Quantity(Quantity::UpGoodput);
    let seconds = run.records[0].samples.iter();
    let seconds = seconds.filter(|sample| is_goodput(sample.series)).count();
    assert!((1..=3).contains(&seconds), "{seconds}");
}

#[test]
fn a_cancelled_transfer_keeps_its_results() {
    let server = throughput();
    let order = transfer_order("tcp throughput 20Mbit/s", server.address().port(), 600);
    let orders = std::slice::from_ref(&order);
    let has_run_long = |progress: Progress| progress.elapsed > Span::from_millis(1500);
    let run = carry_out(&mut LocalExecutor::new(), orders, &has_run_long);
    assert_eq!(run.result().ending, Ending::Interrupted);
    assert!(run.result().quantities.is_some());
}

#[test]
fn a_transfer_without_a_server_fails_with_the_address() {
    let order = transfer_order("tcp throughput", free_port().get(), 1);
    let run = run(&order);
    let Ending::Failed(reason) = &run.result().ending else {
        panic!("{:?}", run.result().ending)
    };
    assert!(reason.contains("127.0.0.1"), "{reason}");
}

#[test]
fn a_transaction_test_yields_a_rate_and_rtts() {
    let server = throughput();
    let run = run(&transfer_order("udp rr", server.address().port(), 2));
    let result = run.result();
    assert_eq!(result.ending, Ending::Complete);
    let quantities = result.quantities.as_ref().expect("quantities");
    let value_of = |quantity| quantities.values[&quantity];
    assert!(value_of(Quantity::Transactions) > 500.0, "{quantities:?}");
    assert!(
        value_of(Quantity::RttMin) > 0.0
            && value_of(Quantity::RttMin) <= value_of(Quantity::RttP50)
    );
    assert!((0.0..=100.0).contains(&value_of(Quantity::TransactionLoss)));
}

#[test]
fn media_streams_yield_a_bit_rate_and_a_quality() {
    let server = serving(&ReflectorSpec {
        media: Some(free_port()),
        ..ReflectorSpec::at(([127, 0, 0, 1], 0).into())
    });
    let mut order = transfer_order("media 2 clients", 9, 3);
    let port = NonZeroU16::new(server.address().port()).expect("a port");
    order.scenario.parameters.insert(Parameter::MediaPort(port));
    let run = run(&order);
    let result = run.result();
    assert_eq!(result.ending, Ending::Complete);
    let quantities = result.quantities.as_ref().expect("quantities");
    let rate = quantities.values[&Quantity::MediaRate];
    assert!((50e3..=2e6).contains(&rate), "{quantities:?}");
    assert!(
        quantities.values.contains_key(&Quantity::MediaJitter),
        "{quantities:?}"
    );
}
