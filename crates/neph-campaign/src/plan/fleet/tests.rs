use neph_model::{Lifetime, Span};
use neph_text::Source;

use crate::expand::scenarios;
use crate::plan::parse;

fn plan(lines: &str, url: &str) -> String {
    format!(
        "version = 1\nname = \"p\"\nduration = \"1min\"\n{lines}\n\
         [[endpoint]]\nname = \"a\"\nurl = \"{url}\"\n"
    )
}

#[test]
fn flow_sets_expand_into_scenarios_with_message_counts() {
    let text = plan(
        "interval = \"200ms\"\nflows = [8, 512]\nrenewal = \"30s\"",
        "udp://a",
    );
    let plan = parse(&Source::new("p.toml", text)).expect("a good plan");
    let scenarios = scenarios(&plan);
    let rows: Vec<_> = scenarios
        .iter()
        .map(|s| (s.label(), s.flows(), s.messages, s.messages_of_all_flows()))
        .collect();
    assert_eq!(
        rows,
        [
            (
                "a · 8 flows · every 200 ms · 104 B".to_owned(),
                Some(8),
                300,
                2_400
            ),
            (
                "a · 512 flows · every 200 ms · 104 B".to_owned(),
                Some(512),
                300,
                153_600
            ),
        ]
    );
    let lifetime = scenarios[0].parameters.lifetime();
    assert_eq!(lifetime, Some(&Lifetime(Span::from_secs(30))));
}

#[test]
fn allowed_targets_may_get_a_higher_syn_rate() {
    let text = plan(
        "interval = \"1s\"\nflows = 512\nrate_cap = 512",
        "syn://a:80",
    );
    parse(&Source::new("p.toml", text)).expect("a good plan");
}

fn problems_text(lines: &str, url: &str) -> String {
    let problems = parse(&Source::new("p.toml", plan(lines, url))).expect_err("wrong");
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    messages.join("\n")
}

#[test]
fn only_the_flows_of_fleets_are_traced() {
    let traced = |lines: &str| {
        let text = plan(&format!("interval = \"1s\"\n{lines}"), "udp://a");
        let plan = parse(&Source::new("p.toml", text)).expect("a good plan");
        plan.flow_trace
            .map(|t| (t.flows, t.limits.max_hops, t.limits.queries))
    };
    assert_eq!(traced("flows = 8"), None);
    assert_eq!(traced("flows = 8\n[trace]"), Some((32, 30, 3)));
    assert_eq!(
        traced("flows = 8\n[trace]\nflows = 4\nmax_hops = 9\nqueries = 1"),
        Some((4, 9, 1))
    );
    assert_eq!(traced("[trace]\nenabled = false"), None);
    let wrong = problems_text("interval = \"1s\"\n[trace]", "udp://a");
    assert!(
        wrong.contains("p.toml:5:1: [trace] traces the flows of fleets"),
        "{wrong}"
    );
    let wrong = problems_text(
        "interval = \"1s\"\nflows = [2, 8]\n[trace]\nflows = 9",
        "udp://a",
    );
    let part =
        "p.toml:7:9: 9 flows are to be traced, and no fleet has more than 8; write at most 8";
    assert_eq!(wrong, part);
    let wrong = problems_text(
        "interval = \"1s\"\nflows = 8\n[trace]\nflows = 0",
        "udp://a",
    );
    assert!(wrong.contains("write a number from 1 to 1024"), "{wrong}");
}

#[test]
fn a_parameter_that_contradicts_a_fleet_is_reported_at_its_line() {
    let second = "interval = \"1s\"\n";
    for (lines, expected) in [
        ("renewal = \"30s\"", "p.toml:5:11: 'renewal' is for fleets"),
        (
            "flows = 8\nrenewal = [\"30s\", \"1ms\"]",
            "p.toml:6:12: flows that live 1 ms",
        ),
        (
            "flows = 8\nspin = \"1us\"",
            "p.toml:6:8: a fleet has no 'spin'",
        ),
        (
            "flows = [2, 16]\nsource_port = 65530",
            "p.toml:6:15: only 6 ports are left from 65530 on, for 16 flows; write at most 65520",
        ),
    ] {
        let message = problems_text(&format!("{second}{lines}"), "udp://a");
        assert!(message.starts_with(expected), "{expected}: {message}");
    }
    let fits = plan(
        &format!("{second}flows = 16\nsource_port = 65520"),
        "udp://a",
    );
    parse(&Source::new("p.toml", fits)).expect("the last port is one too");
    let with_renewal = plan(second, "udp://a") + "renewal = \"30s\"\n";
    let problems = parse(&Source::new("p.toml", with_renewal)).expect_err("no fleet");
    assert!(
        problems[0].to_string().starts_with("p.toml:9:11: "),
        "{problems:?}"
    );
}

#[test]
fn plans_that_send_too_many_messages_at_once_are_refused() {
    let lines = "interval = \"1ms\"\nflows = 60";
    let two_endpoints = plan(lines, "udp://a") + "[[endpoint]]\nname = \"b\"\nurl = \"udp://b\"\n";
    let problems = parse(&Source::new("p.toml", two_endpoints.as_str())).expect_err("too many");
    let first = problems[0].to_string();
    assert!(first.contains("are 120000 messages a second"), "{first}");
    assert!(first.contains("pairs = \"in turn\""), "{first}");
    let in_turn = two_endpoints.replace("flows", "pairs = \"in turn\"\nflows");
    parse(&Source::new("p.toml", in_turn)).expect("a good plan");
    let wrong = problems_text("interval = \"1s\"\npairs = \"at once\"", "udp://a");
    assert!(wrong.contains("p.toml:5:9: 'pairs' sets how"), "{wrong}");
}

#[test]
fn a_mistake_at_the_top_level_is_reported_once_for_all_endpoints() {
    let more = "[[endpoint]]\nname = \"b\"\nurl = \"udp://b\"\n";
    let message_of = |lines: &str| {
        let text = plan(lines, "udp://a") + more;
        let problems = parse(&Source::new("p.toml", text)).expect_err("wrong");
        let messages = problems.iter().map(ToString::to_string);
        messages.collect::<Vec<_>>()
    };
    for flows in ["90000", "\"many\""] {
        let lines = format!("interval = \"1s\"\nflows = {flows}\nrenewal = \"30s\"\n[trace]");
        let messages = message_of(&lines);
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].starts_with("p.toml:5:9"), "{messages:?}");
    }
    let messages = message_of("interval = \"1us\"\nflows = 512");
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0].starts_with("p.toml:4:12: 512 flows every 1 us"),
        "{messages:?}"
    );
}

#[test]
fn a_wrong_fleet_is_reported_at_its_position() {
    let second = "interval = \"1s\"\n";
    for (lines, url, part) in [
        (
            format!("{second}flows = 0"),
            "udp://a",
            "p.toml:5:9: this is no number of flows",
        ),
        (
            format!("{second}flows = 50001"),
            "udp://a",
            "write a number from 1 to 50000",
        ),
        (
            format!("{second}flows = 8"),
            "ws://a",
            "'flows' fits no endpoint",
        ),
        (
            format!("{second}flows = 8\nrenewal = \"0s\""),
            "udp://a",
            "live for no time",
        ),
        (
            format!("{second}renewal = \"30s\""),
            "udp://a",
            "add flows = 512",
        ),
        (
            format!("{second}flows = 8\nrenewal = \"1ms\""),
            "udp://a",
            "send nothing every 1 s",
        ),
        (
            format!("{second}flows = 8\nnew_connection = true"),
            "tcp://a:1",
            "no 'new_connection'",
        ),
        (
            format!("{second}flows = 201"),
            "syn://a:80",
            "201 flows every 1 s are 201 SYNs a second, which may be taken for an attack",
        ),
        (
            format!("{second}flows = 8"),
            "udp://224.0.0.1",
            "224.0.0.1 is a multicast address, and flows go to one host each",
        ),
        (
            "interval = \"1ms\"\nflows = 512".to_owned(),
            "udp://a",
            "512 flows every 1 ms are 512000 messages a second",
        ),
    ] {
        let message = problems_text(&lines, url);
        assert!(message.contains(part), "{part} in {message}");
    }
}
