//! Metrics of a controller, its agents and a campaign: as Prometheus scrapes them, and as a receiver of OTLP gets them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::thread;

use neph_agent::policy::POLICY_FILE;
use neph_probe::Reflector;
use neph_sys::clock;
use serde_json::Value;

use crate::agent_sites::{Program, policy_for_this_host};
use crate::labs::privileged;
use crate::neph::{TIMEOUT, TestFolder, eventually, send_signal, start_and_read_line};
use crate::pings::reflector;
use crate::privileges::{NICE, RAW, assert_capabilities};
use crate::servers::free_port;

/// The last one may not trace routes: what it is ordered of these it refuses.
const SITES: [&str; 2] = ["ams", "lju"];

/// Asks with GET; the body of an answer with status 200.
pub(crate) fn http_get(port: u16, path: &str) -> Option<String> {
    let mut peer = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n");
    peer.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    peer.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let is_success = head.split(' ').nth(1) == Some("200");
    is_success.then(|| body.to_owned())
}

/// A program that runs, and what it printed until it had printed what was awaited.
pub(crate) fn start_until(command: &mut Command, expected_text: &str) -> (Program, Vec<String>) {
    let (child, printed, first) = start_and_read_line(command);
    let mut lines = printed.lines();
    let mut entries = vec![first.trim_end().to_owned()];
    while !entries.iter().any(|line| line.contains(expected_text)) {
        let next = lines
            .next()
            .unwrap_or_else(|| panic!("{expected_text}: {entries:?}"));
        entries.push(next.expect("readable"));
    }
    // Whatever else it prints must not stop it.
    thread::spawn(move || lines.for_each(drop));
    (Program(child), entries)
}

/// The port in the line that has this before an address.
pub(crate) fn port_after(lines: &[String], before: &str) -> u16 {
    let address_text = lines.iter().find_map(|line| line.split(before).nth(1));
    let address_text = address_text.unwrap_or_else(|| panic!("{before}: {lines:?}"));
    let address = address_text.split([',', '/']).next().expect("an address");
    let port = address.rsplit(':').next().expect("a port");
    port.parse().expect("a number")
}

const METRICS: &str = "metrics at http://";

/// A controller and two agents with `--prometheus`, and what their plan measures.
pub(crate) struct MonitoredSites {
    pub(crate) folder: TestFolder,
    /// Where metrics are, by who has them.
    pub(crate) ports: BTreeMap<&'static str, u16>,
    control: Option<Program>,
    agents: BTreeMap<&'static str, Program>,
    _reflector: Reflector,
}

impl MonitoredSites {
    pub(crate) fn new() -> Self {
        let folder = TestFolder::empty();
        let reflector = reflector();
        fs::write(folder.path("p.toml"), plan(reflector.address().port())).expect("writable");
        let serve = [
            "control",
            "serve",
            "--control",
            "control",
            "--listen",
            "127.0.0.1:0",
        ];
        let mut command = folder.command(serve);
        let (control, lines) = start_until(command.args(["--prometheus", "0"]), METRICS);
        let controller = format!("wss://127.0.0.1:{}", port_after(&lines, "listening at "));
        let mut watched = Self {
            folder,
            ports: BTreeMap::from([("control", port_after(&lines, METRICS))]),
            control: Some(control),
            agents: BTreeMap::new(),
            _reflector: reflector,
        };
        for site in SITES {
            watched.start_agent(site, &controller);
        }
        watched
    }

    fn start_agent(&mut self, site: &'static str, controller: &str) {
        let folder = format!("agent-{site}");
        fs::create_dir(self.folder.path(&folder)).expect("writable");
        let mut policy = policy_for_this_host();
        if site == SITES[1] {
            policy = policy.replace("\"traceroute\", ", "");
        }
        fs::write(self.folder.path(&folder).join(POLICY_FILE), policy).expect("writable");
        let invite = ["control", "invite", site, "--control", "control"];
        let invitation = self.folder.neph(invite).out;
        let arguments = ["agent", "--controller", controller, "--folder", &folder];
        let mut command = self.folder.command(arguments);
        command.args(["--invite", invitation.trim(), "--prometheus", "0"]);
        let (agent, lines) = start_until(&mut command, "connected to");
        self.ports.insert(site, port_after(&lines, METRICS));
        self.agents.insert(site, agent);
    }

    pub(crate) fn run(&mut self) -> Program {
        let mut command = self.folder.command(["run", "p.toml", "--prometheus", "0"]);
        command.args(["--control", "control", "-q", "--no-report"]);
        let (run, lines) = start_until(command.stdout(Stdio::null()), METRICS);
        self.ports.insert("run", port_after(&lines, METRICS));
        run
    }

    /// Waits until the page has a line that begins with each of these.
    fn wait_for_metrics(&self, whose: &str, expected_text: &[&str]) -> String {
        let mut page = String::new();
        for begin in expected_text {
            eventually(&format!("{whose}: {begin}"), TIMEOUT, || {
                page = http_get(self.ports[whose], "/metrics").unwrap_or_default();
                page.lines().any(|line| line.starts_with(begin))
            });
        }
        page
    }
}

/// The value of a metric on a page; 0 where it is not there.
fn value<T: FromStr + Default>(page: &str, metric: &str) -> T {
    let mut lines = page.lines();
    let value = lines.find_map(|line| line.strip_prefix(metric)?.trim().parse().ok());
    value.unwrap_or_default()
}

/// What both agents measure: a route that the second one refuses, and an alarm that is always raised.
fn plan(port: u16) -> String {
    let sources = SITES.map(|site| format!("\"at {site}\"")).join(", ");
    let sites = SITES.map(|site| format!("[[site]]\nname = \"at {site}\"\nagent = \"{site}\"\n"));
    format!(
        "version = 1\nname = \"p\"\ninterval = \"10ms\"\nmessages = 60\nblocks = 60\n\
         alarm = \"round_trip > 1us p50\"\n{}[[endpoint]]\nname = \"here\"\n\
         url = \"ws://127.0.0.1:{port}\"\nfrom = [{sources}]\n[companion]\nenabled = false\n\
         [traceroute]\n",
        sites.concat()
    )
}

#[test]
fn a_controller_its_agents_and_a_campaign_serve_metrics() {
    let mut watched = MonitoredSites::new();
    let run = watched.run();
    let page = watched.wait_for_metrics(
        "control",
        &[
            "neph_control_agents_enrolled 2",
            "neph_control_agent_connected{agent=\"ams\"} 1",
            "neph_control_campaign_attached 1",
            "neph_control_orders_running{agent=\"ams\"} ",
            "neph_control_clock_bound_seconds{agent=\"lju\"} 0.",
            "neph_control_refusals_total{agent=\"lju\",reason=\"kind\"} ",
        ],
    );
    assert!(!page.contains("flow"), "{page}");
    watched.wait_for_metrics(
        "ams",
        &[
            "neph_agent_orders_running{agent=\"ams\"} 1",
            "neph_agent_connected{agent=\"ams\"} 1",
            "neph_agent_connections_total{agent=\"ams\"} 1",
            "neph_agent_sent_today_bytes{agent=\"ams\"} ",
            "neph_agent_day_limit_bytes{agent=\"ams\"} 100000000000",
            "neph_agent_clock_bound_seconds{agent=\"ams\"} 0.",
        ],
    );
    watched.wait_for_metrics(
        "lju",
        &["neph_agent_refusals_total{agent=\"lju\",reason=\"kind\"} "],
    );
    let labels = "site=\"at ams\",endpoint=\"here\",kind=\"ws\"";
    let times = format!("neph_run_response_time_seconds_count{{{labels}}}");
    let page = watched.wait_for_metrics(
        "run",
        &[
            &times,
            &format!("neph_run_experiments_ended_total{{{labels},status=\"complete\"}} "),
            &format!("neph_run_alarms_total{{{labels},rule=\"round_trip > 1us p50\"}} "),
        ],
    );
    let times: u64 = value(&page, &times);
    assert!(times >= 60 && times.is_multiple_of(60), "{page}");
    for (outcome, count) in [("reply", times), ("lost", 0), ("error", 0)] {
        let messages = format!("neph_run_messages_total{{{labels},outcome=\"{outcome}\"}}");
        assert!(page.contains(&messages), "{page}");
        assert_eq!(value::<u64>(&page, &messages), count, "{page}");
    }
    assert!(
        page.contains("# TYPE neph_run_response_time_seconds histogram"),
        "{page}"
    );
    drop(run);
    watched.wait_for_metrics("control", &["neph_control_campaign_attached 0"]);
}

#[test]
fn an_agent_that_is_gone_stays_in_the_controllers_metrics_and_its_silence_grows() {
    let mut watched = MonitoredSites::new();
    watched.agents.remove("lju").expect("it runs").kill();
    let page = watched.wait_for_metrics(
        "control",
        &["neph_control_agent_connected{agent=\"lju\"} 0"],
    );
    assert!(
        !page.contains("neph_control_orders_running{agent=\"lju\"}"),
        "{page}"
    );
    let silence = || -> f64 {
        let page = http_get(watched.ports["control"], "/metrics").unwrap_or_default();
        value(&page, "neph_control_agent_silence_seconds{agent=\"lju\"}")
    };
    let first = silence();
    eventually("its silence grows", TIMEOUT, || silence() > first + 1.0);
    watched.control.take().expect("it runs").kill();
    watched.wait_for_metrics("ams", &["neph_agent_connected{agent=\"ams\"} 0"]);
}

#[test]
fn an_agent_with_metrics_keeps_only_its_usual_privileges() {
    if !privileged("an_agent_with_metrics_keeps_only_its_usual_privileges") {
        return;
    }
    let watched = MonitoredSites::new();
    // The policy has fleets: see the table of privileges.
    let capabilities = RAW | NICE | crate::privileges::ADMIN | crate::privileges::BPF;
    assert_capabilities(
        watched.agents["ams"].0.id(),
        capabilities,
        "agent --prometheus",
    );
    watched.wait_for_metrics("ams", &["neph_agent_connected{agent=\"ams\"} 1"]);
}

#[test]
fn invalid_metrics_exports_are_refused() {
    let folder = TestFolder::empty();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("an address").to_string();
    let serve = [
        "control",
        "serve",
        "--control",
        "c",
        "--listen",
        "127.0.0.1:0",
    ];
    for (extra_args, status, part) in [
        (
            ["--prometheus", &at],
            1,
            "--prometheus takes another address",
        ),
        (["--prometheus", "x"], 2, "ADDRESS:PORT"),
        (["--otlp", "x:4318"], 2, "http://"),
    ] {
        let ran = folder.neph(serve.into_iter().chain(extra_args));
        assert_eq!((ran.status, ran.out.as_str()), (status, ""), "{}", ran.err);
        assert!(ran.err.contains(part), "{}", ran.err);
    }
}

/// Takes one POST and answers 200; its first line, its Content-Type and its body.
fn receive(listener: &TcpListener) -> (String, String, Value) {
    let (peer, _) = listener.accept().expect("accept");
    let mut reader = BufReader::new(peer.try_clone().expect("a clone"));
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let field = |name: &str| {
        let mut fields = lines.iter().filter_map(|line| line.split_once(": "));
        let field = fields.find(|(key, _)| key.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.to_owned()).expect("the field")
    };
    let mut body = vec![0; field("content-length").parse().expect("a length")];
    reader.read_exact(&mut body).expect("the body");
    let answer =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    (&peer).write_all(answer).expect("answer");
    let json = serde_json::from_slice(&body).expect("JSON");
    (lines[0].clone(), field("content-type"), json)
}

#[test]
fn a_receiver_of_otlp_gets_the_metrics_at_the_end_too() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let folder = TestFolder::empty();
    let arguments = [
        "control",
        "serve",
        "--control",
        "c",
        "--listen",
        "127.0.0.1:0",
        "--otlp",
        &url,
    ];
    let (mut control, _) = Program::start(&folder, &arguments, "listening at");
    send_signal("TERM", control.0.id());
    let (first, kind, request) = receive(&listener);
    assert_eq!(first, "POST /v1/metrics HTTP/1.1");
    assert_eq!(kind, "application/json");
    let of = &request["resourceMetrics"][0];
    let service = &of["resource"]["attributes"][0];
    assert_eq!(service["key"], "service.name");
    assert_eq!(service["value"]["stringValue"], "neph control");
    let scope = &of["scopeMetrics"][0];
    assert_eq!(scope["scope"]["name"], "nephoscope");
    let metrics = scope["metrics"].as_array().expect("metrics");
    let with_name = |name: &str| metrics.iter().find(|metric| metric["name"] == name);
    let enrolled = with_name("neph_control_agents_enrolled").expect("it is there");
    let point = &enrolled["gauge"]["dataPoints"][0];
    assert_eq!(point["asInt"], "0", "64 bits are a string: {enrolled}");
    let at: i64 = point["timeUnixNano"]
        .as_str()
        .expect("a string")
        .parse()
        .expect("a number");
    let now = clock::wall().0;
    assert!((now - 60_000_000_000..=now).contains(&at), "{at} {now}");
    assert!(
        with_name("neph_control_orders_running").is_none(),
        "no agent, no sample"
    );
    assert!(control.0.wait().expect("it ends").success());
}

#[test]
fn a_receiver_of_otlp_that_is_away_is_reported_and_changes_nothing() {
    let folder = TestFolder::empty();
    let url = format!("http://127.0.0.1:{}", free_port());
    let mut command = folder.command([
        "control",
        "serve",
        "--control",
        "c",
        "--listen",
        "127.0.0.1:0",
        "--otlp",
        &url,
    ]);
    let (child, printed, _) = start_and_read_line(&mut command);
    send_signal("TERM", child.id());
    let printed: Vec<String> = printed
        .lines()
        .map(|line| line.expect("readable"))
        .collect();
    let ran = child.wait_with_output().expect("it ends");
    assert!(ran.status.success(), "{printed:?}");
    let unreachable_line = printed
        .iter()
        .filter(|line| line.contains("push metrics to"));
    assert_eq!(unreachable_line.count(), 1, "{printed:?}");
}
