use neph_model::{
    BlockOrder, ByteSize, Parameter, ParameterName, ProbeKind, ReflectorIdentity, Span,
};
use proptest::prelude::*;

use super::*;

const SMALL: &str = r#"
version = 1
name = "small"
interval = ["25ms", "100ms"]
request_size = ["10KiB", 64]
duration = "30s"

[[endpoint]]
name = "metro"
url = "ws://metro:8080"
"#;

fn problems_of(text: &str) -> Vec<String> {
    let problems = parse(&Source::new("p.toml", text)).expect_err("it has mistakes");
    problems.iter().map(ToString::to_string).collect()
}

/// The one mistake of [`SMALL`] with `extra` lines at its top and `own` lines in its endpoint.
fn only_problem(extra: &str, endpoint_lines: &str) -> String {
    let extra = if extra.is_empty() {
        String::new()
    } else {
        format!("{extra}\n")
    };
    let text = SMALL.replacen("\n\n[[", &format!("\n{extra}\n[["), 1) + endpoint_lines;
    let problems = problems_of(&text);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems[0].clone()
}

#[test]
fn a_minimal_plan_is_parsed_with_defaults() {
    let plan = parse(&Source::new("p.toml", SMALL)).expect("no mistakes");
    assert_eq!(
        (plan.blocks, plan.tries, plan.order),
        (1, 3, BlockOrder::Random)
    );
    assert_eq!(plan.timeout, Span::from_secs(5));
    assert_eq!(plan.icmp_echo_interval, Some(Span::from_secs(1)));
    assert_eq!(plan.limits, Limits::default());
    let endpoint = &plan.endpoints[0];
    assert_eq!(endpoint.target.kind(), ProbeKind::Ws);
    assert_eq!(
        endpoint.axes.request_sizes,
        [ByteSize(10_240), ByteSize(64)]
    );
    let duration = ExperimentLength::Duration(Span::from_secs(30));
    assert_eq!(endpoint.axes.length, duration);
    assert_eq!(plan.hash().len(), 64);
}

#[test]
fn an_endpoint_overrides_top_level_values() {
    let endpoint_lines = "interval = \"1s\"\nmessages = 7\nnew_connection = [true, false]\n";
    let plan =
        parse(&Source::new("p.toml", SMALL.to_owned() + endpoint_lines)).expect("no mistakes");
    let axes = &plan.endpoints[0].axes;
    assert_eq!(axes.intervals, [Span::from_secs(1)]);
    assert_eq!(axes.length, ExperimentLength::Messages(7));
    let new_connection = &axes.parameters[&ParameterName::NewConnection];
    assert_eq!(*new_connection, [true, false].map(Parameter::NewConnection));
}

#[test]
fn every_section_is_parsed() {
    let text = SMALL.to_owned()
        + r#"
[[ping]]
name = "gateway"
address = "10.0.0.1"
interval = "5s"
[companion]
enabled = false
[throughput]
duration = "2s"
tool = "iperf3"
server = ["10.0.0.9", "[fd00::9]:80"]
[traceroute]
max_hops = 20
[plot]
percentiles_to_remove = 1
equalize = false
rtt_min = "10ms"
rtt_max = "20ms"
whisker_min = "10%"
whisker_max = 90
blocks = 1
log_tail = true
figures = ["timeline"]
[lab]
topology = "demo.toml"
prober = "client"
[[lab.reflector]]
site = "metro"
flags = ["--tls"]
[limits]
lateness_p99 = "2ms"
steal = "3%"
"#;
    let plan = parse(&Source::new("p.toml", text)).expect("no mistakes");
    assert_eq!(plan.pings[0].value.interval, Span::from_secs(5));
    assert_eq!(plan.icmp_echo_interval, None);
    let check = plan.throughput.expect("there");
    let servers: Vec<_> = check
        .servers
        .iter()
        .map(|s| (s.value.host.as_str(), s.value.port))
        .collect();
    assert_eq!(servers, [("10.0.0.9", 5201), ("fd00::9", 80)]);
    assert_eq!(plan.traceroute.expect("there").max_hops, 20);
    assert_eq!(
        (plan.plot.blocks.as_slice(), plan.plot.rtt_max),
        ([0].as_slice(), Some(Span::from_millis(20)))
    );
    assert_eq!(
        (plan.plot.whisker_min, plan.plot.whisker_max),
        (Some(10.0), Some(90.0))
    );
    let spec = &plan.lab.expect("there").reflectors[0].spec.value;
    let identity = ReflectorIdentity::SelfSigned(Vec::new());
    assert_eq!(spec.identity, Some(identity));
    assert_eq!(
        (plan.limits.lateness_p99, plan.limits.steal_percent),
        (Span::from_millis(2), 3.0)
    );
}

#[test]
fn the_built_in_throughput_check_runs_once_per_reflector() {
    let text = SMALL.to_owned()
        + "[[endpoint]]\nname = \"again\"\nurl = \"http://metro:8080\"\n\
           [[endpoint]]\nname = \"echo\"\nurl = \"icmp://metro\"\n[throughput]\n";
    let plan = parse(&Source::new("p.toml", text)).expect("no mistakes");
    let check = plan.throughput.expect("there");
    assert_eq!(
        (check.tool, check.servers.len()),
        (neph_model::ThroughputTool::Neph, 1)
    );
    assert_eq!(check.servers[0].value.name, "metro");
}

/// Lines at the top, lines in the endpoint, and the message.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "intervall = 1",
        "",
        "p.toml:7:1: 'intervall' is not known here; did you mean 'interval'?",
    ),
    (
        "timeout = 5",
        "",
        "p.toml:7:11: 5 has no unit; write for example \"5ms\" or \"5s\"",
    ),
    (
        "timeout = \"0s\"",
        "",
        "p.toml:7:11: this time is zero; write for example \"25ms\"",
    ),
    (
        "blocks = 0",
        "",
        "p.toml:7:10: 'blocks' is zero; write 1 or more",
    ),
    (
        "messages = 5",
        "",
        "p.toml:7:12: both duration and messages are given; remove one: it follows from the other and the interval",
    ),
    (
        "order = \"randm\"",
        "",
        "p.toml:7:9: 'randm' is not known here; did you mean 'random'?",
    ),
    (
        "tls = \"1.3\"",
        "",
        "p.toml:7:7: 'tls' fits no endpoint: only wss:// and https:// carry TLS; remove it",
    ),
    (
        "",
        "interval = \"0ms\"",
        "p.toml:11:12: this interval is zero; write for example \"25ms\"",
    ),
    (
        "",
        "interval = [\"1s\", \"1s\"]",
        "p.toml:11:19: 'interval' holds this value twice; remove one of them",
    ),
    (
        "",
        "insecure = true",
        "p.toml:11:12: 'insecure' does not fit ws://metro:8080: only targets over TLS have a certificate; remove it",
    ),
    (
        "",
        "messages = 0",
        "p.toml:11:12: there are no messages; write 1 or more",
    ),
    (
        "",
        "request_size = \"1GiB\"",
        "p.toml:11:16: 1 GiB is more than ws carries; write at most 64 MiB",
    ),
    (
        "",
        "from = \"client\"",
        "p.toml:8:1: 'from' names a lab site, but there is no lab; add [lab], or a [[site]] with an agent",
    ),
    (
        "",
        "new_connection = true\nsource_port = 5555",
        "p.toml:8:1: a new connection per message cannot keep one source port; remove source_port or new_connection",
    ),
    (
        "",
        "[[endpoint]]\nname = \"metro\"\nurl = \"ws://b\"",
        "p.toml:12:8: two endpoints are called 'metro'; give each its own name",
    ),
    (
        "",
        "[[skip]]\nrequest_size = \"1MiB\"",
        "p.toml:11:1: this skip matches no scenario; remove it or correct its values",
    ),
    (
        "",
        "[[skip]]\nendpoint = \"nobody\"",
        "p.toml:12:12: there is no endpoint 'nobody' to skip; known here: metro",
    ),
    (
        "",
        "[plot]\nblocks = [1, 3]",
        "p.toml:11:1: block 3 is to be shown, but there are 1; name blocks of this plan",
    ),
    (
        "",
        "[plot]\nrtt_min = \"2s\"\nrtt_max = \"1s\"",
        "p.toml:11:1: rtt_min is not below rtt_max; exchange them",
    ),
    (
        "",
        "[throughput]\ntool = \"iperf3\"",
        "p.toml:11:1: the throughput check has no server; add server = \"host:port\", or enabled = false",
    ),
];

#[test]
fn each_mistake_is_reported_with_position_and_remedy() {
    for (extra, endpoint_lines, expected) in MISTAKES {
        assert_eq!(only_problem(extra, endpoint_lines), *expected);
    }
}

#[test]
fn experiment_lengths_beyond_the_counter_range_are_refused() {
    let ports = (1..=4_096).fold(String::new(), |list, port| list + &format!("{port},"));
    let ports = format!("source_port = [{ports}]");
    let endless = "messages = 9_000_000_000_000_000_000";
    for (lines, part) in [
        (endless, "take longer than can be counted"),
        ("duration = \"50ms\"", "no message fits: the interval"),
        (&ports, "16384 scenarios in 1 blocks are too many"),
    ] {
        let problem = only_problem("", lines);
        assert!(problem.contains(part), "{problem}");
    }
}

#[test]
fn an_oversized_payload_is_reported_once_per_kind_of_probe() {
    let too_large = |size: &str| {
        let small = SMALL.replace("[\"10KiB\", 64]", size);
        problems_of(&format!(
            "{small}[[endpoint]]\nname = \"again\"\nurl = \"ws://metro:8081\"\n\
             [[endpoint]]\nname = \"echo\"\nurl = \"icmp://metro\"\n"
        ))
    };
    let icmp = "is more than icmp carries; write at most 65507 B";
    assert_eq!(
        too_large("\"64KiB\""),
        [format!("p.toml:5:16: 64 KiB {icmp}")]
    );
    let ws = "is more than ws carries; write at most 64 MiB";
    assert_eq!(
        too_large("\"100GiB\""),
        [
            format!("p.toml:5:16: 100 GiB {ws}"),
            format!("p.toml:5:16: 100 GiB {icmp}")
        ]
    );
}

#[test]
fn all_mistakes_in_a_plan_are_reported_at_once() {
    let problems = problems_of("version = 2\nblcks = 3\n[[endpoint]]\nurl = \"wx://a\"\n");
    assert_eq!(problems.len(), 5, "{problems:#?}");
}

/// Found by fuzzing: a list of which no value could be read was taken for one with values.
#[test]
fn a_list_of_invalid_values_is_the_only_mistake_reported() {
    for (top, endpoint_lines) in [
        ("tls = [\"1.4\"]\n", ""),
        ("", "tls = [\"1.4\", \"1.5\"]\n"),
    ] {
        let text = format!(
            "version = 1\nname = \"n\"\nmessages = 1\ninterval = \"1s\"\n{top}\
             [[endpoint]]\nname = \"a\"\nurl = \"ws://h:1\"\n{endpoint_lines}"
        );
        let problems = problems_of(&text);
        let is_of_tls = |line: &String| line.contains("no version of TLS");
        assert!(
            !problems.is_empty() && problems.iter().all(is_of_tls),
            "{problems:#?}"
        );
    }
}

#[test]
fn a_syntax_error_is_the_only_mistake_reported() {
    let problems = problems_of("version = \nname = 3\n");
    assert!(
        problems.iter().all(|line| line.contains("toml.io")),
        "{problems:#?}"
    );
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in ".{0,200}") {
        let _ = parse(&Source::new("p.toml", text));
    }

    #[test]
    fn mutations_of_a_plan_never_panic(at in 0..SMALL.len(), length in 0..12_usize, put in "[a-z0-9\\[\\]=\". ]{0,8}") {
        let end = (at + length).min(SMALL.len());
        let text = format!("{}{put}{}", &SMALL[..at], &SMALL[end..]);
        if let Ok(plan) = parse(&Source::new("p.toml", text)) {
            prop_assert!(!crate::expand::scenarios(&plan).is_empty());
        }
    }
}

#[test]
fn an_empty_plan_reports_each_missing_key_with_what_to_add() {
    let problems = problems_of("");
    let remedies = [
        "add version = 1",
        "add name = \"first\"",
        "add [[endpoint]] with name",
        "add interval = \"100ms\"",
        "add duration = \"30s\"",
    ];
    assert_eq!(problems.len(), remedies.len(), "{problems:#?}");
    for remedy in remedies {
        let is_offered = problems.iter().any(|problem| problem.contains(remedy));
        assert!(is_offered, "{problems:#?}");
    }
}

#[test]
fn an_ip_version_that_contradicts_the_address_is_refused() {
    let plan = |top: &str, url: &str, endpoint_lines: &str| {
        format!(
            "version = 1\nname = \"n\"\nmessages = 1\ninterval = \"1s\"\n{top}\
             [[endpoint]]\nname = \"a\"\nurl = \"{url}\"\n{endpoint_lines}"
        )
    };
    let wrong = problems_of(&plan("ip_version = 6\n", "udp://127.0.0.1:1", ""));
    assert_eq!(
        wrong,
        [
            "p.toml:5:14: udp://127.0.0.1:1 is an IPv4 address: IPv6 does not reach it; remove \
          ip_version, or write a name or an IPv6 address in the url"
        ]
    );
    let wrong = problems_of(&plan("", "udp://[::1]:1", "ip_version = [4, 6]\n"));
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(
        wrong[0].starts_with("p.toml:8:15: udp://[::1]:1 is an IPv6"),
        "{wrong:?}"
    );
    for (url, version) in [
        ("udp://[::1]:1", 6),
        ("udp://h:1", 6),
        ("icmp://10.0.0.1", 4),
    ] {
        let endpoint_lines = format!("ip_version = {version}\n");
        assert!(
            parse(&Source::new("p.toml", plan("", url, &endpoint_lines))).is_ok(),
            "{url}"
        );
    }
}
