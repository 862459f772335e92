//! `neph throughput` at the command line, over loopback and over links of the lab.

#![expect(clippy::print_stdout, reason = "a skipped test is reported")]

use std::io::Read;
use std::process::{Child, Stdio};
use std::time::Duration;

use neph_sys::process;
use serde_json::Value;

use crate::labs::{LabGuard, TWO_SITES, privileged};
use crate::neph::{RunOutput, command, eventually, neph, send_signal, start_and_read_line};

/// A server in the background on a port of its own; ended with this.
pub(crate) struct ThroughputServer {
    process: Child,
    pub(crate) address: String,
}

impl ThroughputServer {
    pub(crate) fn start(options: &[&str]) -> Self {
        let mut serve = command();
        serve.args(["throughput", "serve", "--listen", "127.0.0.1:0"]);
        let (process, _, first) = start_and_read_line(serve.args(options));
        let fields = first.split_whitespace();
        let address = fields.skip_while(|word| *word != "throughput:").nth(1);
        let address = address.unwrap_or_else(|| panic!("{first}")).to_owned();
        Self { process, address }
    }
}

impl Drop for ThroughputServer {
    fn drop(&mut self) {
        send_signal("TERM", self.process.id());
        self.process.wait().expect("it ends");
    }
}

pub(crate) fn document(ran: &RunOutput) -> Value {
    assert_eq!(ran.status, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).expect("JSON")
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_target_rate_is_reached_and_named_in_text_and_json() {
    let serving = ThroughputServer::start(&[]);
    let args = |rest: &str| {
        format!(
            "throughput {} -w 2s --rate 50Mbit/s {rest}",
            serving.address
        )
    };
    let ran = neph(args("--udp --format json").split_whitespace());
    let shown = document(&ran);
    let entry = &shown["directions"][0];
    assert_eq!(
        (&shown["schema"], &entry["limit"]),
        (&2.into(), &"target_rate".into())
    );
    assert!(
        (number(&entry["goodput_bit_s"]) / 50e6 - 1.0).abs() < 0.01,
        "{entry}"
    );
    assert_eq!(shown["client"]["sent"].as_array().map(Vec::len), Some(2));
    assert!(shown["server_end"]["cpu"][0]["cores"][0]["busy_percent"].is_number());
    let text = neph(args("--direction both").split_whitespace());
    assert_eq!(text.status, 0, "{}", text.err);
    for part in [
        "\nup: ",
        "\ndown: ",
        "The requested rate is the limit: 50 Mbit/s",
    ] {
        assert!(text.out.contains(part), "{}", text.out);
    }
    let csv = neph(args("--format csv").split_whitespace());
    assert_eq!(csv.out.lines().count(), 3, "{}", csv.out);
    let lines = neph(args("--format ndjson").split_whitespace());
    let kinds: Vec<Value> = lines
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["kind"].clone())
        .collect();
    assert_eq!(kinds, ["second", "second", "summary"]);
}

#[test]
fn invalid_or_refused_throughput_requests_are_reported() {
    let serving = ThroughputServer::start(&[
        "--max-duration",
        "5s",
        "--max-streams",
        "2",
        "--max-rate",
        "1Gbit/s",
    ]);
    let address = serving.address.as_str();
    for (args, status, why) in [
        ("-w 6s --rate 1Mbit/s", 1, "this server allows at most 5"),
        (
            "-w 1s --rate 1Mbit/s -n 3",
            1,
            "this server allows at most 2",
        ),
        (
            "-w 1s --rate 2Gbit/s",
            1,
            "this server allows at most 1 Gbit/s",
        ),
        ("-w 1s", 1, "give a rate"),
        ("-w 1ms", 2, "write 100ms to 24h"),
        ("--udp --size 31", 2, "write 32 to 65507 bytes"),
        (
            "--congestion nonesuch --rate 1Mbit/s",
            2,
            "--congestion nonesuch",
        ),
    ] {
        let ran = neph(["throughput", address].into_iter().chain(args.split(' ')));
        assert_eq!(ran.status, status, "{args}: {}", ran.err);
        assert!(ran.err.contains(why), "{args}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{args}: {}", ran.err);
    }
    let address_after_drop = serving.address.clone();
    drop(serving);
    let ran = neph(["throughput", &address_after_drop]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(
        ran.err.contains("is neph throughput serve there?"),
        "{}",
        ran.err
    );
}

#[test]
fn ctrl_c_prints_the_result_and_frees_the_throughput_server() {
    let serving = ThroughputServer::start(&[]);
    let mut client = command();
    client.args([
        "throughput",
        &serving.address,
        "-w",
        "5min",
        "--rate",
        "10Mbit/s",
    ]);
    let client = client.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut client = client.spawn().expect("neph runs");
    let mut out = client.stdout.take().expect("it is piped");
    let (mut text, mut buffer) = (String::new(), [0; 1024]);
    // The heading, and a second.
    eventually("a second is shown", Duration::from_secs(20), || {
        let count = out.read(&mut buffer).expect("it can be read");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        text.lines().count() >= 2
    });
    send_signal("INT", client.id());
    out.read_to_string(&mut text).expect("it ends");
    assert_eq!(client.wait().expect("it ends").code(), Some(130));
    assert!(
        text.contains("\nup: ") && text.contains("is the limit"),
        "{text}"
    );
    let next = neph([
        "throughput",
        &serving.address,
        "-w",
        "200ms",
        "--rate",
        "1Mbit/s",
    ]);
    assert_eq!(next.status, 0, "{}", next.err);
}

/// A link of the lab between two sites, with a server at the second.
pub(crate) struct ServerBehindLink {
    lab: LabGuard,
    server: Child,
}

impl ServerBehindLink {
    pub(crate) fn up(link: &str, letter: char) -> Self {
        let topology = TWO_SITES.replace("delay = \"2ms\"", link);
        let lab = LabGuard::up(&topology, letter);
        let mut serve = process::command("nsenter");
        serve.arg(format!("--net=/run/netns/neph-{}-b", lab.name));
        serve.arg(lab.folder.command([]).get_program());
        let (server, _, first) = start_and_read_line(serve.args(["throughput", "serve"]));
        assert!(
            first.contains("serves throughput and request/response tests"),
            "{first}"
        );
        Self { lab, server }
    }

    /// What a command of neph measures from the first site.
    pub(crate) fn measured(&self, name: &str, options: &str) -> Value {
        let program = self.lab.folder.command([]);
        let program = program.get_program().to_string_lossy();
        let command = format!("{program} {name} 10.80.0.2 --format json {options}");
        document(&self.lab.at("a", &command))
    }
}

impl Drop for ServerBehindLink {
    fn drop(&mut self) {
        send_signal("TERM", self.server.id());
        self.server.wait().expect("it ends");
    }
}

#[test]
fn a_link_of_20_mbit_is_measured_and_named_as_the_limit() {
    if !privileged("a_link_of_20_mbit_is_measured_and_named_as_the_limit") {
        return;
    }
    let linked = ServerBehindLink::up(
        "rate = \"20Mbit/s\"\ndelay = \"5ms\"\nqueue = \"64KiB\"",
        't',
    );
    // The rate counts frames: of 1514 bytes at most 1448 are payload of TCP, of 1490 of UDP 1448 are.
    let tcp = linked.measured("throughput", "-w 6s --congestion cubic");
    let entry = &tcp["directions"][0];
    let goodput = number(&entry["goodput_bit_s"]) / (20e6 * 1448.0 / 1514.0);
    assert!(
        (goodput - 1.0).abs() < 0.03,
        "{goodput} {}",
        entry["limit_text"]
    );
    assert_eq!(entry["limit"], "path", "{}", entry["limit_text"]);
    let udp = linked.measured("throughput", "--udp --rate 30Mbit/s -w 4s");
    let entry = &udp["directions"][0];
    let goodput = number(&entry["goodput_bit_s"]) / (20e6 * 1448.0 / 1490.0);
    assert!(
        (goodput - 1.0).abs() < 0.03,
        "{goodput} {}",
        entry["limit_text"]
    );
    assert_eq!(entry["limit"], "path", "{}", entry["limit_text"]);
    let neph_goodput = number(&tcp["directions"][0]["goodput_bit_s"]);
    if let Some(theirs) = measure_with_iperf3(&linked.lab) {
        assert!(
            (neph_goodput / theirs - 1.0).abs() < 0.05,
            "neph {neph_goodput}, iperf3 {theirs}"
        );
    }
}

/// What iperf3 measures over the same link, where it is installed.
fn measure_with_iperf3(lab: &LabGuard) -> Option<f64> {
    if process::command("iperf3")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("SKIP: iperf3 is not installed");
        return None;
    }
    let mut server = process::command("nsenter");
    server.arg(format!("--net=/run/netns/neph-{}-b", lab.name));
    let server = server.args(["iperf3", "-s", "-1"]).stdout(Stdio::null());
    let mut server = server.spawn().expect("nsenter runs");
    let mut shown = Value::Null;
    eventually("iperf3 answers", Duration::from_secs(30), || {
        let ran = lab.at("a", "iperf3 -c 10.80.0.2 -t 6 -C cubic -J");
        shown = serde_json::from_str(&ran.out).unwrap_or_default();
        shown["end"]["sum_received"]["bits_per_second"].is_number()
    });
    server.wait().expect("it ends");
    Some(number(&shown["end"]["sum_received"]["bits_per_second"]))
}

#[test]
fn an_injected_loss_of_one_percent_is_found() {
    if !privileged("an_injected_loss_of_one_percent_is_found") {
        return;
    }
    let linked = ServerBehindLink::up("delay = \"2ms\"\nloss = \"1%\"", 'u');
    let shown = linked.measured("throughput", "--udp --rate 20Mbit/s -w 6s --direction both");
    for entry in shown["directions"].as_array().expect("a list") {
        let udp = &entry["udp"];
        let (sent, lost) = (number(&udp["sent"]), number(&udp["lost"]));
        // 20 Mbit/s for 6 s are 10,359 datagrams, of which 103.6 are lost with a deviation of 10.1.
        assert!(sent > 10_000.0, "{udp}");
        let deviation = (sent * 0.01 * 0.99).sqrt();
        assert!((lost - sent * 0.01).abs() < 4.0 * deviation, "{udp}");
        assert_eq!(udp["socket_drops"], 0, "{udp}");
    }
}
