use neph_model::{
    CampaignId, Event, EventKind, Experiment, ExperimentId, ExperimentStatus, Message, Sample,
    Scenario, Span, Tally, Wall,
};
use neph_probe::{Reflector, ReflectorSpec};
use neph_store::StoreError;
use neph_text::Source;

use super::*;
use crate::carrier::StopFlag;
use crate::expand::scenarios;
use crate::plan::{Ping, parse};

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
        experiment: Experiment {
            id: ExperimentId::new(),
            campaign: CampaignId::new(),
            scenario: scenario.id,
            block: 0,
            position: 0,
            attempt: 0,
            status: ExperimentStatus::Running,
            reason: None,
            started: Wall::from_unix_nanos(0),
            ended: None,
            flows: Vec::new(),
            fleet: None,
            tally: Tally::default(),
            warnings: Vec::new(),
            anchors: Vec::new(),
        },
        scenario,
        site: None,
        reflector: false,
        timeout: Span::from_millis(10),
        companion: None,
        pings: Vec::new(),
        stop: StopFlag::default(),
    }
}

pub(super) fn reflector() -> Reflector {
    let here = ([127, 0, 0, 1], 0).into();
    Reflector::start(&ReflectorSpec::at(here)).expect("a reflector")
}

/// Keeps the events.
#[derive(Debug, Default)]
struct Told(Vec<Event>);

impl Recorder for Told {
    fn experiment(&self) -> ExperimentId {
        ExperimentId::new()
    }
    fn messages(&mut self, _: &[Message]) -> Result<(), StoreError> {
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
    carrier.prepare(&order).expect("the main flow is fine");
    let ready = carrier.ready.as_mut().expect("prepared");
    // A thread that cannot begin, as where ICMP is forbidden.
    ready.specs[1].site = Some(Place::named("no-such-namespace"));
    let mut told = Told::default();
    let whole = carrier
        .carry_out(&order, &mut told, &|_| {})
        .expect("the main flow is fine");
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
