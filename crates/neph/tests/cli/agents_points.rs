//! Points of capture at agents: requests are followed over two sites with a known delay between them. Needs root.

use neph_agent::policy::POLICY_FILE;
use serde_json::Value;
use std::fs;

use crate::agent_sites::{Program, file_names, is_empty, policy_for_this_host};
use crate::labs::{LabGuard, privileged};
use crate::neph::{RunOutput, TIMEOUT, eventually, start_and_read_line};

/// One-way delays of the link between `client` and `host`: the middle of the round trip is 3 ms away from both.
const FORWARD_MS: f64 = 8.0;
const REVERSE_MS: f64 = 2.0;
/// By how much the lab's link may be late on a busy machine.
const TOLERANCE_MS: f64 = 2.0;

const TOPOLOGY: &str = "version = 1\nrouting = \"direct\"\n\
    [[site]]\nname = \"client\"\naddress = \"10.88.0.1\"\n\
    [[site]]\nname = \"host\"\naddress = \"10.88.0.2\"\n\
    [[site]]\nname = \"office\"\naddress = \"10.88.0.3\"\n\
    [[link]]\na = \"client\"\nb = \"host\"\na_to_b = { delay = \"8ms\" }\nb_to_a = { delay = \"2ms\" }\n\
    [[link]]\na = \"office\"\nb = \"client\"\n\
    [[link]]\na = \"office\"\nb = \"host\"\n";

/// A controller at `office`, agents `near` at `client` and `far` at `host`, and a reflector at `host`.
struct PointSetup {
    lab: LabGuard,
    controller: Option<Program>,
    programs: Vec<Program>,
}

impl PointSetup {
    /// The agent at `host` takes `far` for its kernel's number, if there is one.
    fn up(letter: char, kinds: &str, far_end: Option<&str>) -> Self {
        let mut world = Self {
            lab: LabGuard::up(TOPOLOGY, letter),
            controller: None,
            programs: Vec::new(),
        };
        world.controller = Some(world.controller());
        world.start(
            "host",
            &["reflect", "--listen", "10.88.0.2:9000"],
            "answers",
        );
        world.start_agent("client", "near", (kinds, None));
        world.start_agent("host", "far", (kinds, far_end));
        world
    }

    fn program(&self, site: &str, arguments: &[&str], expected: &str) -> Program {
        let mut args = vec!["lab", "run", site, "--lab", &self.lab.name, "--"];
        args.extend(arguments);
        Program::start(&self.lab.folder, &args, expected).0
    }

    fn start(&mut self, site: &str, arguments: &[&str], expected: &str) {
        let mut args = vec![env!("CARGO_BIN_EXE_neph")];
        args.extend(arguments);
        let program = self.program(site, &args, expected);
        self.programs.push(program);
    }

    fn controller(&self) -> Program {
        let serve = [
            env!("CARGO_BIN_EXE_neph"),
            "control",
            "serve",
            "--control",
            "control",
            "--listen",
            "10.88.0.3:7443",
        ];
        self.program("office", &serve, "listening at")
    }

    fn start_agent(&mut self, site: &str, name: &str, (kinds, kernel): (&str, Option<&str>)) {
        let folder = self.lab.folder.path(name);
        fs::create_dir(&folder).expect("a folder");
        // Nothing else, so that no other kind's privileges help.
        let policy = policy_for_this_host();
        let policy = policy.lines().map(|line| match line.split_once(" = ") {
            Some(("kinds", _)) => format!("kinds = [\"{kinds}\"]\n"),
            _ => format!("{line}\n"),
        });
        let policy: String = policy.collect();
        assert!(policy.contains(kinds));
        fs::write(folder.join(POLICY_FILE), policy).expect("a file");
        let invited = self.neph(&["control", "invite", name, "--control", "control"]);
        assert_eq!(invited.status, 0, "{}", invited.err);
        let agent = format!(
            "exec {} agent --controller wss://10.88.0.3:7443 --folder {name} --invite {}",
            env!("CARGO_BIN_EXE_neph"),
            invited.out.trim()
        );
        let program = if let Some(kernel) = kernel {
            fs::write(folder.join("kernel"), kernel).expect("a file");
            let text =
                format!("mount --bind {name}/kernel /proc/sys/kernel/random/boot_id && {agent}");
            self.program(site, &["unshare", "-m", "sh", "-c", &text], "connected")
        } else {
            self.program(site, &["sh", "-c", &agent], "connected")
        };
        self.programs.push(program);
    }

    fn neph(&self, arguments: &[&str]) -> RunOutput {
        self.lab.folder.neph(arguments.iter().copied())
    }

    /// The interface of a site that leads to this address.
    fn interface(&self, site: &str, to: &str) -> String {
        let ran = self.lab.at(site, &format!("ip -o route get {to}"));
        let mut out = ran.out.split_whitespace();
        out.find(|word| *word == "dev").expect("a route");
        out.next().expect("an interface").to_owned()
    }

    /// Points at both agents.
    fn points(&self) -> [String; 2] {
        let [near_end, far_end] = [
            self.interface("client", "10.88.0.2"),
            self.interface("host", "10.88.0.1"),
        ];
        [
            format!("client=agent:near/{near_end}"),
            format!("host=agent:far/{far_end}"),
        ]
    }

    /// What `neph hops` tells of echoes that go while it records.
    fn hops(&self, extra: &[&str]) -> RunOutput {
        let points = self.points();
        let mut args = vec!["hops", &points[0], &points[1], "--format", "json"];
        args.extend(extra);
        self.records("udp", &args)
    }

    /// What a command tells of messages that go while it records.
    fn records(&self, protocol: &str, args: &[&str]) -> RunOutput {
        let mut all_args = args.to_vec();
        all_args.extend(["--control", "control", "--port", "9000"]);
        std::thread::scope(|scope| {
            let records = scope.spawn(|| self.neph(&all_args));
            let neph = env!("CARGO_BIN_EXE_neph");
            let ping =
                format!("{neph} ping {protocol}://10.88.0.2:9000 --count 200 --interval 100ms");
            let ran = self.lab.at("client", &ping);
            assert_eq!(ran.status, 0, "{}", ran.err);
            records.join().expect("it ends")
        })
    }

    /// Whether no capture is left at an agent.
    fn has_nothing_left(&self) -> bool {
        let folders = ["near/orders", "far/orders", "near/captures", "far/captures"];
        let mut folders = folders.iter().map(|folder| self.lab.folder.path(folder));
        folders.all(|folder| is_empty(&folder))
    }
}

/// Median and bound of a way of the echoes, milliseconds: before them a ping asks over TCP who answers.
fn segment(ran: &RunOutput, direction: &str) -> (f64, f64, u64) {
    let document: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.err));
    let rows = document["segments"].as_array().expect("segments");
    let row = rows
        .iter()
        .find(|row| row["direction"] == direction && row["protocol"] == "udp");
    let row = row.unwrap_or_else(|| panic!("{document}"));
    let millis = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{row}")) / 1e6;
    (
        millis("p50_ns"),
        millis("bound_ns"),
        row["n"].as_u64().expect("a count"),
    )
}

fn lines(ran: &RunOutput) -> Vec<Value> {
    let lines = ran.out.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn is_true((p50, bound, n): (f64, f64, u64), delay: f64) -> bool {
    (delay - bound..delay + bound + TOLERANCE_MS).contains(&p50) && n >= 20
}

#[test]
fn a_segment_between_two_agents_has_the_delay_of_its_link() {
    if !privileged("a_segment_between_two_agents_has_the_delay_of_its_link") {
        return;
    }
    let world = PointSetup::up('p', "capture", None);
    let ran = world.hops(&["-w", "4s"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let (forward, reverse) = (segment(&ran, "forward"), segment(&ran, "reverse"));
    assert!(
        is_true(forward, FORWARD_MS) && is_true(reverse, REVERSE_MS),
        "{forward:?} {reverse:?}"
    );
    eventually("nothing is left", TIMEOUT, || world.has_nothing_left());
    let point = points_of_agent(&world);
    let watch = [
        "watch",
        &point,
        "--duration",
        "5s",
        "--format",
        "ndjson",
        "--write",
        "w.pcap",
    ];
    let ran = world.records("ws", &watch);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let lines = lines(&ran);
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert!((5..=6).contains(&of("period")), "{}", ran.out);
    let flow = lines.iter().find(|line| line["kind"] == "flow");
    let flow = flow.expect("a flow");
    assert_eq!(flow["server"], "10.88.0.2:9000");
    let response = flow["round_trips"]["server"]["response"]["p50_ns"].as_f64();
    let response = response.unwrap_or_else(|| panic!("{flow}")) / 1e6;
    let total = FORWARD_MS + REVERSE_MS;
    assert!(
        (total..total + 2.0 * TOLERANCE_MS).contains(&response),
        "{response}"
    );
    let output = world.neph(&["read", "w.pcap", "--format", "json"]);
    let second: Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!(
        second["summary"]["packets_captured"],
        summary(&lines)["packets_captured"]
    );
    let ran = world.neph(&["watch", &point, "--control", "control", "--site", "client"]);
    assert!(
        ran.status == 2 && ran.err.contains("an agent's"),
        "{}",
        ran.err
    );
    let ran = world.neph(&["watch", "lo", "--control", "control"]);
    assert!(
        ran.status == 2 && ran.err.contains("no effect"),
        "{}",
        ran.err
    );
}

fn summary(lines: &[Value]) -> &Value {
    let summary = lines.iter().find(|line| line["kind"] == "summary");
    summary.expect("a summary")
}

/// The interface of `near`, without a name.
fn points_of_agent(world: &PointSetup) -> String {
    let [near, _] = world.points();
    near.replace("client=", "")
}

/// The kernels are said to be two, so that the clocks have to be compared; they are one, and what is told must hold.
#[test]
fn clocks_of_two_agents_are_more_exact_than_packets_alone() {
    if !privileged("clocks_of_two_agents_are_more_exact_than_packets_alone") {
        return;
    }
    let world = PointSetup::up('q', "capture", Some("another-kernel"));
    let ran = world.hops(&["-w", "20s"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let (forward, reverse) = (segment(&ran, "forward"), segment(&ran, "reverse"));
    assert!(
        is_true(forward, FORWARD_MS) && is_true(reverse, REVERSE_MS),
        "{forward:?} {reverse:?}"
    );
    // Packets alone leave half of the round trip.
    let half = f64::midpoint(FORWARD_MS, REVERSE_MS);
    assert!(forward.1 > 0.0 && forward.1 < half - 1.0, "{forward:?}");
}

/// Of these kernels the clocks have to be compared. A limit of 5 ms is between the delays of the two ways.
#[test]
fn alarms_between_agents_are_raised_while_they_record() {
    if !privileged("alarms_between_agents_are_raised_while_they_record") {
        return;
    }
    let world = PointSetup::up('s', "capture", Some("another-kernel"));
    let points = world.points();
    let args = [
        "hops",
        &points[0],
        &points[1],
        "--format",
        "ndjson",
        "-w",
        "15s",
        "--alarm",
        "client - host > 5ms p50 for 3s",
    ];
    let ran = world.records("udp", &args);
    assert_eq!(ran.status, 3, "{}", ran.err);
    let lines = lines(&ran);
    let alarms = lines.iter().filter(|line| line["kind"] == "alarm");
    let alarms: Vec<&Value> = alarms.collect();
    // The whole captures say the same, which is not told twice.
    assert_eq!(alarms.len(), 1, "{}", ran.err);
    let alarm = alarms[0];
    assert_eq!(alarm["evaluated_on"], "live", "{alarm}");
    assert_eq!(alarm["direction"], "forward", "{alarm}");
    let bound = alarm["bound_ns"].as_f64().expect("a bound") / 1e6;
    assert!(bound > 0.0 && bound < 3.0, "{bound}");
    assert!(
        ran.err
            .contains("on a sample of about 64 packets per second"),
        "{}",
        ran.err
    );
}

#[test]
fn a_policy_without_capture_refuses_with_its_reason_and_counts_it() {
    if !privileged("a_policy_without_capture_refuses_with_its_reason_and_counts_it") {
        return;
    }
    let mut world = PointSetup::up('r', "capture", None);
    world.start_agent("host", "shut", ("reflector", None));
    let [near, far] = world.points();
    let denied = far.replace("agent:far", "agent:shut");
    let ran = world.neph(&["hops", &near, &denied, "--control", "control", "-w", "5s"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    let why = "agent shut refuses: this agent's policy does not allow 'capture'; add it to kinds in its policy file";
    assert!(ran.err.contains(why), "{}", ran.err);
    eventually("it is counted", TIMEOUT, || {
        let list = world.neph(&["agents", "--control", "control", "--format", "json"]);
        let list: Value = serde_json::from_str(&list.out).expect("JSON");
        let denied = list.as_array().expect("a list").iter();
        let mut denied = denied.filter(|row| row["agent"] == "shut");
        denied.any(|row| row["refusals"]["kind"] == 1)
    });
    let ran = world.neph(&["hops", &near, "b=agent:none/eth0", "--control", "control"]);
    assert!(
        ran.status == 2 && ran.err.contains("agent none is not enrolled"),
        "{}",
        ran.err
    );
    let ran = world.neph(&["hops", &near, &far, "--control", "control", "-w", "2h"]);
    assert!(
        ran.status == 2 && ran.err.contains("an agent captures"),
        "{}",
        ran.err
    );
    let ran = world.neph(&["hops", &near, &far]);
    assert!(
        ran.status == 2 && ran.err.contains("add --control FOLDER"),
        "{}",
        ran.err
    );
}

#[test]
fn a_controller_that_is_killed_loses_no_capture_and_a_command_that_is_killed_leaves_none() {
    if !privileged("a_killed_controller_loses_no_capture") {
        return;
    }
    let mut world = PointSetup::up('s', "capture", None);
    let [near, far] = world.points();
    // The one that captures when a command is killed is asked to forget it by the next command.
    let mut command = world
        .lab
        .folder
        .command(["hops", &near, &far, "--control", "control"]);
    let (child, _messages, _) = start_and_read_line(&mut command);
    eventually("it captures", TIMEOUT, || {
        !is_empty(&world.lab.folder.path("far/captures"))
    });
    Program(child).kill();
    let controller = world.controller.take().expect("it runs");
    let (mut next, world) = (None, &world);
    let folders = ["near/captures", "far/captures"].map(|name| world.lab.folder.path(name));
    // Those of the killed command.
    let earlier = folders.each_ref().map(file_names);
    let ran = std::thread::scope(|scope| {
        let rule = "client - host forward > 5ms p50";
        let hops = scope.spawn(move || world.hops(&["-w", "12s", "--alarm", rule]));
        eventually("both capture for this command", TIMEOUT, || {
            let now = folders.each_ref().map(file_names);
            !now[0].is_subset(&earlier[0]) && !now[1].is_subset(&earlier[1])
        });
        controller.kill();
        next = Some(world.controller());
        hops.join().expect("it ends")
    });
    assert_eq!(ran.status, 3, "{}", ran.err);
    assert!(segment(&ran, "forward").2 >= 60, "{}", ran.out);
    let alarms: Value = serde_json::from_str(&ran.out).expect("JSON");
    let alarm = &alarms["alarms"][0];
    let of = (&alarm["evaluated_on"], &alarm["segment"]);
    assert_eq!(of, (&"whole".into(), &"client - host".into()), "{alarm}");
    eventually("nothing is left", TIMEOUT, || world.has_nothing_left());
}
