//! The sentences, and the numbers behind them.

use neph_analysis::{CampaignData, ExperimentData, FindingKind, PlotSettings, diagnose, findings};
use neph_model::{ByteSize, CampaignStatus, ExperimentStatus, Marks, Span, Warning};
use neph_report::text;
use neph_stats::Random;

use crate::synthetic::{self, CONTINENT, FOREIGN, HOME, Link, METRO, Shape};

/// What a terminal of that width is shown.
pub(crate) fn terminal_report(data: &CampaignData, width: usize) -> String {
    let settings = PlotSettings::default();
    text(data, &settings, &diagnose(data, &settings), width)
}

pub(crate) fn sentences(data: &CampaignData) -> String {
    let findings = findings(data, &PlotSettings::default());
    let lines: Vec<String> = findings
        .iter()
        .map(|finding| format!("{:?} {}: {}", finding.kind, finding.topic, finding.text))
        .collect();
    lines.join("\n")
}

#[test]
fn one_scenario_in_words() {
    insta::assert_snapshot!(sentences(&synthetic::one_experiment()));
}

#[test]
fn twelve_scenarios_in_words() {
    insta::assert_snapshot!(sentences(&synthetic::twelve_scenarios()));
}

#[test]
fn sixty_scenarios_stay_readable() {
    let findings = findings(&synthetic::sixty_scenarios(), &PlotSettings::default());
    assert!(findings.len() < 20, "{} sentences", findings.len());
    assert!(findings.iter().all(|finding| finding.text.len() < 600));
    let merged = findings.iter().any(|f| {
        f.text
            .contains("network + peer kernel + peer application + peer send")
    });
    assert!(merged, "the endpoint without a reflector has merged stages");
}

#[test]
fn the_idle_slow_start_is_found_with_its_cause() {
    let findings = findings(&synthetic::twelve_scenarios(), &PlotSettings::default());
    let interval: Vec<_> = findings.iter().filter(|f| f.topic == "interval").collect();
    let first = interval.first().expect("the effect is there");
    // Three more round trips of 40 ms.
    assert!(
        (first.evidence["shift_ms"] - 120.0).abs() < 0.5,
        "{first:?}"
    );
    assert!(
        first
            .text
            .contains("is 10 segments at 400 ms and 140 at 100 ms"),
        "{}",
        first.text
    );
    assert!(
        (first.evidence["p"] - 14.0 * 0.031_25).abs() < 1e-9,
        "six pairs of one sign, 2 / 2^6, among 14 comparisons"
    );
}

#[test]
fn slow_start_after_idling_is_blamed_only_where_the_windows_show_it() {
    let interval_findings = |data: &CampaignData| {
        let findings = findings(data, &PlotSettings::default());
        let first = findings.into_iter().find(|f| f.topic == "interval");
        first.expect("the effect is there").text
    };
    // Four messages whose window only ever grew: nothing was forgotten.
    let mut data = synthetic::twelve_scenarios();
    for experiment in &mut data.experiments {
        let exchanges = &mut experiment.flows[0].exchanges;
        if exchanges[0].cwnd == exchanges[1].cwnd {
            exchanges.truncate(4);
            for (exchange, window) in exchanges.iter_mut().zip([10, 22, 41, 68]) {
                exchange.cwnd = Some(window);
            }
        }
    }
    let text = interval_findings(&data);
    assert!(
        text.contains("still in the slow start of a new connection")
            && !text.contains("repeats slow start"),
        "{text}"
    );
    // As measured after idling: each message begins again and ends a little higher.
    for experiment in &mut data.experiments {
        let exchanges = &mut experiment.flows[0].exchanges;
        if exchanges.len() == 4 {
            for (exchange, window) in exchanges.iter_mut().zip([42, 56, 64, 71]) {
                exchange.cwnd = Some(window);
            }
        }
    }
    let text = interval_findings(&data);
    assert!(
        text.contains("repeats slow start after an idle period"),
        "{text}"
    );
    // A host that keeps the window while idle has not forgotten it either.
    let mut data = synthetic::twelve_scenarios();
    for experiment in &mut data.experiments {
        let provenance = experiment.provenance.as_mut().expect("it is kept");
        let sysctls = &mut provenance.host.sysctls;
        sysctls.insert("net.ipv4.tcp_slow_start_after_idle".into(), "0".into());
    }
    let text = interval_findings(&data);
    assert!(
        text.contains(" more than ") && !text.contains("window"),
        "{text}"
    );
    // Sizes are told as the labels tell them.
    let mut data = synthetic::twelve_scenarios();
    for scenario in &mut data.scenarios {
        if scenario.request_size.bytes() == 102_400 {
            scenario.request_size = ByteSize(100_000);
        }
    }
    let text = interval_findings(&data);
    assert!(
        text.contains("so 100 kB need several round trips"),
        "{text}"
    );
}

#[test]
fn a_stage_is_most_of_the_mean_time_only_from_a_half_on() {
    let data = synthetic::campaign(&Shape {
        links: vec![Link {
            work_ms: 100.0,
            ..CONTINENT
        }],
        intervals_ms: vec![400],
        sizes: vec![102_400],
        blocks: 1,
        messages: 300,
    });
    // 120 ms of waiting for the window, 100 ms of work, 44 ms on the way.
    let text = sentences(&data);
    assert!(
        text.contains("The stage 'send window' takes 44 % of the mean response time, the largest part, in 'continent"),
        "{text}"
    );
}

#[test]
fn a_stage_that_is_the_whole_ledger_is_no_finding() {
    let mut data = synthetic::campaign_over(&[METRO], 1);
    let scenario = &data.scenarios[0];
    let mut messages = synthetic::messages(scenario, &METRO, &mut Random::new(1));
    for message in &mut messages {
        let received = message.marks.app_recv;
        message.marks = Marks::intended_at(message.marks.intended);
        message.marks.app_send = Some(message.marks.intended);
        message.marks.app_recv = received;
    }
    let experiment = data.experiments[0].experiment.clone();
    data.experiments = vec![ExperimentData::new(experiment, 0, &messages)];
    let findings = findings(&data, &PlotSettings::default());
    assert!(findings.iter().all(|f| f.topic != "ledger"), "{findings:?}");
}

#[test]
fn a_network_far_beyond_the_echo_is_named() {
    let findings = findings(&synthetic::twelve_scenarios(), &PlotSettings::default());
    let network_finding = findings
        .iter()
        .find(|f| f.topic == "transmission")
        .expect("network far beyond the echo");
    assert!(
        network_finding.evidence["network_ms"] > 285.0
            && network_finding.evidence["icmp_ms"] < 12.2
    );
}

#[test]
fn the_largest_transmission_leads_and_the_path_is_the_quickest_echo() {
    // 10 KiB queue 27 ms at 3 Mbit/s; 100 KiB wait for the window behind the same bottleneck.
    let mut data = synthetic::campaign(&Shape {
        links: vec![HOME],
        intervals_ms: vec![400],
        sizes: vec![10_240, 102_400],
        blocks: 1,
        messages: 300,
    });
    // Most echoes wait in the messages' queue.
    for experiment in &mut data.experiments {
        let echoes = experiment.flows[1].exchanges.iter_mut();
        for (_, echo) in echoes.enumerate().filter(|(number, _)| number % 4 > 0) {
            echo.service = echo.service.map(|time| time + Span::from_millis(95));
        }
    }
    let findings = findings(&data, &PlotSettings::default());
    let actual: Vec<_> = findings
        .iter()
        .filter(|f| f.topic == "transmission")
        .collect();
    let [only] = actual.as_slice() else {
        panic!("one sentence: {actual:?}")
    };
    let (icmp, time) = (only.evidence["icmp_ms"], only.evidence["with_window_ms"]);
    assert!((12.0..12.1).contains(&icmp), "{}", only.text);
    // Three rounds for the window and 285 ms under way.
    assert!((320.0..323.0).contains(&time), "{}", only.text);
    assert!(
        only.text.starts_with("309")
            && only.text.contains("the fastest ICMP echo takes 12.0")
            && only
                .text
                .contains("The same holds for 1 more scenario, by less"),
        "{}",
        only.text
    );
}

#[test]
fn a_servers_work_is_not_blamed_on_the_network() {
    let findings_over = |link: Link| {
        findings(
            &synthetic::campaign_over(&[link], 1),
            &PlotSettings::default(),
        )
    };
    // 90 ms of work, 10 ms away, and no marks of the server's: nobody can tell which it was.
    let merged = findings_over(FOREIGN);
    assert!(merged.iter().all(|f| f.topic != "transmission"));
    let actual = merged.iter().find(|f| f.topic == "beyond_ping");
    let text = &actual.expect("ten times an echo is worth telling").text;
    for expected in [
        "at least 90.1",
        "is not path latency",
        "it is unknown whether the network or the server added it",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    // With its marks everybody can: the network takes no longer than the echo.
    let reflector = true;
    let actual = findings_over(Link {
        reflector,
        ..FOREIGN
    });
    assert!(
        actual
            .iter()
            .all(|f| f.topic != "transmission" && f.topic != "beyond_ping")
    );
    assert!(
        actual
            .iter()
            .any(|f| { f.text.contains("tage 'peer application' takes") })
    );
}

#[test]
fn a_campaign_without_warnings_reports_no_warnings() {
    let mut data = synthetic::one_experiment();
    data.experiments[0].experiment.warnings.clear();
    let findings = findings(&data, &PlotSettings::default());
    let flagged: Vec<_> = findings
        .iter()
        .filter(|f| f.kind == FindingKind::Flagged)
        .collect();
    assert!(flagged.len() == 1 && flagged[0].text.starts_with("No warnings"));
}

#[test]
fn equal_warnings_are_merged_and_report_the_worst_scenario() {
    let mut data = synthetic::twelve_scenarios();
    let late = |micros| Warning::LinkLate {
        packets: 3,
        worst: Span::from_micros(micros),
    };
    for (experiment, micros) in data.experiments.iter_mut().zip([200, 900, 300]) {
        experiment.experiment.warnings = vec![late(micros)];
    }
    let worst = data.scenarios[data.experiments[1].scenario].label();
    let findings = findings(&data, &PlotSettings::default());
    let actual = findings
        .iter()
        .find(|finding| finding.text.contains("too late"));
    let actual = &actual.expect("it was flagged").text;
    assert!(
        actual.contains(&format!("(by up to 900.0 us) in '{worst}'"))
            && actual.contains("3 experiments of 3 scenarios"),
        "{actual}"
    );
}

#[test]
fn an_import_reports_no_loss_or_warnings_it_cannot_know() {
    let mut data = synthetic::campaign_over(&[METRO], 1);
    data.campaign.status = CampaignStatus::Imported;
    data.campaign.plan_text.clear();
    let provenance = data.experiments[0].provenance.as_mut().unwrap();
    provenance.load = None;
    provenance.lateness_p99 = None;
    let text = sentences(&data);
    assert!(text.contains("300 of them answered.\n"), "{text}");
    assert!(
        text.contains("How many messages were lost is not known"),
        "{text}"
    );
    assert!(text.contains("Warnings are not available"), "{text}");
    for unexpected in ["messages were lost:", "bounds the loss", "sent on schedule"] {
        assert!(!text.contains(unexpected), "{text}");
    }
    let terminal_report = terminal_report(&data, 100);
    assert!(
        terminal_report.contains("      300        -"),
        "{terminal_report}"
    );
    let rows = neph_analysis::summary(&data, &PlotSettings::default());
    assert!(rows[0].loss.is_none() && rows[0].lost.is_none());
    let folder = tempfile::tempdir().unwrap();
    let settings = PlotSettings::default();
    let written = neph_report::write_report(
        &data,
        &settings,
        &neph_analysis::Diagnoses::default(),
        folder.path(),
    )
    .unwrap();
    let page = std::fs::read_to_string(&written[0]).unwrap();
    assert!(!page.contains("NaN"));
    assert!(!page.contains("The plan") && !page.contains("SHA-256 9f"));
}

#[test]
fn an_empty_campaign_is_no_panic() {
    let mut data = synthetic::one_experiment();
    let mut cut_off = data.experiments.remove(0).experiment;
    cut_off.status = ExperimentStatus::Interrupted;
    data.left_out = vec![cut_off];
    let text = sentences(&data);
    assert!(
        text.starts_with("Measured campaign: No experiment is complete. 1 scenario of the plan")
            && text.contains("1 interrupted experiment is left out"),
        "{text}"
    );
    assert!(!text.contains("No warnings"), "{text}");
    assert!(neph_report::draw(&data, &PlotSettings::default()).is_empty());
}

#[test]
fn the_terminal_view_fits_its_width() {
    let data = synthetic::twelve_scenarios();
    for width in [40, 80, 120] {
        let terminal_report = terminal_report(&data, width);
        let widest = terminal_report
            .lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap();
        assert!(widest <= width, "{widest} of {width}\n{terminal_report}");
    }
    insta::assert_snapshot!(terminal_report(&data, 110));
}
