//! An outage that lasts until the end of what was captured.

use std::fs;

use super::missing_packets::{HEADER, next_record};
use super::simulated::{PathModel, SECOND, START, Simulation};
use super::{lines, run};
use crate::neph::TestFolder;

/// A record of a frame that is not IP, a minute after the beginning.
fn record_without_ip() -> Vec<u8> {
    let fields = [START / SECOND + 60, 0, 14, 14];
    let fields = fields.map(|field| u32::try_from(field).expect("32 bits").to_le_bytes());
    [fields.concat(), vec![0; 14]].concat()
}

#[test]
fn packets_are_lost_at_the_end_only_if_the_capture_continues() {
    let folder = TestFolder::empty();
    let mut simulated = Simulation::of(PathModel::PLAIN, 200, 41);
    let (files, _) = simulated.write(&folder, |_, at| at);
    let mut passed: Vec<i64> = simulated
        .truths
        .iter()
        .filter_map(|truth| truth.passed_at[1])
        .collect();
    passed.sort_unstable();
    let kept_packets = passed.len() / 2;
    let requests = simulated.truths.iter().filter(|truth| !truth.is_reverse);
    let later = requests.filter(|truth| truth.passed_at[1] > Some(passed[kept_packets - 1]));
    let later = later.count() as u64;
    assert!(later > 100, "{later}");
    // Nothing passes any more.
    let file = folder.path("p1.pcap");
    let capture = fs::read(&file).expect("a capture");
    let end = (0..kept_packets).fold(HEADER, |at, _| next_record(&capture, at));
    let short = &capture[..end];
    for (written, lost) in [
        (short.to_vec(), 0),
        ([short, &record_without_ip()].concat(), later),
    ] {
        fs::write(&file, written).expect("a file");
        let documents = lines(&run(&files, &["--format", "ndjson", "--clock", "same"]));
        let rows = documents
            .iter()
            .filter(|line| line["direction"] == "forward");
        let reported_lost: u64 = rows.map(|row| row["lost"].as_u64().expect("a count")).sum();
        let unknown = &documents.last().expect("a summary")["loss_unknown"];
        let at_end = unknown["not_captured_at_end"].as_u64();
        assert_eq!(
            (reported_lost, at_end),
            (lost, Some(later - lost)),
            "{unknown}"
        );
        assert_eq!(unknown["not_captured"].as_u64(), at_end);
        let text = run(&files, &["--clock", "same"]).out;
        let printed = format!(
            "{later} packets not seen at the next point, at the end of its capture: either it had ended, or all of them were lost."
        );
        assert_eq!(text.contains(&printed), lost == 0, "{text}");
        assert!(!text.contains("begins"), "{text}");
    }
}
