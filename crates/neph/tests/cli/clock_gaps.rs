//! Captures of two short times that lie far apart: what is reported about a drift over both.

use crate::clocks::{Capture, SECOND, START, document, number};
use crate::neph::{TestFolder, neph};

/// Four seconds of exchanges, and four a day later; the second clock is 5 ms ahead and 1 ppm fast.
fn files(folder: &TestFolder) -> [String; 2] {
    let (mut first, mut second) = (Capture(Vec::new()), Capture(Vec::new()));
    let shows = |at: i64| at + 5_000_000 + (at - START) / 1_000_000;
    for nth in 0..400_u16 {
        let day = i64::from(nth / 200) * 86_400 * SECOND;
        let sent = START + day + i64::from(nth % 200) * SECOND / 50;
        let (arrived, answered, returned) = (sent + 4_000_000, sent + 4_100_000, sent + 8_100_000);
        first.add_datagram(sent, nth, (1, 2));
        second.add_datagram(shows(arrived), nth, (1, 2));
        second.add_datagram(shows(answered), nth, (2, 1));
        first.add_datagram(returned, nth, (2, 1));
    }
    [("here", first), ("there", second)].map(|(name, capture)| {
        let path = folder.path(&format!("{name}.pcap"));
        capture.write(&path);
        path.display().to_string()
    })
}

#[test]
fn a_wander_hidden_by_gaps_is_not_reported_as_too_short() {
    let folder = TestFolder::empty();
    let [first, second] = files(&folder);
    let ran = neph(["clock", "--captures", &first, &second]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let expected = "wander            not estimated: gaps in the data";
    assert!(ran.out.contains(expected), "{}", ran.out);
    assert!(!ran.out.contains("less than 300 s"), "{}", ran.out);
}

#[test]
fn clock_and_hops_report_the_same_drift_of_long_captures() {
    let folder = TestFolder::empty();
    let [first, second] = files(&folder);
    let clock = neph(["clock", "--captures", &first, &second, "--format", "json"]);
    let hops = neph(["hops", &first, &second, "--format", "json"]);
    let drift = &document(&clock.out)["summary"]["drift"]["ppm"];
    let clocks = &document(&hops.out)["summary"]["clocks"][0];
    assert_eq!(&clocks["rate_ppm"], drift, "{clocks}");
    let error = drift.as_f64().expect("a rate") - 1.0;
    let bound = clocks["rate_bound_ppm"].as_f64().expect("its bound");
    assert!(error.abs() <= bound && bound < 0.2, "{clocks}");
    assert!(number(&clocks["bound_ns"]) < 5_000_000, "{clocks}");
}
