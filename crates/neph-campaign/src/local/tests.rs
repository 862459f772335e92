use neph_model::{
    CampaignId, Event, EventKind, Experiment, ExperimentId, FleetMessage, FleetOutcome, Lifetime,
    Message, Parameter, Sample, Scenario, Span, Wall, Warning,
};
use neph_probe::{Caps, Reflector, ReflectorSpec};
use neph_store::{Recorder, StoreError};
use neph_text::Source;
use std::num::NonZeroU32;

use super::intake::Intake;
use super::*;
use crate::carrier::Ending;
use crate::expand::scenarios;
use crate::plan::{FlowTracePlan, Ping, parse};

/// The only scenario of a plan for `url`, with the plan's default sizes of 64 B.
fn scenario(url: &str) -> Scenario {
    let plan = format!(
        "version = 1\nname = \"p\"\ninterval = \"1ms\"\nmessages = 1\n\
         [[endpoint]]\nname = \"e\"\nurl = \"{url}\"\n"
    );
    let plan = parse(&Source::new("p.toml", plan)).expect("a good plan");
    scenarios(&plan).remove(0)
}

pub(super) fn order(url: &str) -> ExperimentOrder {
    let scenario = scenario(url);
    ExperimentOrder {
        experiment: Experiment::begun(CampaignId::new(), scenario.id, Wall::from_unix_nanos(0)),
        scenario,
        site: None,
        reflector: false,
        last_address: None,
        timeout: Span::from_millis(10),
        companion: None,
        pings: Vec::new(),
        trace: None,
        stop: neph_probe::Stop::new(),
    }
}

pub(super) fn reflector() -> Reflector {
    let here = ([127, 0, 0, 1], 0).into();
    Reflector::start(&ReflectorSpec::at(here)).expect("a reflector")
}

/// Prepares one experiment.
pub(super) fn prepare(
    carrier: &mut LocalCarrier,
    order: &ExperimentOrder,
) -> Result<Prepared, CarryError> {
    carrier.prepare(&[order]).remove(0)
}

/// Carries one experiment out.
fn carry_out(
    carrier: &mut LocalCarrier,
    order: &ExperimentOrder,
    recorder: &mut Told,
    progress: &dyn Fn(Progress),
) -> Result<Carried, CarryError> {
    carrier
        .carry_out(&mut [Part { order, recorder }], progress)
        .remove(0)
}

/// Keeps the events and a fleet's messages.
#[derive(Debug, Default)]
pub(super) struct Told(Vec<Event>, Vec<FleetMessage>);

impl Recorder for Told {
    fn experiment(&self) -> ExperimentId {
        ExperimentId::new()
    }
    fn messages(&mut self, _: &[Message]) -> Result<(), StoreError> {
        Ok(())
    }
    fn fleet(&mut self, messages: &[FleetMessage]) -> Result<(), StoreError> {
        self.1.extend_from_slice(messages);
        Ok(())
    }
    fn event(&mut self, event: &Event) -> Result<(), StoreError> {
        self.0.push(event.clone());
        Ok(())
    }
    fn sample(&mut self, _: &Sample) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn echo_that_does_not_go_is_an_event_each_and_one_warning() {
    let ours = reflector();
    let mut order = order(&format!("ws://{}", ours.address()));
    order.timeout = Span::from_secs(1);
    order.companion = Some(Span::from_millis(1));
    order.pings = vec![Ping {
        name: "typo".to_owned(),
        host: "no..host".to_owned(),
        interval: Span::from_millis(1),
        written_at: 0..0,
    }];
    let mut carrier = LocalCarrier::new();
    prepare(&mut carrier, &order).expect("the main flow is fine");
    let ready = &mut carrier.ready[0].1;
    // A thread that cannot begin, as where ICMP is forbidden.
    ready.specs[1].site = Some(Place::named("no-such-namespace"));
    let mut told = Told::default();
    let whole = carry_out(&mut carrier, &order, &mut told, &|_| {}).expect("the main flow is fine");
    assert_eq!(whole.ending, Ending::Complete);
    let failed = told.0.iter().filter(|e| e.kind == EventKind::FlowFailed);
    let failed: Vec<(u32, &str)> = failed.map(|e| (e.flow.0, e.text.as_str())).collect();
    assert!(
        matches!(failed[..], [(0, typo), (1, e)] if typo.starts_with("no ICMP echo to typo: ")
            && e.starts_with("no ICMP echo to e: ")),
        "{failed:?}"
    );
    let echo = |warning: &&Warning| matches!(warning, Warning::EchoMissing { .. });
    let warned: Vec<&Warning> = whole.warnings.iter().filter(echo).collect();
    assert!(
        matches!(warned[..], [Warning::EchoMissing { names, .. }] if names[..] == ["typo", "e"]),
        "{warned:?}"
    );
}

/// An order for a fleet of 16 flows that ask our reflector 20 times each.
pub(super) fn fleet_order(url: &str) -> ExperimentOrder {
    let mut order = order(url);
    let flows = NonZeroU32::new(16).expect("some");
    let renewal = Lifetime(Span::from_millis(100));
    order
        .scenario
        .parameters
        .extend([Parameter::Flows(flows), Parameter::Renewal(renewal)]);
    order.scenario.interval = Span::from_millis(20);
    order.scenario.messages = 20;
    order.timeout = Span::from_millis(500);
    order
}

#[test]
fn a_fleet_runs_in_the_place_of_a_main_flow_and_its_messages_count_from_the_start() {
    let ours = reflector();
    let order = fleet_order(&format!("udp://{}", ours.address()));
    let mut carrier = LocalCarrier::new();
    let prepared = prepare(&mut carrier, &order).expect("a reflector is there");
    let fleet = prepared.fleet.expect("a fleet");
    assert_eq!(
        (fleet.lanes, fleet.endpoints[0].address),
        (16, ours.address())
    );
    assert_eq!(fleet.renewal, Some(Span::from_millis(100)));
    assert!(prepared.flows.is_empty(), "no companion was asked for");
    let mut told = Told::default();
    let whole = carry_out(&mut carrier, &order, &mut told, &|_| {}).expect("a fleet that can be");
    assert_eq!(whole.ending, Ending::Complete);
    assert_eq!(whole.late, Some(0));
    assert!(whole.anchors.len() > 1 || whole.anchors[0].0 == 0);
    let messages = told.1;
    assert_eq!(messages.len(), 16 * 20);
    let replied = messages.iter().filter(|m| m.reply().is_some()).count();
    assert!(replied > 16 * 20 / 2, "{replied} replies");
    // The schedule is 400 ms long; the rest is starting up on a busy machine.
    let within = |m: &&FleetMessage| (0..5_000_000_000).contains(&m.sent.nanos());
    assert_eq!(messages.iter().filter(within).count(), messages.len());
    assert!(messages.iter().any(|m| m.seq == 0) && messages.iter().all(|m| m.seq < 6));
}

#[test]
fn a_fleet_that_is_stopped_keeps_what_it_measured_and_one_without_a_reply_has_failed() {
    let ours = reflector();
    let mut order = fleet_order(&format!("udp://{}", ours.address()));
    order.scenario.messages = 100_000;
    let mut carrier = LocalCarrier::new();
    prepare(&mut carrier, &order).expect("a reflector is there");
    let mut told = Told::default();
    let stop = order.stop.clone();
    let whole = carry_out(&mut carrier, &order, &mut told, &|progress| {
        if progress.elapsed > Span::from_millis(300) {
            stop.set();
        }
    })
    .expect("a fleet that can be");
    assert_eq!(whole.ending, Ending::Interrupted);
    assert!(!told.1.is_empty());

    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = nobody.local_addr().expect("bound");
    let mut order = fleet_order(&format!("udp://{address}"));
    order.timeout = Span::from_millis(50);
    prepare(&mut carrier, &order).expect("silence is not refused");
    let mut told = Told::default();
    let whole = carry_out(&mut carrier, &order, &mut told, &|_| {}).expect("a fleet that can be");
    assert!(
        matches!(&whole.ending, Ending::Failed(why) if why.contains("320 messages")),
        "{whole:?}"
    );
    assert!(told.1.iter().all(|m| m.outcome == FleetOutcome::Lost));
}

#[test]
fn the_flows_of_a_fleet_are_traced_with_the_ports_that_they_had_last() {
    let ours = reflector();
    let mut order = fleet_order(&format!("udp://{}", ours.address()));
    order.trace = Some(FlowTracePlan {
        flows: 3,
        max_hops: 4,
        queries: 1,
    });
    let mut carrier = LocalCarrier::new();
    prepare(&mut carrier, &order).expect("a reflector is there");
    let mut told = Told::default();
    let whole = carry_out(&mut carrier, &order, &mut told, &|_| {}).expect("a fleet that can be");
    let mut last = std::collections::BTreeMap::new();
    for message in &told.1 {
        last.insert(message.lane, message.source_port);
    }
    let trace = whole.trace.expect("over loopback nothing is in the way");
    assert_eq!(trace.destination, ours.address());
    let traced = trace.routes.iter();
    let traced: Vec<(u16, usize, bool)> = traced
        .map(|route| (route.source_port, route.hops.len(), route.reached()))
        .collect();
    let mut expected: Vec<_> = last.values().take(3).map(|port| (*port, 1, true)).collect();
    expected.sort_unstable();
    assert_eq!(traced, expected);
}

#[test]
fn a_trace_that_cannot_be_is_an_event_and_the_measurement_stands() {
    let ours = reflector();
    let mut order = fleet_order(&format!("udp://{}", ours.address()));
    order.trace = Some(FlowTracePlan {
        flows: 1024,
        max_hops: 4,
        queries: 1,
    });
    let mut carrier = LocalCarrier::new();
    prepare(&mut carrier, &order).expect("a reflector is there");
    let ready = &mut carrier.ready[0].1;
    let mut told = Told::default();
    let mut intake = Intake::new(ready.origin).tracing(1024);
    ready.site = Some(Place::named("no-such-namespace"));
    let traced = trace::routes(&order, ready, (&mut intake, &mut told)).expect("recorded");
    assert_eq!(traced, None);
    let event = &told.0[0];
    assert_eq!(event.kind, EventKind::FlowFailed);
    assert!(
        event
            .text
            .starts_with("the routes of the flows are not known: "),
        "{}",
        event.text
    );
}

#[test]
fn fleets_run_at_the_same_time_and_one_that_fails_leaves_the_others_alone() {
    let ours = [reflector(), reflector()];
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let silent = nobody.local_addr().expect("bound");
    let mut orders: Vec<ExperimentOrder> = [ours[0].address(), silent, ours[1].address()]
        .map(|address| fleet_order(&format!("udp://{address}")))
        .into();
    orders[1].timeout = Span::from_millis(50);
    let mut carrier = LocalCarrier::new();
    let prepared = carrier.prepare(&orders.iter().collect::<Vec<_>>());
    let started: Vec<Wall> = prepared
        .iter()
        .map(|one| one.as_ref().expect("silence is not refused").started)
        .collect();
    assert_eq!(started, [started[0]; 3], "one moment for all");
    let mut told = [(); 3].map(|()| Told::default());
    let mut parts: Vec<Part<'_>> = orders
        .iter()
        .zip(&mut told)
        .map(|(order, recorder)| Part { order, recorder })
        .collect();
    let all = carrier.carry_out(&mut parts, &|_| {});
    let endings = all.into_iter().map(|one| one.expect("it ran").ending);
    let endings: Vec<Ending> = endings.collect();
    assert!(
        matches!(
            &endings[..],
            [Ending::Complete, Ending::Failed(_), Ending::Complete]
        ),
        "{endings:?}"
    );
    assert!(told.iter().all(|told| told.1.len() == 16 * 20));
    // Each begins before another could have ended its 400 ms.
    let first = |told: &Told| told.1.iter().map(|m| m.sent.nanos()).min();
    let last = |told: &Told| told.1.iter().map(|m| m.sent.nanos()).max();
    let latest_begin = told.iter().filter_map(first).max();
    let earliest_end = told.iter().filter_map(last).min();
    assert!(
        latest_begin < earliest_end,
        "{latest_begin:?} {earliest_end:?}"
    );
}

/// A reflector that answers 100 messages a second.
fn miserly() -> Reflector {
    let caps = Caps {
        messages_per_second: 100,
        ..Caps::default()
    };
    let spec = ReflectorSpec::at(([127, 0, 0, 1], 0).into());
    Reflector::start(&ReflectorSpec { caps, ..spec }).expect("a reflector")
}

#[test]
fn what_the_caps_of_a_reflector_refused_to_a_fleet_is_a_warning() {
    let ours = miserly();
    let mut carrier = LocalCarrier::new();
    // The second time only what was refused meanwhile counts.
    for _ in 0..2 {
        let order = fleet_order(&format!("udp://{}", ours.address()));
        prepare(&mut carrier, &order).expect("a reflector is there");
        let mut told = Told::default();
        let whole = carry_out(&mut carrier, &order, &mut told, &|_| {}).expect("it can be");
        let lost = told.1.iter().filter(|one| one.reply().is_none()).count();
        let refused = whole.warnings.iter().find_map(|warning| match warning {
            Warning::MessagesRefused {
                messages,
                per_second: 100,
            } => usize::try_from(*messages).ok(),
            _ => None,
        });
        assert_eq!(refused, Some(lost), "{:?}", whole.warnings);
    }
}

#[test]
fn fleets_that_ask_one_reflector_at_the_same_time_are_told_once_each_what_it_refused_to_both() {
    let ours = miserly();
    let orders = [(); 2].map(|()| fleet_order(&format!("udp://{}", ours.address())));
    let mut carrier = LocalCarrier::new();
    for prepared in carrier.prepare(&orders.each_ref()) {
        prepared.expect("a reflector is there");
    }
    let mut told = [(); 2].map(|()| Told::default());
    let parts = orders.iter().zip(&mut told);
    let mut parts: Vec<Part<'_>> = parts
        .map(|(order, recorder)| Part { order, recorder })
        .collect();
    let all = carrier.carry_out(&mut parts, &|_| {});
    let lost = told.iter().flat_map(|told| &told.1);
    let lost = lost.filter(|one| one.reply().is_none()).count() as u64;
    for one in all {
        let warnings = one.expect("it can be").warnings;
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
