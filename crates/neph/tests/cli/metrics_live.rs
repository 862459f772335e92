//! Metrics of commands that measure from their own process: ping, flows, hops and watch.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use neph_probe::Reflector;
use neph_sys::clock;
use neph_sys::deadline::wait_until;
use neph_sys::process;

use crate::agent_sites::Program;
use crate::dashboard::query_dashboard;
use crate::live_hops::Wire;
use crate::metrics::{http_get, port_after, start_until};
use crate::neph::{TIMEOUT, TestFolder, eventually};
use crate::pings::reflector;
use crate::servers::{free_port, serve};

/// Programs that measure, each with metrics.
pub(crate) struct LivePrograms {
    pub(crate) folder: TestFolder,
    /// Where metrics are, by command.
    pub(crate) ports: BTreeMap<&'static str, u16>,
    programs: Vec<Program>,
    traffic: Option<(Arc<AtomicBool>, JoinHandle<Wire>)>,
    reflector: Reflector,
}

impl LivePrograms {
    pub(crate) fn new() -> Self {
        Self {
            folder: TestFolder::empty(),
            ports: BTreeMap::new(),
            programs: Vec::new(),
            traffic: None,
            reflector: reflector(),
        }
    }

    fn start(&mut self, command: &'static str, arguments: &[&str]) {
        let mut neph = self.folder.command([command]);
        neph.args(arguments).args(["--prometheus", "0"]);
        let (program, lines) = start_until(neph.stdout(Stdio::null()), "http://127.0.0.1:");
        self.ports.insert(command, port_after(&lines, "http://"));
        self.programs.push(program);
    }

    pub(crate) fn ping(&mut self, scheme: &str) {
        let target = format!("{scheme}://{}", self.reflector.address());
        self.start("ping", &[&target, "-i", "20ms", "-q"]);
    }

    pub(crate) fn flows(&mut self) {
        let target = format!("udp://{}", self.reflector.address());
        self.start("flows", &[&target, "-n", "8", "-i", "50ms", "-q"]);
    }

    pub(crate) fn watch(&mut self) {
        self.start("watch", &["lo"]);
    }

    /// Points at both ends of a wire, over which datagrams go.
    pub(crate) fn hops(&mut self, test: &str) -> bool {
        let Some(wire) = Wire::up(test) else {
            return false;
        };
        let [near, far] = wire.ends();
        self.start(
            "hops",
            &[&near, &far, "--alarm", "segment > 1ns p50 for 1s"],
        );
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        let sockets = wire.sockets();
        let request_thread = thread::spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                sockets.exchange(20);
                clock::nap(Duration::from_millis(2));
            }
            wire
        });
        self.traffic = Some((stopped, request_thread));
        true
    }

    /// Waits until the page has a line that begins so; the page.
    fn shows(&self, command: &str, begins: &str) -> String {
        let mut page = String::new();
        eventually(&format!("{command}: {begins}"), TIMEOUT, || {
            page = http_get(self.ports[command], "/metrics").unwrap_or_default();
            page.lines().any(|line| line.starts_with(begins))
        });
        page
    }
}

impl Drop for LivePrograms {
    fn drop(&mut self) {
        self.programs.clear();
        if let Some((stopped, request_thread)) = self.traffic.take() {
            stopped.store(true, Ordering::Relaxed);
            drop(request_thread.join());
        }
    }
}

#[test]
fn ping_and_flows_export_while_they_measure() {
    let mut live = LivePrograms::new();
    live.ping("udp");
    live.flows();
    let target = format!("udp://{}", live.reflector.address());
    let labels = format!("{{endpoint=\"{target}\",kind=\"udp\"");
    let page = live.shows(
        "ping",
        &format!("neph_ping_jitter_seconds_count{labels}}} 1"),
    );
    for line in [
        format!("neph_ping_messages_total{labels},outcome=\"lost\"}} 0"),
        format!("neph_ping_response_time_seconds_bucket{labels},le=\"10\"}}"),
        "# TYPE neph_ping_response_time_seconds histogram".to_owned(),
        "neph_build_info{".to_owned(),
    ] {
        let is_there = page.lines().any(|page| page.starts_with(&line));
        assert!(is_there, "{line}\n{page}");
    }
    let page = live.shows(
        "flows",
        &format!("neph_flows_round_trip_seconds_count{labels}}} 1"),
    );
    for line in [
        format!("neph_flows_flows{labels}}} 8"),
        format!("neph_flows_path_changes_total{labels}}} "),
        format!("neph_flows_jitter_seconds_count{labels}}} "),
    ] {
        let is_there = page.lines().any(|page| page.starts_with(&line));
        assert!(is_there, "{line}\n{page}");
    }
}

#[test]
fn live_points_export_delays_and_alarms_and_files_do_not() {
    let test = "metrics";
    let mut live = LivePrograms::new();
    let ran = live
        .folder
        .neph(["hops", "a.pcap", "b.pcap", "--prometheus", "0"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(ran.err.contains("live points"), "{}", ran.err);
    if !live.hops(test) {
        return;
    }
    let segment = "segment=\"near - far\",direction=";
    live.shows("hops", &format!("neph_hops_delay_seconds_count{{{segment}"));
    let page = live.shows("hops", &format!("neph_hops_alarm{{{segment}"));
    assert!(
        page.contains("rule=\"segment > 1ns p50 for 1s\"} 1\n"),
        "{page}"
    );
}

#[test]
fn a_prometheus_that_takes_native_histograms_gets_them() {
    let test = "a_prometheus_that_takes_native_histograms_gets_them";
    let mut live = LivePrograms::new();
    live.ping("udp");
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: neph\n  static_configs:\n  - targets: ['127.0.0.1:{}']\n",
        live.ports["ping"]
    );
    fs::write(live.folder.path("prometheus.yml"), config).expect("writable");
    let port = free_port();
    let mut command = process::command("prometheus");
    command
        .args(["--config.file=prometheus.yml", "--storage.tsdb.path=tsdb"])
        .arg("--enable-feature=native-histograms")
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .current_dir(live.folder.path(""));
    let Some(_prometheus) = serve(test, port, &mut command) else {
        return;
    };
    let metric = "neph_ping_response_time_seconds";
    // What classic histograms have no function for; and by the native buckets half of the times are in the range
    // that the classic ones give, which has the mean of a quiet loopback too.
    for query in [
        format!("histogram_count({metric}) > 10"),
        format!("histogram_quantile(0.5, {metric}) > 0.000001 < 0.5"),
        format!("abs(histogram_fraction(0, +Inf, {metric}) - 1) < 0.001"),
        format!("histogram_sum({metric}) > 0"),
        "neph_ping_messages_total{outcome=\"reply\"} > 10".to_owned(),
    ] {
        let mut last = String::new();
        let answered = wait_until(Duration::from_secs(20), || {
            match query_dashboard(port, &query) {
                Ok(series) => series > 0,
                Err(why) => {
                    last = why;
                    false
                }
            }
        });
        assert!(answered, "{query}: {last}");
    }
    let classic = query_dashboard(port, &format!("{metric}_bucket"));
    assert_eq!(classic, Ok(0), "the native one takes its place");
}
