//! The plans that are shipped read, and cost what their comments say.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use neph_campaign::estimate::estimate;
use neph_campaign::expand::scenarios;
use neph_campaign::resolve::resolve;
use neph_campaign::{Plan, plan};
use neph_lab::Topology;
use neph_model::{ReflectorIdentity, Scenario, Span};
use neph_text::Source;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../plans")
}

fn read(name: &str) -> (Source, Plan, Vec<Scenario>) {
    let text = fs::read_to_string(folder().join(name)).expect("a shipped plan");
    let source = Source::new(name, text);
    let plan = plan::read(&source).unwrap_or_else(|problems| {
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", messages.join("\n"))
    });
    let scenarios = scenarios(&plan);
    (source, plan, scenarios)
}

#[test]
fn the_demo_takes_about_ninety_seconds() {
    let (_, plan, scenarios) = read("demo.toml");
    assert_eq!((scenarios.len(), plan.blocks), (15, 2));
    let cost = estimate(&plan, &scenarios);
    let seconds = cost.total.nanos() / 1_000_000_000;
    assert!((60..=90).contains(&seconds), "{}", cost.total);
    // No scenario asks for more than the home's uplink of 3 Mbit/s carries.
    for scenario in scenarios.iter().filter(|s| s.endpoint == "home") {
        let transmission = Span::from_nanos(
            i64::try_from(scenario.request_size.bytes()).expect("small") * 8 * 1_000 / 3,
        );
        assert!(transmission < scenario.interval, "{}", scenario.label());
    }
}

#[test]
fn the_idle_slow_start_compares_two_senders_at_four_intervals() {
    let (_, plan, scenarios) = read("idle-slow-start.toml");
    assert_eq!(scenarios.len(), 8);
    assert_eq!(
        scenarios[0].label(),
        "server · every 25 ms · 100 kB · from restarts"
    );
    assert!(scenarios.iter().all(|s| {
        s.parameters
            .congestion()
            .is_some_and(|congestion| congestion == "cubic")
    }));
    let topology = plan.lab.expect("a lab").topology.value;
    assert!(folder().join(topology).exists());
}

#[test]
fn rest_and_persistent_come_without_and_with_both_versions_of_tls() {
    let (_, plan, scenarios) = read("rest-vs-persistent.toml");
    let labels: Vec<String> = scenarios
        .iter()
        .map(|s| {
            let tls = s.parameters.tls();
            let tls = tls.map_or_else(|| "-".to_owned(), ToString::to_string);
            format!("{} {tls}", s.target)
        })
        .collect();
    let (ws, http) = ("ws://10.78.0.2:8080/ -", "http://10.78.0.2:8080/ -");
    assert_eq!(
        labels,
        [
            ws,
            "wss://10.78.0.2:8080/ 1.2",
            "wss://10.78.0.2:8080/ 1.3",
            http,
            "https://10.78.0.2:8080/ 1.2",
            "https://10.78.0.2:8080/ 1.3"
        ]
    );
    let spec = &plan.lab.expect("a lab").reflectors[0].spec.value;
    let self_signed = ReflectorIdentity::SelfSigned(Vec::new());
    assert_eq!(spec.identity, Some(self_signed));
}

#[test]
fn the_flow_plans_cost_what_their_comments_state() {
    let (_, plan, scenarios) = read("flows-macro.toml");
    assert_eq!((scenarios.len(), plan.blocks), (4, 3));
    let cost = estimate(&plan, &scenarios);
    assert_eq!(
        cost.total,
        Span::from_secs(900),
        "all pairs at the same time"
    );
    // 10 probes in 30 s on each of 512 flows, 5 minutes long.
    assert_eq!(scenarios[0].messages_of_all_flows(), 512 * 100);
    let (_, plan, scenarios) = read("flows-micro.toml");
    let cost = estimate(&plan, &scenarios);
    assert_eq!(cost.total, Span::from_secs(3_600));
    assert_eq!(cost.messages, 512 * 5 * 4 * 3_600);
    let megabytes = cost.fleet_bytes.bytes() / 1_000_000;
    assert!((520..580).contains(&megabytes), "{megabytes} MB");
    let megabytes = cost.journal_bytes.bytes() / 1_000_000;
    assert!(
        (240..260).contains(&megabytes),
        "{megabytes} MB while it runs"
    );
    let (_, plan, scenarios) = read("flows-seasons.toml");
    let cost = estimate(&plan, &scenarios);
    assert_eq!(cost.total, Span::from_secs(8 * 2 * 155));
    assert_eq!(cost.messages, 614_400);
}

#[test]
fn the_labs_of_the_shipped_plans_have_the_sites_that_the_plans_name() {
    for name in [
        "demo.toml",
        "idle-slow-start.toml",
        "rest-vs-persistent.toml",
        "flows-macro.toml",
        "flows-micro.toml",
        "flows-seasons.toml",
        "guest-added.toml",
        "guest-asymmetry.toml",
        "guest-vcpus.toml",
        "guest-limit.toml",
        "guest-load.toml",
        "guest-tenancy.toml",
        "guest-workloads.toml",
    ] {
        let (_, plan, scenarios) = read(name);
        for file in plan.topologies() {
            let text = fs::read_to_string(folder().join(&file.value)).expect("a topology");
            let topology = Topology::parse(&Source::new(&*file.value, text)).expect("no mistakes");
            assert_topology_matches_plan(&topology, &plan, &scenarios, name);
        }
    }
}

fn assert_topology_matches_plan(
    topology: &Topology,
    plan: &Plan,
    scenarios: &[Scenario],
    name: &str,
) {
    let lab = plan.lab.as_ref().expect("a lab");
    let sites = scenarios.iter().filter_map(|s| s.parameters.site());
    let reflectors = lab.reflectors.iter();
    let reflectors = reflectors.map(|reflector| &reflector.site.value);
    for site in reflectors.chain([&lab.prober.value]).chain(sites) {
        assert!(topology.site_index(site).is_some(), "{name}: {site}");
    }
    for endpoint in &plan.endpoints {
        let host: IpAddr = endpoint.target.host().parse().expect("an address");
        let answers = |site: &&neph_lab::Site| site.addresses().any(|ip| ip == host);
        let site = topology
            .sites
            .iter()
            .find(answers)
            .expect("a site of that address");
        assert!(
            // A guest has one of its own.
            topology.is_guest(&site.name)
                || lab.reflectors.iter().any(|r| r.site.value == site.name),
            "{name}: {host}"
        );
    }
}

#[test]
fn a_host_without_an_address_is_reported_at_its_position() {
    let (source, plan, _) = read("latency-tester.yaml");
    let resolver = |host: &str| match host.parse() {
        Ok(address) => Ok(vec![address]),
        Err(_) => Err("no such name".to_owned()),
    };
    let problems = resolve(&plan, &source, &resolver).expect_err("one host is a name");
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let expected = "latency-tester.yaml:27:16: host 'latency-tester.example.com' cannot be \
                    resolved: no such name; check the name, or write an address";
    assert_eq!(messages, [expected]);
    let addresses =
        resolve(&plan, &source, &|_| Ok(vec![[192, 0, 2, 1].into()])).expect("all resolve");
    assert_eq!(addresses.len(), 4);
}

#[test]
fn the_readme_names_every_parameter() {
    let readme = fs::read_to_string(folder().join("README.md")).expect("it is there");
    for parameter in plan::PARAMETERS {
        let row = format!("| `{}` *list* |", parameter.name);
        assert!(readme.contains(&row), "{}", parameter.name);
    }
}

/// What a shipped plan may send to when it is run as it is: this host, its own lab, and what is
/// reserved for documentation (RFC 5737, RFC 3849, RFC 2606).
fn is_local_or_reserved(host: &str, has_lab: bool) -> bool {
    match host.parse() {
        Ok(IpAddr::V4(ip)) => {
            ip.is_loopback() || ip.is_documentation() || (has_lab && ip.is_private())
        }
        Ok(IpAddr::V6(ip)) => {
            let documentation = ip.segments()[..2] == [0x2001, 0xdb8];
            ip.is_loopback() || documentation || (has_lab && ip.is_unique_local())
        }
        Err(_) => {
            host == "localhost" || host.ends_with(".example.com") || host.ends_with(".example")
        }
    }
}

#[test]
fn shipped_plans_send_only_to_local_or_reserved_addresses() {
    let mut plan_count = 0;
    for entry in fs::read_dir(folder()).expect("the plans") {
        let name = entry.expect("a file").file_name();
        let name = name.to_str().expect("UTF-8");
        let path = Path::new(name);
        let is_lab = name.ends_with(".lab.toml");
        let is_plan = path
            .extension()
            .is_some_and(|end| end == "yaml" || end == "toml")
            && !is_lab;
        if !is_plan {
            continue;
        }
        plan_count += 1;
        let (_, plan, _) = read(name);
        for (host, _) in neph_campaign::resolve::hosts(&plan) {
            assert!(
                is_local_or_reserved(host, plan.lab.is_some()),
                "{name}: {host}"
            );
        }
    }
    assert!(plan_count >= 10, "{plan_count} plans");
}

/// `NEPH_BLESS=1` writes the rows.
#[test]
fn the_page_of_plans_has_a_row_for_each_parameter() {
    let path = folder().join("README.md");
    let page = fs::read_to_string(&path).expect("the page");
    let mut expected_page = page.clone();
    for parameter in plan::PARAMETERS {
        let start = format!("| `{}` *list* |", parameter.name);
        let row = format!("{start} {} | {} |", parameter.about, parameter.default);
        let old_row = page.lines().find(|line| line.starts_with(&start));
        let old_row = old_row.unwrap_or_else(|| panic!("plans/README.md has no row {start}"));
        expected_page = expected_page.replace(old_row, &row);
    }
    if std::env::var_os("NEPH_BLESS").is_some() {
        fs::write(&path, expected_page).expect("writable");
    } else {
        assert!(
            expected_page == page,
            "plans/README.md: NEPH_BLESS=1 cargo test -p neph-campaign --test plans"
        );
    }
}
