use std::num::NonZeroU16;

use super::*;
use neph_text::Source;

fn parse(text: &str) -> Result<Policy, Vec<String>> {
    let parsed = Policy::parse(&Source::new("agent.toml", text));
    parsed.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn the_default_policy_allows_probes_but_no_load_and_no_capture() {
    let policy = parse(DEFAULT_POLICY).expect("a good policy");
    assert!(
        policy
            .kinds
            .contains(&Kind::Probe(neph_model::ProbeKind::Icmp))
    );
    for kind in [
        Kind::Iperf3,
        Kind::Cpu,
        Kind::Traffic,
        Kind::Reflector,
        Kind::Capture,
    ] {
        assert!(!policy.kinds.contains(&kind), "{kind:?}");
    }
    assert!(policy.listen.is_empty() && policy.files.is_empty());
    let check = |text: &str| policy.targets.check(text.parse().expect("an address"));
    assert!(check("192.0.2.1:443").is_ok() && check("[2001:db8::1]:443").is_ok());
    for address in [
        "127.0.0.1:80",
        "[::1]:80",
        "0.0.0.0:80",
        "169.254.169.254:80",
        "[fe80::1]:80",
    ] {
        assert!(check(address).is_err(), "{address}");
    }
}

#[test]
fn each_order_kind_has_one_keyword() {
    let kind_names = Kind::kind_names();
    for (word, kind) in &kind_names {
        assert_eq!(kind.name(), *word);
        assert_eq!(
            kind_names.iter().filter(|(other, _)| other == word).count(),
            1
        );
    }
}

#[test]
fn an_invalid_policy_is_refused_with_the_position_of_each_mistake() {
    let text = "version = 1\nkinds = [\"icmp\", \"htp\"]\nhours = [\"8-18\"]\nlisten = [\"0\"]\n\
                files = [\"keys\"]\nkind = 3\n[targets]\nallow = [\"10.1.0.0/8\"]\n\
                [budget]\nrate = 5\n";
    let problems = parse(text).expect_err("mistakes");
    for (part, line) in [
        ("'htp'", "2:"),
        ("'8-18'", "3:"),
        ("'0' is no port", "4:"),
        ("'keys' is no absolute path", "5:"),
        ("'kind'", "6:"),
        ("the network is 10.0.0.0/8", "8:"),
    ] {
        let problem = problems.iter().find(|text| text.contains(part));
        let problem = problem.unwrap_or_else(|| panic!("{part}: {problems:#?}"));
        assert!(problem.contains(&format!("agent.toml:{line}")), "{problem}");
    }
    for invalid in ["", "version = 1", "version = 2\nkinds = []\n[targets]\n"] {
        assert!(parse(invalid).is_err(), "{invalid:?}");
    }
}

#[test]
fn a_reflector_needs_open_service_ports_and_no_budget_for_media() {
    let policy = |budget: &str| {
        let text = format!(
            "version = 1\nkinds = [\"reflector\", \"throughput\", \"media\"]\nlisten = [\"8080\", \"8554\"]\n\
             [targets]\nallow = [\"0.0.0.0/0\"]\n{budget}"
        );
        parse(&text).expect("a good policy")
    };
    let check_reflector_order = |policy: &Policy, throughput: Option<u16>, media: Option<u16>| {
        let port = |port: Option<u16>| port.and_then(NonZeroU16::new);
        let spec = neph_model::ReflectorSpec {
            throughput: port(throughput),
            media: port(media),
            ..neph_model::ReflectorSpec::default()
        };
        let order = Order::Reflector(neph_model::ReflectorOrder {
            spec,
            duration: Span::from_secs(60),
        });
        policy.check(&order, &Permit::ANYTHING, Wall::from_unix_nanos(0))
    };
    let without_budget = policy("");
    assert!(check_reflector_order(&without_budget, None, Some(8554)).is_ok());
    let closed = check_reflector_order(&without_budget, Some(7420), None)
        .expect_err("a port that is not open");
    assert!(matches!(closed, Refusal::Port(7420)), "{closed}");
    for budget in ["rate = \"5Mbit/s\"", "bytes_per_day = \"1GiB\""] {
        let limited = policy(&format!("[budget]\n{budget}\n"));
        assert!(check_reflector_order(&limited, None, None).is_ok());
        let refused =
            check_reflector_order(&limited, None, Some(8554)).expect_err("it cannot be held to it");
        assert!(matches!(refused, Refusal::Unmetered), "{refused}");
    }
}

/// ICMP that is measured, and ICMP echoes that a plan sends during other measurements.
#[test]
fn a_refused_kind_is_for_echoes_only_if_no_experiment_measures_it() {
    let policy = "version = 1\nkinds = [\"udp\"]\n[targets]\nallow = [\"127.0.0.1\"]\n";
    let policy = parse(policy).expect("a good policy");
    let order = |url: &str, companion: Option<Span>| {
        let plan = format!(
            "version = 1\nname = \"p\"\ninterval = \"10ms\"\nduration = \"1s\"\n[[endpoint]]\nname = \"e\"\nurl = \"{url}\"\n"
        );
        let plan = neph_campaign::plan::parse(&Source::new("p.toml", plan)).expect("a good plan");
        let scenario = neph_campaign::expand::scenarios(&plan).remove(0);
        let mut order = neph_model::executor::contract::order_of(scenario, Span::from_secs(1));
        order.companion = companion;
        order
    };
    let refusal = |orders: Vec<ExperimentOrder>| {
        let orders = Order::Experiments(orders);
        policy.check(&orders, &Permit::ANYTHING, Wall::from_unix_nanos(0))
    };
    let with_echoes = order("udp://127.0.0.1:9", Some(Span::from_millis(100)));
    let of_icmp = order("icmp://127.0.0.1", None);
    assert_eq!(refusal(vec![with_echoes.clone()]), Err(Refusal::Echoes));
    let measured = Err(Refusal::Kind("icmp"));
    assert_eq!(refusal(vec![with_echoes, of_icmp]), measured);
}

/// A higher limit would refuse them too, so it must not be advised.
#[test]
fn a_test_without_a_rate_is_refused_with_the_key_to_remove() {
    let refusal = |budget: &str, measure: &str| {
        let text = format!(
            "version = 1\nkinds = [\"throughput\"]\n[targets]\nallow = [\"127.0.0.1\"]\n[budget]\n{budget}\n"
        );
        let plan = format!(
            "version = 1\nname = \"p\"\nduration = \"1s\"\nmeasure = \"{measure}\"\n\
             [[endpoint]]\nname = \"e\"\nurl = \"udp://127.0.0.1:9\"\n"
        );
        let plan = neph_campaign::plan::parse(&Source::new("p.toml", plan)).expect("a good plan");
        let scenario = neph_campaign::expand::scenarios(&plan).remove(0);
        let order = neph_model::executor::contract::order_of(scenario, Span::from_secs(1));
        let order = Order::Experiments(vec![order]);
        let policy = parse(&text).expect("a good policy");
        let verdict = policy.check(&order, &Permit::ANYTHING, Wall::from_unix_nanos(0));
        verdict.expect_err(measure).to_string()
    };
    let remedy = "remove this key from its policy file, and restart the agent";
    assert_eq!(
        refusal("messages_per_second = 1000000", "udp rr"),
        format!(
            "it asks for requests as fast as replies come, which budget.messages_per_second of this \
             agent's policy does not allow; {remedy}"
        )
    );
    assert_eq!(
        refusal("rate = \"100Gbit/s\"", "tcp throughput"),
        format!(
            "it asks for an unlimited rate, which budget.rate of this agent's policy does not allow; \
             set a rate, or {remedy}"
        )
    );
}

type CaptureEdit = fn(&mut CaptureOrder);

#[test]
fn a_capture_is_limited_to_headers_and_bounded_in_time_and_size() {
    let policy = parse("version = 1\nkinds = [\"capture\"]\n[targets]\n").expect("a policy");
    let check_capture = |change: CaptureEdit| {
        let mut order = CaptureOrder {
            duration: Some(Span::from_secs(60)),
            limit: Some(LARGEST_CAPTURE),
            ..CaptureOrder::of("eth0".to_owned(), MAX_CAPTURED_BYTES, ByteSize(2 << 20))
        };
        change(&mut order);
        let now = Wall::from_unix_nanos(0);
        let verdict = policy.check(&Order::Capture(order), &Permit::ANYTHING, now);
        verdict.map_err(|reason| (reason.code(), reason.to_string()))
    };
    assert_eq!(check_capture(|_| {}), Ok(()));
    let refused: [(CaptureEdit, &str, &str); 6] = [
        (
            |order| order.snaplen = 1500,
            "rate",
            "1500 bytes of each packet",
        ),
        (|order| order.duration = None, "length", "it can last"),
        (|order| order.limit = None, "rate", "without end"),
        (
            |order| order.limit = Some(ByteSize(LARGEST_CAPTURE.0 + 1)),
            "rate",
            "a capture of",
        ),
        (
            |order| order.duration = Some(Span::from_secs(25 * 3600)),
            "length",
            "it can last",
        ),
        (
            |order| order.site = Some("r1".to_owned()),
            "lab",
            "needs a lab",
        ),
    ];
    for (change, code, part) in refused {
        let (actual_code, reason) = check_capture(change).expect_err(part);
        assert!(
            actual_code == code && reason.contains(part),
            "{actual_code}: {reason}"
        );
    }
}
