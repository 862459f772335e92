//! What a report says of the alarms of a plan.

use neph_analysis::{CampaignData, Diagnoses, PlotSettings, findings};
use neph_model::{Event, EventKind, FlowIndex, Wall};
use neph_report::text;

use crate::synthetic::{self, CONTINENT, METRO};

const RULE: &str = "round_trip > 2ms p99 for 30s";

fn event(second: i64, kind: EventKind) -> Event {
    Event {
        flow: FlowIndex(0),
        at: second * 1_000_000_000,
        kind,
        text: format!("{RULE}; of the last 300 round trips, 9 took longer than 2.00 ms"),
    }
}

#[test]
fn an_alarm_is_reported_with_its_rule_count_and_first_time() {
    let mut data = synthetic::one_experiment();
    let events = [
        (5, EventKind::AlarmRaised),
        (9, EventKind::AlarmOver),
        (12, EventKind::AlarmRaised),
    ];
    let events = events.map(|(second, kind)| event(second, kind));
    data.experiments[0].events.extend(events);
    let spans = [(5_000_000_000, Some(9_000_000_000)), (12_000_000_000, None)];
    assert_eq!(data.experiments[0].alarms(), spans);
    let findings = findings(&data, &PlotSettings::default());
    let alarms: Vec<_> = findings
        .iter()
        .filter(|finding| finding.topic == "alarm")
        .collect();
    assert_eq!(alarms.len(), 1);
    let actual = &alarms[0].text;
    let part = format!("The alarm \"{RULE}\" was raised 2 times, in 1 experiment; first 5 s after");
    assert!(actual.starts_with(&part), "{actual}");
}

#[test]
fn the_first_alarm_is_the_one_that_was_raised_first_whatever_the_plan_s_order() {
    let mut data = synthetic::campaign_over(&[METRO, CONTINENT], 1);
    // The plan's second scenario was measured first.
    for (index, after, second) in [(0, 60, 1), (1, 0, 7)] {
        let experiment = &mut data.experiments[index];
        experiment
            .events
            .push(event(second, EventKind::AlarmRaised));
        experiment.experiment.position = u32::from(after > 0);
        let started = experiment.experiment.started.unix_nanos() + after * 1_000_000_000;
        experiment.experiment.started = Wall::from_unix_nanos(started);
    }
    let first = |data: &CampaignData| {
        let findings = findings(data, &PlotSettings::default());
        let alarm = findings
            .into_iter()
            .find(|finding| finding.topic == "alarm");
        alarm.expect("alarms were raised").text
    };
    let actual = first(&data);
    assert!(
        actual.contains("first 7 s after the beginning of block 1 of 'continent"),
        "{actual}"
    );
    // Where nobody's clock tells, the order in which they were carried out does.
    for experiment in &mut data.experiments {
        experiment.experiment.started = data.campaign.started;
    }
    assert_eq!(first(&data), actual);
}

#[test]
fn a_terminal_report_contains_every_violated_alarm_rule() {
    const OTHER: &str = "network > 1ms p50 for 5s";
    let mut data = synthetic::one_experiment();
    let mut other_event = event(7, EventKind::AlarmRaised);
    other_event.text = other_event.text.replace(RULE, OTHER);
    let events = [event(5, EventKind::AlarmRaised), other_event];
    data.experiments[0].events.extend(events);
    let settings = PlotSettings::default();
    let actual = text(&data, &settings, &Diagnoses::default(), 200);
    for rule in [RULE, OTHER] {
        assert!(
            actual.contains(&format!("alarm \"{rule}\" was raised")),
            "{actual}"
        );
    }
}
