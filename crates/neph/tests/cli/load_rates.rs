//! The rates of the traffic that a plan generates.

use std::fs;

use crate::labs::{TWO, place, privileged};

/// What the link carries.
const LINK_MBIT_S: f64 = 20.0;
/// Payload of a full frame of TCP with time stamps, of its bytes on the link.
const PAYLOAD: f64 = 1448.0 / 1514.0;

/// The values of a series in CSV: `..., series, at_ns, at_unix_ns, value`.
fn values(csv: &str, series: &str) -> Vec<f64> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name| header.iter().position(|one| *one == name).expect(name);
    let (named, value) = (column("series"), column("value"));
    let fields = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let own = fields.filter(|fields| fields[named] == series);
    own.map(|fields| fields[value].parse().expect("a number"))
        .collect()
}

#[test]
fn a_load_has_the_rate_of_its_link_each_second_at_both_ends() {
    let test = "a_load_has_the_rate_of_its_link_each_second_at_both_ends";
    if !privileged(test) {
        return;
    }
    let link = "delay = \"2ms\"\nrate = \"20Mbit/s\"\nqueue = \"256KiB\"\n";
    let place = place(&TWO.replace("delay = \"2ms\"\n", link));
    let load = "a flow 10.80.0.2:8080 max";
    let plan = format!(
        "version = 1\nname = \"p\"\ninterval = \"50ms\"\nmessages = 120\nstress = [\"none\", \"{load}\"]\n\
         [[endpoint]]\nname = \"b\"\nurl = \"udp://10.80.0.2:8080\"\n\
         [lab]\ntopology = \"two.toml\"\nprober = \"a\"\n[[lab.reflector]]\nsite = \"b\"\n"
    );
    fs::write(place.path("p.toml"), plan).expect("a file");
    let ran = place.neph(["run", "p.toml", "--no-report"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let (samples, page) = (place.path("samples.csv"), place.path("page"));
    let words = ["export", "--samples", "--format", "csv", "-o"];
    let written = place.neph(words.into_iter().chain([samples.to_str().expect("text")]));
    assert_eq!(written.status, 0, "{}", written.err);
    let csv = fs::read_to_string(&samples).expect("a file");
    for end in ["sent", "received"] {
        let seconds = values(&csv, &format!("load1_{end}_bit_s"));
        assert!(seconds.len() >= 4, "{end}: {seconds:?}");
        let right = LINK_MBIT_S * 1e6 * PAYLOAD;
        let off = |one: &f64| (one / right - 1.0).abs();
        let mut sorted = seconds.clone();
        sorted.sort_by(f64::total_cmp);
        let median = sorted[sorted.len() / 2];
        assert!(
            off(&median) < 0.05,
            "{end}: {median} of {right}: {seconds:?}"
        );
        // A machine that others use may keep the link from its rate for a moment.
        let close = seconds.iter().filter(|one| off(one) < 0.05).count();
        assert!(2 * close > seconds.len(), "{end}: {seconds:?}");
    }
    let loaded = csv.lines().find(|line| line.contains("load1_sent_bit_s"));
    let experiment = loaded.and_then(|line| line.split(',').next()).expect("it");
    let shown = place.neph(["show", experiment]).out;
    assert!(shown.contains("load1_received_bit_s"), "{shown}");
    let out = place
        .neph(["report", "-o", page.to_str().expect("text")])
        .out;
    assert!(out.contains("medians of loads"), "{out}");
    let tables = fs::read_to_string(page.join("index.html")).expect("a page");
    assert!(
        tables.contains("Generated traffic") && tables.contains(load),
        "{tables}"
    );
}
