//! A fleet that runs without an order: turns its reports into records.

use std::num::{NonZeroU16, NonZeroU32};

use neph_model::{
    Anchor, Ending, ExperimentResult, Fleet, FleetEndpoint, HostFacts, Lifetime, Local, Parameter,
    Records, Scenario, ScenarioId, Target, Targets, Warning,
};
use neph_probe::{FleetReport, FleetSpec, Refusals};

use crate::cores::LoadMeter;
use crate::provenance::host_facts_at_site;
use crate::record_collector::RecordCollector;
use crate::reflector_refusals;

/// Takes in what a fleet reports.
#[derive(Debug)]
pub struct FleetRecordCollector {
    collector: RecordCollector,
    /// What the caps of reflectors refused to it.
    refused: Vec<Warning>,
    host: HostFacts,
    load: LoadMeter,
}

impl FleetRecordCollector {
    /// The fleet begins. Local timestamps count from `origin`, which is not later than its first message.
    pub fn begin(spec: &FleetSpec, origin: Anchor<Local>) -> Self {
        Self {
            collector: RecordCollector::new(origin),
            refused: Vec::new(),
            // What could not be read is left empty, as everywhere in a provenance.
            host: host_facts_at_site(spec.site.as_ref()).unwrap_or_default(),
            load: LoadMeter::begin(),
        }
    }

    /// Takes in a report of the fleet.
    pub fn take(&mut self, report: FleetReport) {
        self.collector.one_of_fleet(report);
    }

    /// Takes note of what the caps of one of its reflectors refused.
    pub fn add_refusals(&mut self, refusals: &Refusals) {
        self.refused
            .extend(reflector_refusals::refusal_warnings(refusals));
    }

    /// What was taken in since the last time.
    pub fn records(&mut self) -> Records {
        self.collector.records()
    }

    /// The result. A fleet without any reply has failed, for any `ending`.
    pub fn end(mut self, ending: Ending) -> ExperimentResult {
        let ending = match ending {
            Ending::Complete => self.collector.verdict(),
            other => other,
        };
        let mut warnings = self.collector.warnings();
        warnings.append(&mut self.refused);
        ExperimentResult {
            trace: None,
            ending,
            ended: neph_probe::anchor().wall,
            flows: Vec::new(),
            quantities: None,
            late: self.collector.fleet().map(|tally| tally.late),
            warnings,
            anchors: self.collector.into_anchors(),
            host: self.host,
            load: self.load.load(),
        }
    }
}

/// What a plan would fix, without its identity. A fleet that runs until it is stopped has 0 messages.
pub fn scenario_of(spec: &FleetSpec) -> Scenario {
    let fleet = &spec.fleet;
    let names: Vec<&str> = fleet
        .endpoints
        .iter()
        .map(|endpoint| endpoint.name.as_str())
        .collect();
    let flows = NonZeroU32::new(fleet.slots).map(Parameter::Flows);
    let lifetime = fleet
        .lifetime
        .map(|life| Parameter::FlowLifetime(Lifetime(life)));
    let port = spec.first_port.and_then(NonZeroU16::new);
    let optional = [flows, lifetime, port.map(Parameter::SourcePort)];
    let timeout = Parameter::Timeout(spec.timeout);
    let parameters = optional.into_iter().flatten().chain([timeout]).collect();
    Scenario {
        id: ScenarioId(0),
        index: 0,
        endpoint: names.join(", "),
        target: targets(fleet),
        interval: fleet.interval,
        request_size: spec.sent_size(),
        response_size: spec.asked_size(),
        messages: spec.count.unwrap_or(0),
        parameters,
        varied: Vec::new(),
    }
}

/// Where its endpoints are, as they were named.
fn targets(fleet: &Fleet) -> Targets {
    let target_of = |endpoint: &FleetEndpoint| {
        let url = format!("{}://{}", fleet.probe, endpoint.name);
        Target::parse(&endpoint.name).or_else(|_| Target::parse(&url))
    };
    let targets = fleet.endpoints.iter().map(target_of);
    let targets: Result<Vec<String>, _> = targets
        .map(|target| target.map(|target| target.written()))
        .collect();
    let text = targets.map_or_else(|error| error.text, |targets| targets.join(" "));
    Targets::read(&text, fleet.probe)
}

#[cfg(test)]
mod tests {
    use neph_model::{
        Criteria, FleetMessage, FleetOutcome, FleetReply, Permit, ProbeKind, ReadBy, Slot, Span,
    };
    use neph_probe::{FleetTally, Priority};

    use super::*;

    fn spec() -> FleetSpec {
        let endpoint = |name: &str| FleetEndpoint {
            name: name.to_owned(),
            address: ([192, 0, 2, 1], 862).into(),
        };
        FleetSpec {
            fleet: Fleet {
                probe: ProbeKind::Udp,
                slots: 4,
                endpoints: vec![endpoint("udp://a"), endpoint("b")],
                interval: Span::from_millis(100),
                lifetime: None,
                criteria: Some(Criteria::after(Span::from_secs(1))),
            },
            count: Some(2),
            request_size: 64,
            response_size: 64,
            timeout: Span::from_secs(1),
            first_port: None,
            rate_cap: 1000,
            permit: Permit::ANYTHING,
            key: None,
            priority: Priority::Normal,
            site: None,
            sharing: None,
        }
    }

    fn replied() -> FleetOutcome {
        FleetOutcome::Reply(FleetReply {
            round_trip: Span::from_millis(7),
            read_by: ReadBy::Kernel,
            peer_report: None,
            ttl: None,
            copies: 0,
            answer: None,
        })
    }

    /// Eight messages, the first 5 ms after the origin, with that outcome.
    fn collector_after(outcome: FleetOutcome) -> FleetRecordCollector {
        let origin = neph_probe::anchor();
        let mut collector = FleetRecordCollector::begin(&spec(), origin);
        let message = |n: u32| FleetMessage {
            slot: Slot(n % 4),
            source_port: 10_000,
            seq: n / 4,
            sent: origin.at + Span::from_millis(5),
            late: Span::from_micros(3),
            outcome,
        };
        collector.take(FleetReport::Messages((0..8).map(message).collect()));
        collector.take(FleetReport::Ended(FleetTally {
            sent: 8,
            replies: if outcome == FleetOutcome::Lost { 0 } else { 8 },
            late: 1,
            dropped_here: 2,
            ..FleetTally::default()
        }));
        collector
    }

    #[test]
    fn message_times_count_from_the_origin_and_messages_are_recorded_once() {
        let mut collector = collector_after(replied());
        let records = collector.records();
        assert_eq!(records.fleet.len(), 8);
        assert!(
            records
                .fleet
                .iter()
                .all(|message| message.sent.nanos() == 5_000_000)
        );
        assert!(collector.records().fleet.is_empty());
    }

    #[test]
    fn drops_and_refusals_are_warnings_and_no_reply_is_a_failure() {
        let mut collector = collector_after(replied());
        collector.add_refusals(&Refusals {
            messages: 3,
            messages_per_second: 10,
            ..Refusals::default()
        });
        let result = collector.end(Ending::Complete);
        assert_eq!((result.ending, result.late), (Ending::Complete, Some(1)));
        let expected = [
            Warning::DroppedHere { packets: 2 },
            Warning::MessagesRefused {
                messages: 3,
                per_second: 10,
            },
        ];
        assert_eq!(result.warnings, expected);
        let result = collector_after(FleetOutcome::Lost).end(Ending::Complete);
        assert!(matches!(result.ending, Ending::Failed(_)), "{result:?}");
    }

    #[test]
    fn a_scenario_names_its_targets_with_the_scheme() {
        let scenario = scenario_of(&spec());
        let targets = scenario.target.as_slice();
        assert!(targets.iter().all(|target| target.kind() == ProbeKind::Udp));
        let hosts: Vec<&str> = targets.iter().map(Target::host).collect();
        assert_eq!(hosts, ["a", "b"]);
        assert_eq!(scenario.messages, 2);
    }
}
