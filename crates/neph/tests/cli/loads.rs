//! `neph load` at the command line, against a service of known speed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::neph::{TestFolder, command, neph, send_signal, start_and_read_line};
use crate::servers::free_port;
use crate::throughputs::{document, number};

/// A service of known speed in the background; ended with this.
struct KnownService {
    process: Child,
    url: String,
}

impl KnownService {
    fn start(model: &str) -> Self {
        let port = free_port();
        let mut reflect = command();
        reflect.args(["reflect", "--listen", "127.0.0.1:0", "--serve"]);
        let (process, _, _) = start_and_read_line(reflect.arg(format!("{model} port={port}")));
        let url = format!("http://127.0.0.1:{port}/");
        Self { process, url }
    }

    fn load(&self, options: &str) -> Value {
        let line = format!("load {} --format json {options}", self.url);
        document(&neph(line.split_whitespace()))
    }
}

impl Drop for KnownService {
    fn drop(&mut self) {
        send_signal("TERM", self.process.id());
        self.process.wait().expect("it ends");
    }
}

/// 12 workers keep 2 servers of 10 ms busy: 200 responses per second, and by Little's law
/// 12 / 200 s - 5 ms = 55 ms for each.
#[test]
fn a_closed_loop_measures_the_capacity_of_a_service() {
    let service = KnownService::start("c=2 10ms");
    let shown = service.load("--workers 12 --think 5ms --warmup 1s -w 4s --lateness 1s");
    let rate = number(&shown["responses_per_s"]);
    assert!((rate / 200.0 - 1.0).abs() < 0.03, "{rate}");
    let mean = number(&shown["response_time"]["mean_ns"]);
    assert!((mean / 55e6 - 1.0).abs() < 0.06, "{mean}");
    let workers = number(&shown["workers_by_little"]);
    assert!((workers / 12.0 - 1.0).abs() < 0.03, "{workers}");
    assert_eq!(shown["demand"]["think_time"]["kind"], "constant");
    assert_eq!(shown["requests"]["connections"], 12);
    assert_eq!(shown["seconds"].as_array().map(Vec::len), Some(4));
    assert_eq!(shown["is_generated"], true);
}

#[test]
fn an_open_loop_counts_the_wait_for_a_full_service() {
    let service = KnownService::start("c=1 10ms queue=5");
    let shown = service.load("--rate 150/s -w 3s --lateness 1s");
    let requests = &shown["requests"];
    assert_eq!(requests["due"], 450);
    let successful = number(&requests["successful"]);
    assert!((successful / 306.0 - 1.0).abs() < 0.06, "{requests}");
    assert_eq!(requests["statuses"]["503"], requests["error_responses"]);
    // A third has no success: the median exists, the 90th percentile does not.
    let times = &shown["response_time"];
    assert!(number(&times["p50_ns"]) > 40e6, "{times}");
    assert_eq!(times["p90_ns"], Value::Null);
}

/// The knee of 2 servers of 20 ms and 10 ms think time is at 2 x (20 + 10) / 20 = 3 workers.
#[test]
fn levels_show_the_knee_of_a_service_and_its_servers() {
    let service = KnownService::start("c=2 20ms");
    let shown =
        service.load("--levels 8,1,2,3,4,6 --blocks 3 --think 10ms -w 1500ms --lateness 1s");
    let levels = shown["levels"].as_array().expect("a list");
    let workers: Vec<f64> = levels
        .iter()
        .map(|level| number(&level["workers"]))
        .collect();
    assert_eq!(
        (workers, &shown["blocks"]),
        (vec![1.0, 2.0, 3.0, 4.0, 6.0, 8.0], &3.into())
    );
    let knee = &shown["knee"];
    assert!(
        (number(&knee["workers"]) / 3.0 - 1.0).abs() < 0.08,
        "{knee}"
    );
    assert!(
        (number(&knee["capacity_per_s"]) / 100.0 - 1.0).abs() < 0.05,
        "{knee}"
    );
    assert_eq!(levels[0]["region"], "stable");
    assert_eq!(levels[5]["region"], "overloaded");
    for model in shown["models"].as_array().expect("a list") {
        if model["model"] == "asymptotes" {
            assert!(
                (number(&model["servers"]) / 2.0 - 1.0).abs() < 0.1,
                "{model}"
            );
            assert!(
                (number(&model["service_ns"]) / 20e6 - 1.0).abs() < 0.1,
                "{model}"
            );
        }
    }
    assert_eq!(shown["runs"].as_array().map(Vec::len), Some(18));
}

#[test]
fn a_size_follows_from_a_service_time_or_from_levels() {
    let goal = ["size", "--rate", "500/s", "--goal", "p99 < 400ms"];
    let with = |more: &[&str]| neph(goal.into_iter().chain(more.iter().copied()));
    let text = with(&["--service-time", "63ms"]);
    assert!(
        text.status == 0 && text.out.starts_with('3'),
        "{}",
        text.out
    );
    assert!(text.out.contains("M/M/c"), "{}", text.out);
    let short = with(&["--service-time", "500ms"]);
    assert!(
        short.status == 1 && short.out.contains("No number"),
        "{}",
        short.out
    );
    let folder = TestFolder::empty();
    let levels = folder.path("levels.json");
    let model = r#"{"knee":{"is_reached":true},"models":[{"model":"queue","service_ns":63000000,"servers":8.0,"error_percent":1.5}]}"#;
    std::fs::write(&levels, model).expect("written");
    let path = levels.to_str().expect("a path");
    let shown = document(&with(&[
        "--levels", path, "--pods", "20", "--format", "json",
    ]));
    let servers = number(&shown["servers"]);
    assert!(
        (number(&shown["pods"]) - (servers / 0.4).ceil()).abs() < 0.5,
        "{shown}"
    );
    std::fs::write(&levels, "{}").expect("written");
    let wrong = with(&["--levels", path]);
    assert!(
        wrong.status == 2 && wrong.err.contains("--find-knee"),
        "{}",
        wrong.err
    );
}

#[test]
fn each_format_has_its_lines_and_a_condition_sets_the_exit_status() {
    let service = KnownService::start("c=4 2ms");
    let ran = |options: &str| {
        let line = format!("load {} -w 1s {options}", service.url);
        neph(line.split_whitespace())
    };
    let text = ran("--workers 2 --lateness 1s");
    assert_eq!(text.status, 0, "{}", text.err);
    assert!(
        text.out.contains("\n2 workers, think time none: "),
        "{}",
        text.out
    );
    assert!(text.out.contains("0 of 1 second void"), "{}", text.out);
    assert_eq!(ran("--format csv").out.lines().count(), 2);
    let lines = ran("--format ndjson").out;
    assert!(
        lines
            .lines()
            .last()
            .is_some_and(|line| line.contains("\"summary\""))
    );
    let mut failing = command();
    failing.args(["load", &service.url, "-w", "1s"]);
    failing.args(["--fail", "p50 > 1ms", "--fail", "max > 10s"]);
    let failed = failing.stdin(Stdio::null()).output().expect("it runs");
    let shown = String::from_utf8_lossy(&failed.stdout);
    assert_eq!(failed.status.code(), Some(3), "{shown}");
    assert!(shown.contains("\n  p50 > 1ms: exceeded ("), "{shown}");
    assert!(shown.contains("\n  max > 10s: held\n"), "{shown}");
}

#[test]
fn without_a_response_the_exit_status_is_1() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    let ran = neph(["load", &url, "-w", "1s"]);
    assert_eq!(ran.status, 1, "{}", ran.out);
    assert!(ran.out.contains("connection refused"), "{}", ran.out);
}

#[test]
fn wrong_options_are_refused_with_a_remedy() {
    let url = "http://127.0.0.1:9/";
    for (options, remedy) in [
        (&["--think", "exp"][..], "'exp 20ms'"),
        (&["--rate", "0/s"], "write 500/s"),
        (&["--rate", "5/s", "--workers", "2"], "--workers"),
        (&["--fail", "p98 > 5ms"], "'p99 > 50ms'"),
        (&["--levels", "0,1"], "1,2,4,8"),
        (&["--find-knee", "-w", "100ms"], "at least 1.000 s"),
        (&["--warmup", "10s"], "shorter than --duration"),
        (&["-H", "Content-Length: 5"], "itself"),
        (&["--think", "file:/nonexistent"], "cannot be read"),
    ] {
        let ran = neph(["load", url].into_iter().chain(options.iter().copied()));
        assert_eq!(ran.status, 2, "{}", ran.err);
        assert!(ran.err.contains(remedy), "{}", ran.err);
    }
    let ran = neph(["load", "tcp://127.0.0.1:9"]);
    assert!(
        ran.status == 2 && ran.err.contains("sends HTTP"),
        "{}",
        ran.err
    );
    let ran = neph(["load", url, "--insecure"]);
    assert!(
        ran.status == 2 && ran.err.contains("only https"),
        "{}",
        ran.err
    );
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let service = KnownService::start("c=1 2ms");
    let folder = TestFolder::empty();
    let mut load = folder.command(["load", &service.url, "-w", "1h", "--format", "ndjson"]);
    let mut process = load.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut printed = BufReader::new(process.stdout.take().expect("piped"));
    let mut first = String::new();
    printed.read_line(&mut first).expect("a second");
    assert!(first.contains("\"second\":0"), "{first}");
    send_signal("INT", process.id());
    let rest = std::io::read_to_string(printed).expect("the output ends");
    assert_eq!(process.wait().expect("it ends").code(), Some(130));
    let summary: Value = rest
        .lines()
        .last()
        .and_then(|line| serde_json::from_str(line).ok())
        .expect("JSON");
    assert_eq!(summary["is_stopped"], true);
    assert!(number(&summary["requests"]["successful"]) > 10.0);
}

/// The reflector answers HTTP over TLS on the port of plain HTTP.
#[test]
fn https_measures_with_a_verified_certificate() {
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let mut reflect = command();
    reflect.args([
        "reflect", "--listen", &listen, "--tls", "--format", "ndjson",
    ]);
    let mut process = reflect.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut printed = BufReader::new(process.stdout.take().expect("piped"));
    let mut first = String::new();
    printed.read_line(&mut first).expect("a line");
    let listening: Value = serde_json::from_str(&first).expect("JSON");
    let pin = listening["certificate"]["sha256"].as_str().expect("a pin");
    let url = format!("https://127.0.0.1:{port}/");
    let load = |options: &[&str]| {
        let fixed = [
            "load",
            &url,
            "-w",
            "1s",
            "--workers",
            "3",
            "--think",
            "5ms",
            "--format",
            "json",
        ];
        neph(fixed.into_iter().chain(options.iter().copied()))
    };
    let shown = document(&load(&["--pin", pin]));
    assert_eq!(shown["requests"]["connections"], 3, "{shown}");
    assert_eq!(shown["requests"]["failed"], 0, "{shown}");
    assert!(number(&shown["requests"]["successful"]) > 50.0, "{shown}");
    let refused = load(&[]);
    assert_eq!(refused.status, 1, "{}", refused.err);
    let shown: Value = serde_json::from_str(&refused.out).expect("JSON");
    assert_eq!(
        shown["requests"]["failures"]["tls"],
        shown["requests"]["failed"]
    );
    let closing = document(&load(&["--insecure", "--no-keep-alive"]));
    assert_eq!(
        closing["requests"]["connections"],
        closing["requests"]["sent"]
    );
    send_signal("TERM", process.id());
    process.wait().expect("it ends");
}
