use neph_model::{ByteSize, ParameterName, Span, ThroughputTool};
use proptest::prelude::*;

use super::*;
use crate::estimate::estimate;
use crate::expand::scenarios;
use crate::plan::ExperimentLength;

const THESIS: &str = include_str!("../../../../plans/latency-tester.yaml");

fn read(text: &str) -> Plan {
    parse(&Source::new("settings.yaml", text)).expect("no mistakes")
}

fn problems_of(text: &str) -> Vec<String> {
    let problems = parse(&Source::new("s.yaml", text)).expect_err("mistakes");
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn the_thesis_example_has_the_documented_scenarios_and_cost() {
    let plan = read(THESIS);
    let scenarios = scenarios(&plan);
    assert_eq!((scenarios.len(), plan.blocks), (12, 24));
    let cost = estimate(&plan, &scenarios);
    // 23 intervals of an hour, then six minutes of experiments and five seconds of iperf3.
    assert_eq!(cost.total, Span::from_secs(23 * 3600 + 6 * 60 + 5));
    assert_eq!(cost.experiments, 12 * 24);
    // 30 s at 25, 100 and 400 ms are 1200, 300 and 75 messages.
    assert_eq!(cost.messages, (1200 + 300 + 75) * 4 * 24);
    assert!(!cost.outlasts_interval(&plan));
}

#[test]
fn every_field_of_the_thesis_example_is_read() {
    let plan = read(THESIS);
    let urls: Vec<String> = plan.endpoints.iter().map(|e| e.target.written()).collect();
    assert_eq!(
        urls,
        [
            "wss://203.0.113.5:8080/echo",
            "wss://latency-tester.example.com/echo"
        ]
    );
    let axes = &plan.endpoints[0].axes;
    assert_eq!(axes.length, ExperimentLength::Duration(Span::from_secs(30)));
    assert_eq!(axes.request_sizes, [ByteSize(10_240), ByteSize(102_400)]);
    assert_eq!(axes.response_sizes, [ByteSize(1_024)]);
    let ports: Vec<u16> = axes
        .values(Parameter::source_port)
        .map(|p| p.get())
        .collect();
    assert_eq!(ports, [5555]);
    assert_eq!(plan.block_interval, Span::from_secs(3_600));
    let ping = &plan.pings[0];
    assert_eq!(
        (ping.value.name.as_str(), ping.value.interval),
        ("Pingable-Host", Span::from_secs(30))
    );
    let check = plan.throughput.expect("there");
    assert_eq!(
        (check.tool, check.servers[0].value.port),
        (ThroughputTool::Iperf3, 80)
    );
    assert_eq!(plan.plot.percentiles_to_remove.to_string(), "1");
    assert!(plan.plot.equalize);
    assert_eq!(
        (plan.plot.rtt_min, plan.plot.rtt_max),
        (Some(Span::from_millis(10)), Some(Span::from_millis(20)))
    );
    assert_eq!(
        (plan.plot.whisker_min, plan.plot.whisker_max),
        (Some(10.0), Some(90.0))
    );
    assert_eq!(plan.plot.blocks, [0, 2]);
    assert_eq!(plan.notes.len(), 3, "{:?}", plan.notes);
}

const MINIMUM: &str = "runs: 2\nruns_step_duration: 25\nendpoints:\n- description: a\n  destination: a:1\n\
                     - description: b\n  destination: b:1\nintervals: [100]\nmsg_sizes: [64, 128]\n";

#[test]
fn a_missing_duration_is_calculated_from_the_other_times() {
    // 4 steps of 25 s are 100 s: two minutes when rounded up.
    assert_eq!(read(MINIMUM).block_interval, Span::from_secs(120));
    // An interval of one minute leaves 15 s for each of 4 steps.
    let plan = read(&MINIMUM.replace("runs_step_duration: 25", "runs_interval: 1"));
    assert_eq!(
        plan.endpoints[0].axes.length,
        ExperimentLength::Duration(Span::from_secs(15))
    );
    let problems = problems_of(&MINIMUM.replace("runs_step_duration: 25\n", ""));
    assert_eq!(
        problems,
        [
            "s.yaml:1:1: neither runs_interval nor runs_step_duration is given; add runs_step_duration: 30"
        ]
    );
}

#[test]
fn mistakes_are_reported_at_their_positions() {
    for (from, to, expected) in [
        (
            "runs: 2",
            "runs: many",
            "s.yaml:1:7: this is a text; write a whole number from 0 to 4294967295",
        ),
        (
            "intervals: [100]",
            "intervals: [100, 0]",
            "s.yaml:8:18: this time is zero; write 1 or more",
        ),
        (
            "msg_sizes",
            "msg_size",
            "s.yaml:9:1: 'msg_size' is not known here; did you mean 'msg_sizes'?",
        ),
        (
            "destination: b:1",
            "destination: ws://b",
            "s.yaml:7:16: a destination has no scheme, but here is 'ws'; write \"b\", and tls_enabled for TLS",
        ),
        (
            "description: b",
            "description: a",
            "s.yaml:6:16: two endpoints are called 'a'; give each its own name",
        ),
    ] {
        let problems = problems_of(&MINIMUM.replace(from, to));
        assert!(problems.contains(&expected.to_owned()), "{problems:#?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in ".{0,200}") {
        let _ = parse(&Source::new("s.yaml", text));
    }

    #[test]
    fn mutations_of_the_example_never_panic(at in 0..THESIS.len(), length in 0..20_usize, put in "[a-z0-9:\\[\\]\\-\". \\n]{0,8}") {
        let end = (at + length).min(THESIS.len());
        let text = format!("{}{put}{}", &THESIS[..at], &THESIS[end..]);
        let _ = parse(&Source::new("s.yaml", text));
    }
}

#[test]
fn a_key_without_a_value_equals_an_absent_key() {
    let text = MINIMUM.to_owned()
        + "iperf_destinations:\nping_destinations:\nruns_to_plot:\nsource_port:\n";
    let plan = read(&text);
    assert_eq!((plan.throughput, plan.pings.len()), (None, 0));
    assert!(plan.plot.blocks.is_empty() && plan.endpoints[0].axes.parameters.is_empty());
    let problems = problems_of(&MINIMUM.replace("runs: 2", "runs:"));
    assert_eq!(problems, ["s.yaml:1:1: 'runs' is missing; add it"]);
}

/// The Latency Tester accepts any certificate, its server's self-signed one too.
#[test]
fn tls_accepts_any_certificate_with_a_warning_unless_configured() {
    let plan_with = |more: &str| read(&format!("{MINIMUM}tls_enabled: true\n{more}"));
    let parameter = |plan: &Plan, name: &str| {
        let name = ParameterName::from_name(name).expect("a parameter");
        let values = plan.endpoints[0].axes.parameters.get(&name)?;
        Some(values.iter().map(Parameter::text).collect::<Vec<_>>())
    };
    let any = plan_with("");
    assert_eq!(parameter(&any, "insecure"), Some(vec!["true".to_owned()]));
    assert!(
        any.notes
            .iter()
            .any(|note| note.starts_with("WARNING: any certificate"))
    );
    let own_authority = plan_with("ca_file: ca.pem\n");
    assert_eq!(
        parameter(&own_authority, "ca_file"),
        Some(vec!["ca.pem".to_owned()])
    );
    let public = plan_with("insecure: false\n");
    for plan in [own_authority, public] {
        assert_eq!(parameter(&plan, "insecure"), None);
        assert!(!plan.notes.iter().any(|note| note.contains("WARNING")));
    }
    let plain = read(MINIMUM);
    assert!(!plain.notes.iter().any(|note| note.contains("certificate")));
}

#[test]
fn a_whisker_inside_the_box_is_moved_to_its_edge_with_a_note() {
    let plan = read(&format!("{MINIMUM}whisker_min: 40\nwhisker_max: 90\n"));
    assert_eq!(
        (plan.plot.whisker_min, plan.plot.whisker_max),
        (Some(25.0), Some(90.0))
    );
    assert!(
        plan.notes
            .iter()
            .any(|note| note.starts_with("whisker_min 40 lies inside"))
    );
}
