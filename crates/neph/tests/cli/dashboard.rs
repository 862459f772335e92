//! The dashboard for Grafana: a real Prometheus answers each of its queries.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use neph_sys::deadline::wait_until;
use neph_sys::process;
use serde_json::Value;

use crate::labs::privileged;
use crate::metrics::{MonitoredSites, http_get};
use crate::metrics_live::LivePrograms;
use crate::servers::{free_port, serve};

fn dashboard() -> Value {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/grafana/nephoscope.json");
    serde_json::from_str(&fs::read_to_string(path).expect("the dashboard")).expect("JSON")
}

/// Every query of the dashboard, as Grafana sends it with all values chosen.
fn queries() -> Vec<String> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array());
    let mut queries: Vec<String> = targets
        .flatten()
        .map(|target| target["expr"].as_str().expect("a query").to_owned())
        .collect();
    assert!(queries.len() >= 15, "{queries:?}");
    let variables = dashboard["templating"]["list"]
        .as_array()
        .expect("variables");
    for variable in variables {
        let Some(values) = variable["query"]["query"].as_str() else {
            continue;
        };
        let inner = values.strip_prefix("label_values(").expect("label values");
        let (metric, label) = inner
            .trim_end_matches(')')
            .split_once(", ")
            .expect("a label");
        queries.push(format!("count by ({label}) ({metric}{{{label}!=\"\"}})"));
    }
    let plain = |query: &String| {
        let query = query.replace("$__rate_interval", "10s");
        let query = ["$agent", "$site", "$endpoint"]
            .iter()
            .fold(query, |query, name| query.replace(name, ".*"));
        assert!(!query.contains('$'), "{query}");
        query
    };
    queries.iter().map(plain).collect()
}

/// What Prometheus answers: the number of series, or what it reports.
pub(crate) fn query_dashboard(port: u16, query: &str) -> Result<usize, String> {
    let mut encoded = String::new();
    for byte in query.bytes() {
        write!(encoded, "%{byte:02X}").expect("memory");
    }
    let answer = http_get(port, &format!("/api/v1/query?query={encoded}"));
    let answer = answer.ok_or("no answer with status 200")?;
    let json: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
    let result = json["data"]["result"].as_array();
    let result = result.ok_or_else(|| answer.clone())?;
    // A value that is no number is none: 0 of 0 messages.
    let is_number = |entry: &&Value| entry["value"][1] != "NaN";
    Ok(result.iter().filter(is_number).count())
}

#[test]
fn prometheus_answers_every_query_of_the_dashboard() {
    let test = "prometheus_answers_every_query_of_the_dashboard";
    if !privileged(test) {
        return;
    }
    let mut watched = MonitoredSites::new();
    let run = watched.run();
    let mut live = LivePrograms::new();
    live.ping("tcp");
    live.flows();
    live.watch();
    assert!(live.hops("dashboard"));
    let targets: Vec<String> = watched
        .ports
        .values()
        .chain(live.ports.values())
        .map(|port| format!("'127.0.0.1:{port}'"))
        .collect();
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: neph\n  static_configs:\n  - targets: [{}]\n",
        targets.join(", ")
    );
    fs::write(watched.folder.path("prometheus.yml"), config).expect("writable");
    let port = free_port();
    let mut command = process::command("prometheus");
    command
        .args(["--config.file=prometheus.yml", "--storage.tsdb.path=tsdb"])
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .current_dir(watched.folder.path(""));
    let Some(_prometheus) = serve(test, port, &mut command) else {
        return;
    };
    let mut open = queries();
    let mut last = Vec::new();
    let answered = wait_until(Duration::from_secs(50), || {
        last.clear();
        open.retain(|query| match query_dashboard(port, query) {
            Ok(0) => true,
            Ok(_) => false,
            Err(why) => {
                last.push(why);
                true
            }
        });
        open.is_empty()
    });
    drop(run);
    assert!(answered, "without a series: {open:#?} {last:?}");
}
