mod clock;
mod contract;
mod ending;
mod transfers;

pub(crate) use contract::contract_subject;

use std::num::NonZeroU32;
use std::sync::mpsc::Receiver;

use neph_model::{
    EchoTo, Ending, EventKind, ExperimentOrder, ExperimentResult, FleetMessage, FleetOutcome,
    FlowTraceOrder, Lifetime, OrderFailed, Parameter, Permit, Prepared, Progress, Records,
    ReflectorCaps, ReflectorSpec, Scenario, Span, TraceLimits, Wall, Warning,
};
use neph_probe::Reflector;
use neph_text::Source;

use super::*;
use crate::record_collector::RecordCollector;
use crate::running_experiment::{self, RunningExperiment};
use crate::{flows, trace};
use neph_campaign::expand::scenarios;
use neph_campaign::plan::parse;
use neph_probe::Placement;

/// The only scenario of a plan for `url`, with the plan's default sizes of 64 B.
fn scenario(url: &str) -> Scenario {
    let plan = format!(
        "version = 1\nname = \"p\"\ninterval = \"1ms\"\nmessages = 1\n\
         [[endpoint]]\nname = \"e\"\nurl = \"{url}\"\n"
    );
    let plan = parse(&Source::new("p.toml", plan)).expect("a good plan");
    scenarios(&plan).remove(0)
}

pub(crate) fn order(url: &str) -> ExperimentOrder {
    neph_model::executor::contract::order_of(scenario(url), Span::from_millis(10))
}

pub(crate) fn reflector() -> Reflector {
    let address = ([127, 0, 0, 1], 0).into();
    Reflector::start(&ReflectorSpec::at(address)).expect("a reflector")
}

/// What an executor reported of experiments, in the order's order.
pub(crate) struct Run {
    pub(crate) prepared: Vec<Result<Prepared, OrderFailed>>,
    pub(crate) results: Vec<Result<ExperimentResult, OrderFailed>>,
    /// What each measured.
    records: Vec<Records>,
}

impl Run {
    /// Of the only one.
    fn result(&self) -> &ExperimentResult {
        self.results[0].as_ref().expect("it ran")
    }

    fn fleet(&self) -> &[FleetMessage] {
        &self.records[0].fleet
    }
}

/// Adds what was measured since the last time.
pub(crate) fn append_records(records: &mut Records, mut new_records: Records) {
    records.messages.append(&mut new_records.messages);
    records.fleet.append(&mut new_records.fleet);
    records.events.append(&mut new_records.events);
    records.samples.append(&mut new_records.samples);
}

/// Has experiments carried out at the same time; cancels them when `enough` returns true.
pub(crate) fn carry_out(
    executor: &mut LocalExecutor,
    orders: &[ExperimentOrder],
    enough: &dyn Fn(Progress) -> bool,
) -> Run {
    let ticket = executor.submit(Order::Experiments(orders.to_vec()));
    let mut prepared = Vec::new();
    let mut records: Vec<Records> = orders.iter().map(|_| Records::default()).collect();
    loop {
        for (of, update) in executor.poll(Span::from_secs(1)).expect("it goes on") {
            assert_eq!(of, ticket);
            match update {
                Update::Prepared(results) => prepared = results,
                Update::Recorded(experiment, new_records) => {
                    let is_its = |order: &ExperimentOrder| order.experiment.id == experiment;
                    let index = orders.iter().position(is_its).expect("one of them");
                    append_records(&mut records[index], new_records);
                }
                Update::Progress(progress) if enough(progress) => executor.cancel(ticket),
                Update::Done(Ok(OrderResult::Experiments(results))) => {
                    return Run {
                        prepared,
                        results,
                        records,
                    };
                }
                Update::Progress(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn run(order: &ExperimentOrder) -> Run {
    let orders = std::slice::from_ref(order);
    carry_out(&mut LocalExecutor::new(), orders, &|_| false)
}

/// A desk, and what is reported to it.
pub(crate) fn context() -> (OrderContext, Receiver<(Ticket, Update)>) {
    let (sender, updates) = sync_channel(MAX_PENDING_UPDATES);
    (OrderContext::new(Ticket(0), sender), updates)
}

/// All that was measured of an experiment, of what was reported.
pub(crate) fn recorded(updates: &Receiver<(Ticket, Update)>) -> Records {
    let mut records = Records::default();
    for (_, update) in updates.try_iter() {
        if let Update::Recorded(_, new_records) = update {
            append_records(&mut records, new_records);
        }
    }
    records
}

#[test]
fn unanswerable_icmp_echo_is_one_event_per_target_and_one_warning() {
    let local_reflector = reflector();
    let mut order = order(&format!("ws://{}", local_reflector.address()));
    order.timeout = Span::from_secs(1);
    order.companion = Some(Span::from_millis(1));
    order.pings = vec![EchoTo {
        name: "typo".to_owned(),
        host: "no..host".to_owned(),
        interval: Span::from_millis(1),
    }];
    let mut ready = flows::ready(&order, None, &Permit::ANYTHING).expect("the main flow is fine");
    // A thread that cannot begin, as where ICMP is forbidden.
    ready.specs[1].site = Some(Placement::with_name("no-such-namespace"));
    let (context, updates) = context();
    let mut experiments = [RunningExperiment::begin(&order, ready, &context)];
    running_experiment::run(&mut experiments, &context);
    let [experiment] = experiments;
    let around = running_experiment::SharedContext::default();
    let outcome = experiment
        .expect("the main flow is fine")
        .end(&around, Vec::new());
    assert_eq!(outcome.ending, Ending::Complete);
    let records = recorded(&updates);
    let failed = records
        .events
        .iter()
        .filter(|e| e.kind == EventKind::SecondaryFlowFailed);
    let failed: Vec<(u32, &str)> = failed.map(|e| (e.flow.0, e.text.as_str())).collect();
    assert!(
        matches!(failed[..], [(0, typo), (1, e)] if typo.starts_with("no ICMP echo to typo: ")
            && e.starts_with("no ICMP echo to e: ")),
        "{failed:?}"
    );
    let echo = |warning: &&Warning| matches!(warning, Warning::EchoMissing { .. });
    let warned: Vec<&Warning> = outcome.warnings.iter().filter(echo).collect();
    assert!(
        matches!(warned[..], [Warning::EchoMissing { names, .. }] if names[..] == ["typo", "e"]),
        "{warned:?}"
    );
}

/// An order for a fleet of 16 flows that ask the local reflector 20 times each.
pub(crate) fn fleet_order(url: &str) -> ExperimentOrder {
    let mut order = order(url);
    let flows = NonZeroU32::new(16).expect("some");
    let lifetime = Lifetime(Span::from_millis(100));
    order
        .scenario
        .parameters
        .extend([Parameter::Flows(flows), Parameter::FlowLifetime(lifetime)]);
    order.scenario.interval = Span::from_millis(20);
    order.scenario.messages = 20;
    order.timeout = Span::from_millis(500);
    order
}

#[test]
fn a_fleet_replaces_the_main_flow_and_its_times_count_from_the_start() {
    let local_reflector = reflector();
    let order = fleet_order(&format!("udp://{}", local_reflector.address()));
    let ran = run(&order);
    let prepared = ran.prepared[0].as_ref().expect("a reflector is there");
    let fleet = prepared.fleet.as_ref().expect("a fleet");
    assert_eq!(
        (fleet.slots, fleet.endpoints[0].address),
        (16, local_reflector.address())
    );
    assert_eq!(fleet.lifetime, Some(Span::from_millis(100)));
    assert!(prepared.flows.is_empty(), "no companion was asked for");
    let result = ran.result();
    assert_eq!(result.ending, Ending::Complete);
    assert_eq!(result.late, Some(0));
    assert!(result.anchors.len() > 1 || result.anchors[0].0 == 0);
    let messages = ran.fleet();
    assert_eq!(messages.len(), 16 * 20);
    let replied = messages.iter().filter(|m| m.reply().is_some()).count();
    assert!(replied > 16 * 20 / 2, "{replied} replies");
    // The schedule is 400 ms long; the rest is starting up on a busy machine.
    let within = |m: &&FleetMessage| (0..5_000_000_000).contains(&m.sent.nanos());
    assert_eq!(messages.iter().filter(within).count(), messages.len());
    assert!(messages.iter().any(|m| m.seq == 0) && messages.iter().all(|m| m.seq < 6));
}

#[test]
fn a_stopped_fleet_keeps_messages_and_one_without_replies_fails() {
    let local_reflector = reflector();
    let mut order = fleet_order(&format!("udp://{}", local_reflector.address()));
    order.scenario.messages = 100_000;
    let mut executor = LocalExecutor::new();
    let ran = carry_out(&mut executor, &[order], &|progress| {
        progress.elapsed > Span::from_millis(300)
    });
    assert_eq!(ran.result().ending, Ending::Interrupted);
    assert!(!ran.fleet().is_empty());

    let closed_socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = closed_socket.local_addr().expect("bound");
    let mut order = fleet_order(&format!("udp://{address}"));
    order.timeout = Span::from_millis(50);
    let ran = carry_out(&mut executor, &[order], &|_| false);
    assert!(
        matches!(&ran.result().ending, Ending::Failed(reason) if reason.contains("320 messages")),
        "{:?}",
        ran.result()
    );
    assert!(ran.fleet().iter().all(|m| m.outcome == FleetOutcome::Lost));
}

#[test]
fn the_flows_of_a_fleet_are_traced_with_their_last_ports() {
    let local_reflector = reflector();
    let mut order = fleet_order(&format!("udp://{}", local_reflector.address()));
    order.trace = Some(FlowTraceOrder {
        flows: 3,
        limits: TraceLimits {
            max_hops: 4,
            queries: 1,
        },
    });
    let ran = run(&order);
    let mut last = std::collections::BTreeMap::new();
    for message in ran.fleet() {
        last.insert(message.slot, message.source_port);
    }
    let trace = ran
        .result()
        .trace
        .as_ref()
        .expect("over loopback nothing is in the way");
    assert_eq!(trace.destination, local_reflector.address());
    let traced = trace.routes.iter();
    let traced: Vec<(u16, usize, bool)> = traced
        .map(|route| (route.source_port, route.hops.len(), route.reached()))
        .collect();
    let mut expected: Vec<_> = last.values().take(3).map(|port| (*port, 1, true)).collect();
    expected.sort_unstable();
    assert_eq!(traced, expected);
}

#[test]
fn a_failed_trace_is_an_event_and_keeps_the_measurement() {
    let local_reflector = reflector();
    let mut order = fleet_order(&format!("udp://{}", local_reflector.address()));
    order.trace = Some(FlowTraceOrder {
        flows: 1024,
        limits: TraceLimits {
            max_hops: 4,
            queries: 1,
        },
    });
    let mut ready = flows::ready(&order, None, &Permit::ANYTHING).expect("a reflector is there");
    let mut collector = RecordCollector::new(ready.origin).with_traced_slots(1024);
    ready.site = Some(Placement::with_name("no-such-namespace"));
    let traced = trace::trace_routes(&order, &ready, &mut collector, &Stop::new());
    assert_eq!(traced, None);
    let event = &collector.records().events[0];
    assert_eq!(event.kind, EventKind::SecondaryFlowFailed);
    assert!(
        event
            .text
            .starts_with("the routes of the flows are not known: "),
        "{}",
        event.text
    );
}

#[test]
fn fleets_run_concurrently_and_a_failure_does_not_affect_the_others() {
    let local_reflectors = [reflector(), reflector()];
    let closed_socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let silent = closed_socket.local_addr().expect("bound");
    let mut orders: Vec<ExperimentOrder> = [
        local_reflectors[0].address(),
        silent,
        local_reflectors[1].address(),
    ]
    .map(|address| fleet_order(&format!("udp://{address}")))
    .into();
    orders[1].timeout = Span::from_millis(50);
    let ran = carry_out(&mut LocalExecutor::new(), &orders, &|_| false);
    let started: Vec<Wall> = ran
        .prepared
        .iter()
        .map(|prepared| prepared.as_ref().expect("silence is not refused").started)
        .collect();
    assert_eq!(started, [started[0]; 3], "one moment for all");
    let (results, records) = (ran.results, ran.records);
    let endings = results
        .into_iter()
        .map(|result| result.expect("it ran").ending);
    let endings: Vec<Ending> = endings.collect();
    assert!(
        matches!(
            &endings[..],
            [Ending::Complete, Ending::Failed(_), Ending::Complete]
        ),
        "{endings:?}"
    );
    assert!(records.iter().all(|records| records.fleet.len() == 16 * 20));
    // Each begins before another could have ended its 400 ms.
    let first = |records: &Records| records.fleet.iter().map(|m| m.sent.nanos()).min();
    let last = |records: &Records| records.fleet.iter().map(|m| m.sent.nanos()).max();
    let latest_begin = records.iter().filter_map(first).max();
    let earliest_end = records.iter().filter_map(last).min();
    assert!(
        latest_begin < earliest_end,
        "{latest_begin:?} {earliest_end:?}"
    );
}

/// A reflector that answers 100 messages a second.
fn limited_reflector() -> Reflector {
    let caps = ReflectorCaps {
        messages_per_second: 100,
        ..ReflectorCaps::default()
    };
    let spec = ReflectorSpec::at(([127, 0, 0, 1], 0).into());
    Reflector::start(&ReflectorSpec { caps, ..spec }).expect("a reflector")
}

#[test]
fn a_warning_counts_the_messages_a_reflector_refused_to_a_fleet() {
    let local_reflector = limited_reflector();
    // The second time only what was refused meanwhile counts.
    for _ in 0..2 {
        let order = fleet_order(&format!("udp://{}", local_reflector.address()));
        let ran = run(&order);
        let result = ran.result();
        let lost = ran
            .fleet()
            .iter()
            .filter(|message| message.reply().is_none())
            .count();
        let refused = result.warnings.iter().find_map(|warning| match warning {
            Warning::MessagesRefused {
                messages,
                per_second: 100,
            } => usize::try_from(*messages).ok(),
            _ => None,
        });
        assert_eq!(refused, Some(lost), "{:?}", result.warnings);
    }
}

#[test]
fn fleets_of_one_reflector_each_report_its_refusals_once() {
    let local_reflector = limited_reflector();
    let orders = [(); 2].map(|()| fleet_order(&format!("udp://{}", local_reflector.address())));
    let ran = carry_out(&mut LocalExecutor::new(), &orders, &|_| false);
    let (results, records) = (ran.results, ran.records);
    let lost = records.iter().flat_map(|records| &records.fleet);
    let lost = lost.filter(|message| message.reply().is_none()).count() as u64;
    for result in results {
        let warnings = result.expect("it can be").warnings;
        let refused: Vec<u64> = warnings
            .iter()
            .filter_map(|warning| match warning {
                Warning::MessagesRefused { messages, .. } => Some(*messages),
                _ => None,
            })
            .collect();
        assert_eq!(refused, [lost]);
    }
}
