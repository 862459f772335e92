//! What a report says of the alarms of a plan.

use neph_model::{Event, EventKind, FlowIndex};
use neph_report::{PlotSettings, findings};

use crate::synthetic;

#[test]
fn an_alarm_is_told_with_its_rule_and_when_it_was_raised_first() {
    let mut data = synthetic::one();
    let rule = "round_trip > 2ms p99 for 30s";
    let events = [
        (5, EventKind::AlarmRaised),
        (9, EventKind::AlarmOver),
        (12, EventKind::AlarmRaised),
    ];
    let events = events.map(|(second, kind)| Event {
        flow: FlowIndex(0),
        at: second * 1_000_000_000,
        kind,
        text: format!("{rule}; of the last 300 round trips, 9 took longer than 2.00 ms"),
    });
    data.experiments[0].events.extend(events);
    let spans = [(5_000_000_000, Some(9_000_000_000)), (12_000_000_000, None)];
    assert_eq!(data.experiments[0].alarms(), spans);
    let found = findings(&data, &PlotSettings::default());
    let alarms: Vec<_> = found.iter().filter(|one| one.topic == "alarm").collect();
    assert_eq!(alarms.len(), 1);
    let told = &alarms[0].text;
    let part = format!("The alarm \"{rule}\" was raised 2 times, in 1 experiment; first 5 s after");
    assert!(told.starts_with(&part), "{told}");
}
