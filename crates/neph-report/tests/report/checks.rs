//! What is said of a link beside its throughput checks.

use neph_analysis::{CampaignData, Finding, PlotSettings, findings, tables};
use neph_model::{BitRate, Instant, Span};

use crate::synthetic;

fn capacity_findings(data: &CampaignData) -> Vec<Finding> {
    let findings = findings(data, &PlotSettings::default()).into_iter();
    findings
        .filter(|finding| finding.topic == "throughput")
        .collect()
}

/// Replies to home come one behind the other, as fast as its uplink takes 100 KiB.
fn campaign_with_full_uplink() -> CampaignData {
    const TRANSMISSION_TIME: Span = Span::from_millis(290);
    let mut data = synthetic::twelve_scenarios();
    let scenarios = &data.scenarios;
    let uplink_experiments = data.experiments.iter_mut().filter(|experiment| {
        let scenario = &scenarios[experiment.scenario];
        scenario.endpoint == "home" && scenario.request_size.bytes() == 102_400
    });
    for experiment in uplink_experiments {
        let mut free = Instant::from_nanos(0);
        for message in &mut experiment.flows[0].exchanges {
            free = free.max(message.intended) + TRANSMISSION_TIME;
            message.response = message.response.map(|_| free - message.intended);
        }
    }
    data
}

#[test]
fn a_home_uplink_that_is_too_narrow_is_named() {
    let findings = capacity_findings(&campaign_with_full_uplink());
    let words = "'home · every 100 ms · 100 KiB' needs 290 % of its link: 8.19 Mbit/s of the \
                 2.82 Mbit/s that the throughput checks found. Its messages wait for each other";
    assert!(findings[0].text.starts_with(words), "{findings:?}");
}

#[test]
fn traffic_within_capacity_has_no_overload_finding() {
    // As before, but every message is answered as soon as if it were alone.
    let findings = capacity_findings(&synthetic::twelve_scenarios());
    assert!(
        findings
            .iter()
            .all(|finding| !finding.text.contains("home")),
        "{findings:?}"
    );
}

/// Continent's check of the last block lost nothing and met no queue.
fn campaign_with_short_check() -> CampaignData {
    let mut data = synthetic::twelve_scenarios();
    let checks = data.throughputs.iter_mut();
    let last = checks.rev().find(|check| check.endpoint == "continent");
    let last = last.expect("one in each block");
    last.goodput = BitRate(last.goodput.bits_per_second() / 4);
    for second in &mut last.seconds {
        second.retransmissions = 0;
    }
    data
}

#[test]
fn a_check_that_ended_early_reports_a_lower_bound() {
    let mut data = campaign_with_short_check();
    let findings = capacity_findings(&data);
    let has_cross_flows = |finding: &Finding| finding.evidence.contains_key("cross_flows");
    assert!(!findings.iter().any(has_cross_flows), "{findings:?}");
    let tables = tables(&data, &PlotSettings::default());
    let table = tables.iter().find(|table| table.name == "throughput");
    let notes = table.expect("there are checks").notes.join(" ");
    assert!(
        notes.contains("no queue): continent in block 6."),
        "{notes}"
    );
    // Without the others it is all that is known.
    data.throughputs
        .retain(|check| check.block == 5 && check.endpoint == "continent");
    let findings = capacity_findings(&data);
    let expected = "uses at most 17 % of its link: 8.19 Mbit/s of at least 47 Mbit/s. No other scenario \
                 uses a larger share of its link.";
    assert!(findings[0].text.contains(expected), "{findings:?}");
}

#[test]
fn a_quarter_of_the_best_rate_is_reported_as_three_cross_flows() {
    let cross_flows = |quarter: bool| {
        let mut data = synthetic::twelve_scenarios();
        let endpoint = data.throughputs[0].endpoint.clone();
        let mut checks = data.throughputs.iter_mut();
        let last = checks.rfind(|check| check.endpoint == endpoint);
        let last = last.expect("one in each block");
        if quarter {
            last.goodput = BitRate(last.goodput.bits_per_second() / 4);
        }
        let findings = findings(&data, &PlotSettings::default());
        let cross_flows = findings.iter().find_map(|f| f.evidence.get("cross_flows"));
        cross_flows.copied()
    };
    assert_eq!((cross_flows(true), cross_flows(false)), (Some(3.0), None));
}
