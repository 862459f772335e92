//! The rates of the traffic that a plan generates.

use std::fs;

use crate::guests::{GUEST, has_machines};
use crate::labs::{TWO_SITES, privileged, topology_folder};
use crate::neph::TestFolder;

/// What the link carries.
const LINK_MBIT_S: f64 = 20.0;
/// Payload of a full frame of TCP with time stamps, of its bytes on the link.
const PAYLOAD: f64 = 1448.0 / 1514.0;

/// What the stream has.
const STREAM_MBIT_S: f64 = 4.0;

/// The values of a series of a scenario in CSV: `scenario, ..., series, at_ns, at_unix_ns, value`.
fn values(csv: &str, scenario: &str, series: &str) -> Vec<f64> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name| {
        header
            .iter()
            .position(|header| *header == name)
            .expect(name)
    };
    let (name_column, value) = (column("series"), column("value"));
    let scenario_lines = lines.filter(|line| line.contains(scenario));
    let fields = scenario_lines.map(|line| line.split(',').collect::<Vec<_>>());
    let series_rows = fields.filter(|fields| fields[name_column] == series);
    series_rows
        .map(|fields| fields[value].parse().expect("a number"))
        .collect()
}

/// Half of the seconds, and their median, are within 5 %: a machine that others use may keep a link from its
/// rate for a moment.
fn assert_rate(seconds: &[f64], expected_rate: f64) {
    assert!(seconds.len() >= 4, "{seconds:?}");
    let relative_error = |rate: &f64| (rate / expected_rate - 1.0).abs();
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    assert!(
        relative_error(&median) < 0.05,
        "{median} of {expected_rate}: {seconds:?}"
    );
    let close = seconds
        .iter()
        .filter(|second| relative_error(second) < 0.05)
        .count();
    assert!(2 * close > seconds.len(), "{expected_rate}: {seconds:?}");
}

#[test]
fn a_load_has_the_rate_of_its_link_each_second_at_both_ends() {
    let test = "a_load_has_the_rate_of_its_link_each_second_at_both_ends";
    if !privileged(test) {
        return;
    }
    let link = "delay = \"2ms\"\nrate = \"20Mbit/s\"\nqueue = \"256KiB\"\n";
    let folder = topology_folder(&TWO_SITES.replace("delay = \"2ms\"\n", link));
    let flow = "a flow 10.80.0.2:8080 max";
    let stream = format!("a stream 10.80.0.2:8080 {STREAM_MBIT_S}Mbit/s");
    let plan = format!(
        "version = 1\nname = \"p\"\ninterval = \"50ms\"\nmessages = 120\nstress = [\"{stream}\", \"{flow}\"]\n\
         [[endpoint]]\nname = \"b\"\nurl = \"udp://10.80.0.2:8080\"\n\
         [lab]\ntopology = \"two.toml\"\nprober = \"a\"\n[[lab.reflector]]\nsite = \"b\"\n"
    );
    fs::write(folder.path("p.toml"), plan).expect("a file");
    let ran = folder.neph(["run", "p.toml", "--no-report"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let csv = exported(&folder);
    for end in ["sent", "received"] {
        let series = format!("load1_{end}_bit_s");
        assert_rate(&values(&csv, flow, &series), LINK_MBIT_S * 1e6 * PAYLOAD);
        assert_rate(&values(&csv, &stream, &series), STREAM_MBIT_S * 1e6);
    }
    let loaded = csv.lines().find(|line| line.contains("load1_sent_bit_s"));
    let experiment = loaded
        .and_then(|line| line.split(',').next())
        .expect("an experiment");
    let shown = folder.neph(["show", experiment]).out;
    assert!(shown.contains("load1_received_bit_s"), "{shown}");
    let page = folder.path("page");
    let out = folder
        .neph(["report", "-o", page.to_str().expect("text")])
        .out;
    assert!(out.contains("medians of loads"), "{out}");
    let page = fs::read_to_string(page.join("index.html")).expect("a page");
    assert!(
        page.contains("Generated traffic") && page.contains(flow),
        "{page}"
    );
}

/// All samples as CSV.
fn exported(folder: &TestFolder) -> String {
    let samples = folder.path("samples.csv");
    let args = ["export", "--samples", "--format", "csv", "-o"];
    let written = folder.neph(args.into_iter().chain([samples.to_str().expect("text")]));
    assert_eq!(written.status, 0, "{}", written.err);
    fs::read_to_string(&samples).expect("a file")
}

#[test]
fn loads_between_guests_export_their_cpu_and_rate() {
    let test = "loads_between_guests_export_their_cpu_and_rate";
    if !has_machines(test) {
        return;
    }
    let quiet = GUEST.replace("run = [\"echo ran > /tmp/ran\"]\n", "");
    let folder = topology_folder(&quiet.replace("\"uml\"", "\"qemu\""));
    let plan = "version = 1\nname = \"p\"\ninterval = \"100ms\"\nmessages = 50\n\
        stress = \"other flow 10.86.1.1:9000 2Mbit/s\"\n\
        [[endpoint]]\nname = \"vm\"\nurl = \"udp://10.86.1.1:9000\"\n\
        [lab]\ntopology = \"two.toml\"\nprober = \"client\"\n";
    fs::write(folder.path("p.toml"), plan).expect("a file");
    let ran = folder.neph(["run", "p.toml", "--no-report"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let csv = exported(&folder);
    for end in ["sent", "received"] {
        let seconds = values(&csv, "", &format!("load1_{end}_bit_s"));
        assert!(seconds.len() >= 3, "{end}: {seconds:?} {}", ran.err);
        assert!(seconds.iter().any(|rate| *rate > 1e6), "{end}: {seconds:?}");
    }
    for name in ["sender", "receiver"] {
        let shares = values(&csv, "", &format!("load1_{name}_cpu_percent"));
        assert!(shares.len() >= 3, "{name}: {shares:?} {}", ran.err);
        let is_share = |share: &f64| *share > 0.0 && *share <= 100.0;
        assert!(shares.iter().any(is_share), "{name}: {shares:?}");
    }
}
