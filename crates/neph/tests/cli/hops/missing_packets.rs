//! What was not seen again, by the reason why it cannot be reported whether it was lost.

use std::cell::Cell;
use std::fs;

use serde_json::Value;

use super::simulated::{PathModel, Simulation};
use super::{lines, run};
use crate::neph::{TestFolder, neph};
use crate::truncated_captures::unfinished_zstd;

/// Bytes before the first packet of a capture.
pub(super) const HEADER: usize = 24;

/// Where the packet that begins here ends.
pub(super) fn next_record(capture: &[u8], at: usize) -> usize {
    let stored = capture[at + 8..at + 12].try_into().expect("four bytes");
    at + 16 + usize::try_from(u32::from_le_bytes(stored)).expect("short")
}

/// Others talk to the same server by some of the packets: host 9 in the place of host 1.
fn with_other_client(capture: &[u8], is_other_client: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut capture = capture.to_vec();
    let mut at = HEADER;
    while at < capture.len() {
        let end = next_record(&capture, at);
        let packet = &mut capture[at + 16..end];
        if is_other_client(packet) {
            for host in [15, 19] {
                packet[host] = if packet[host] == 1 { 9 } else { packet[host] };
            }
        }
        at = end;
    }
    capture
}

#[test]
fn a_packed_capture_that_was_cut_off_is_used_up_to_there() {
    let folder = TestFolder::empty();
    let (files, _) = Simulation::of(PathModel::PLAIN, 100, 5).write(&folder, |_, at| at);
    let output = run(&files, &["--clock", "same", "--format", "ndjson"]);
    let paths = files.iter().map(|file| file.rsplit('=').next());
    let paths: Vec<&str> = paths.map(|path| path.expect("a path")).collect();
    for file in &paths {
        let capture = fs::read(file).expect("a capture");
        fs::write(file, unfinished_zstd(&capture)).expect("a file");
    }
    let ran = run(&files, &["--clock", "same", "--format", "ndjson"]);
    assert_eq!((ran.status, &ran.out), (0, &output.out), "{}", ran.err);
    let expected = "is compressed and truncated";
    assert_eq!(
        ran.err.matches(expected).count(),
        files.len(),
        "{}",
        ran.err
    );
    let ran = neph(["clock", "--captures", paths[0], paths[1]]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert_eq!(ran.err.matches(expected).count(), 2, "{}", ran.err);
}

#[test]
fn packets_not_seen_at_the_next_point_are_counted_by_reason() {
    let path = PathModel {
        points: 3,
        ..PathModel::PLAIN
    };
    let folder = TestFolder::empty();
    let mut simulated = Simulation::of(path, 100, 21);
    let (files, _) = simulated.write(&folder, |_, at| at);
    // Host 9 is at the first two points alone.
    for point in ["p0.pcap", "p1.pcap"] {
        let file = folder.path(point);
        let mut capture = fs::read(&file).expect("a capture");
        let other_captures = with_other_client(&capture, |_| true);
        capture.extend(&other_captures[HEADER..]);
        fs::write(&file, capture).expect("a file");
    }
    // The last point's capture is over half way.
    let file = folder.path("p2.pcap");
    let capture = fs::read(&file).expect("a capture");
    let truths = simulated.truths.iter();
    let mut passed: Vec<i64> = truths.filter_map(|truth| truth.passed_at[2]).collect();
    passed.sort_unstable();
    let kept_packets = passed.len() / 2;
    let end = (0..kept_packets).fold(HEADER, |at, _| next_record(&capture, at));
    fs::write(&file, &capture[..end]).expect("a file");
    let ran = run(&files, &["--format", "ndjson", "--clock", "same"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let lines = lines(&ran);
    let loss_unknown = &lines.last().expect("a summary")["loss_unknown"];
    let forward = || simulated.truths.iter().filter(|truth| !truth.is_reverse);
    let is_later = |at: Option<i64>| at.is_some_and(|at| at > passed[kept_packets - 1]);
    let later = forward().filter(|truth| is_later(truth.passed_at[2]));
    let later = later.count();
    assert!(later > 100, "{later}");
    // Of host 9 too, what came later says nothing.
    let [never, not_captured, at_end] = ["never_passed", "not_captured", "not_captured_at_end"]
        .map(|of| {
            let packets = loss_unknown[of]
                .as_u64()
                .and_then(|packets| usize::try_from(packets).ok());
            packets.expect("a count")
        });
    assert_eq!(
        never + not_captured,
        forward().count() + later,
        "{loss_unknown}"
    );
    assert!(never > 100 && not_captured >= 2 * later, "{loss_unknown}");
    // Host 9's first came before anything passed the last point.
    assert_eq!(at_end + 1, not_captured, "{loss_unknown}");
    assert_eq!(loss_unknown["clock_offset_unknown"], 0, "{loss_unknown}");
    let segments = lines.iter().filter(|line| line["kind"] == "segment");
    assert!(segments.clone().count() > 0);
    assert!(segments.clone().all(|line| line["lost"] == 0));
    let text = run(&files, &["--clock", "same"]);
    for printed in [
        format!("{never} packets not seen at the next point, of hosts"),
        format!("{at_end} packets not seen at the next point, at the end of its capture"),
    ] {
        assert!(text.out.contains(&printed), "{printed}: {}", text.out);
    }
}

#[test]
fn an_unusable_file_is_refused_with_its_remedy() {
    let folder = TestFolder::empty();
    let (files, _) = Simulation::of(PathModel::PLAIN, 3, 5).write(&folder, |_, at| at);
    let mut broken = fs::read(folder.path("p0.pcap")).expect("a capture");
    let total = broken.len();
    broken.extend([0xff; 16]);
    fs::write(folder.path("broken.pcap"), broken).expect("a file");
    fs::write(folder.path("text.pcap"), "hello, world").expect("a file");
    for (file, remedy) in [
        ("none.pcap", "give a capture's path".to_owned()),
        ("text.pcap", "as tcpdump -w writes them".to_owned()),
        ("broken.pcap", format!("head -c {total}")),
    ] {
        let wrong = folder.path(file).display().to_string();
        let ran = run(&[files[0].clone(), wrong], &[]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains(&remedy), "{}", ran.err);
    }
}

/// The packets of a capture that a filter leaves.
fn filter_packets(capture: &[u8], is_kept: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut captures = capture[..HEADER].to_vec();
    let mut at = HEADER;
    while at < capture.len() {
        let end = next_record(capture, at);
        if is_kept(&capture[at + 16..end]) {
            captures.extend(&capture[at..end]);
        }
        at = end;
    }
    captures
}

/// Losses of each segment, protocol and way that has any.
fn losses_by_segment(documents: &[Value]) -> Vec<(String, u64)> {
    let segments = documents.iter().filter(|line| line["kind"] == "segment");
    let losses = segments.map(|line| {
        let name = format!(
            "{} {} {}",
            line["segment"], line["protocol"], line["direction"]
        );
        (name, line["lost"].as_u64().expect("a count"))
    });
    losses.filter(|(_, lost)| *lost > 0).collect()
}

/// Takes from a point's capture all but what is kept, and holds what is reported about these kinds.
fn check_filtered(point: &str, is_kept: impl Fn(&[u8]) -> bool, kinds: &[(&str, &str)]) {
    let path = PathModel {
        points: 3,
        lost: 100,
        ..PathModel::PLAIN
    };
    let folder = TestFolder::empty();
    let mut simulated = Simulation::of(path, 300, 33);
    let (files, _) = simulated.write(&folder, |_, at| at);
    let ndjson = ["--format", "ndjson", "--clock", "same"];
    let before = lines(&run(&files, &ndjson));
    let file = folder.path(&format!("{point}.pcap"));
    let capture = fs::read(&file).expect("a capture");
    fs::write(&file, filter_packets(&capture, is_kept)).expect("a file");
    let ran = run(&files, &ndjson);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let after = lines(&ran);
    let unknown = &after.last().expect("a summary")["loss_unknown"];
    let text = run(&files, &["--clock", "same"]);
    let list = unknown["never_passed_kinds"].as_array().expect("a list");
    assert_eq!(list.len(), kinds.len(), "{unknown}");
    for (entry, (protocol, direction)) in list.iter().zip(kinds) {
        assert_eq!(
            (&entry["protocol"], &entry["direction"]),
            (&(*protocol).into(), &(*direction).into())
        );
        assert_eq!(entry["point"], point);
        assert_eq!(entry["others_passed"], false);
        let packets = entry["packets"].as_u64().expect("a count");
        assert!(packets > 100, "{unknown}");
        let printed = format!(
            "{packets} packets of {protocol} {direction} not seen at the next point; none of their hosts' passed \
             {point}, so the capture may be filtered, or all were lost before it."
        );
        assert!(text.out.contains(&printed), "{printed}: {}", text.out);
    }
    // What the network lost of all others is lost as before; what a point saw first is not.
    let before = losses_by_segment(&before);
    let losses_after = losses_by_segment(&after);
    assert!(losses_after.len() >= 6, "{losses_after:?}");
    assert!(
        losses_after.iter().all(|of| before.contains(of)),
        "{losses_after:?} of {before:?}"
    );
}

#[test]
fn packets_after_the_end_of_a_capture_are_not_called_filtered() {
    let folder = TestFolder::empty();
    let mut simulated = Simulation::of(PathModel::PLAIN, 300, 35);
    let (files, _) = simulated.write(&folder, |_, at| at);
    let file = folder.path("p1.pcap");
    let capture = fs::read(&file).expect("a capture");
    // Of the first quarter all but UDP, and nothing after it.
    let (observed, total) = (Cell::new(0), simulated.truths.len());
    let is_kept = |packet: &[u8]| {
        observed.set(observed.get() + 1);
        observed.get() <= total / 4 && packet[9] != 17
    };
    fs::write(&file, filter_packets(&capture, is_kept)).expect("a file");
    let documents = lines(&run(&files, &["--format", "ndjson", "--clock", "same"]));
    let unknown = &documents.last().expect("a summary")["loss_unknown"];
    let [never_passed, not_captured] =
        ["never_passed", "not_captured"].map(|of| unknown[of].as_u64());
    assert!(never_passed > Some(0), "{unknown}");
    assert!(
        not_captured > never_passed.map(|count| 3 * count),
        "{unknown}"
    );
}

#[test]
fn captures_without_packets_or_with_cut_headers_are_named_with_the_remedy() {
    let folder = TestFolder::empty();
    let mut simulated = Simulation::of(PathModel::PLAIN, 20, 5);
    let (files, _) = simulated.write(&folder, |_, at| at);
    let capture = fs::read(folder.path("p0.pcap")).expect("a capture");
    // So many bytes of each packet.
    let cut_capture = |bytes: usize| {
        let mut captures = capture[..HEADER].to_vec();
        let mut at = HEADER;
        while at < capture.len() {
            let end = next_record(&capture, at);
            let short = bytes.min(end - at - 16);
            captures.extend(&capture[at..at + 8]);
            captures.extend(u32::try_from(short).expect("short").to_le_bytes());
            captures.extend(&capture[at + 12..at + 16 + short]);
            at = end;
        }
        captures
    };
    for (bytes, why) in [
        (
            capture[..HEADER].to_vec(),
            "holds no packet; capture while the traffic passes",
        ),
        (cut_capture(12), "120 packets, none of them of IP"),
        (
            cut_capture(27),
            "are cut within their headers, and cannot be known again; keep at least 256 bytes",
        ),
    ] {
        let short = folder.path("short.pcap");
        fs::write(&short, bytes).expect("a file");
        let short = short.display().to_string();
        let path = folder.path("p1.pcap").display().to_string();
        let clock = neph(["clock", "--captures", &short, &path]);
        for ran in [run(&[short, files[1].clone()], &[]), clock] {
            assert_eq!(ran.status, 2, "{why}: {}", ran.err);
            assert!(ran.err.contains(why), "{why}: {}", ran.err);
            assert!(!ran.err.contains("NAT"), "{}", ran.err);
        }
    }
}

#[test]
fn the_same_capture_twice_is_detected_and_one_directional_captures_are_not_mistaken_for_it() {
    let folder = TestFolder::empty();
    let mut simulated = Simulation::of(PathModel::PLAIN, 20, 5);
    let (files, _) = simulated.write(&folder, |_, at| at);
    let capture = fs::read(folder.path("p0.pcap")).expect("a capture");
    let copy = folder.path("copy.pcap");
    let end = (0..50).fold(HEADER, |at, _| next_record(&capture, at));
    fs::write(&copy, &capture[..end]).expect("a file");
    let copy = copy.display().to_string();
    let path = folder.path("p0.pcap").display().to_string();
    let clock = neph(["clock", "--captures", &copy, &path]);
    for ran in [run(&[files[0].clone(), copy.clone()], &[]), clock] {
        assert_eq!(ran.status, 2, "{}", ran.err);
        let printed = "are the same, of all 50 packets that are in both: this is one capture twice";
        assert!(ran.err.contains(printed), "{}", ran.err);
    }
    // Points of one kernel may share a stamp.
    let same = run(&[files[0].clone(), copy], &["--clock", "same"]);
    assert!(!same.err.contains("twice"), "{}", same.err);
    let file = folder.path("p1.pcap");
    let forward = filter_packets(&fs::read(&file).expect("a capture"), |packet| {
        packet[15] == 1
    });
    fs::write(&file, forward).expect("a file");
    let other = file.display().to_string();
    let clock = neph(["clock", "--captures", &path, &other]);
    assert!(clock.err.contains("one direction only"), "{}", clock.err);
}

#[test]
fn packets_excluded_by_a_points_filter_are_not_lost() {
    let (protocol, source) = (9, 15);
    check_filtered("p2", |packet| packet[protocol] != 17, &[("udp", "forward")]);
    let reverse = ["icmp", "tcp", "udp"].map(|protocol| (protocol, "reverse"));
    check_filtered("p0", |packet| packet[source] == 1, &reverse);
}

#[test]
fn a_kind_that_others_show_at_a_point_was_not_filtered_there() {
    let path = PathModel {
        points: 3,
        ..PathModel::PLAIN
    };
    let folder = TestFolder::empty();
    let (files, _) = Simulation::of(path, 100, 43).write(&folder, |_, at| at);
    let is_ping_of_one = |packet: &[u8]| packet[9] == 1 && (packet[15] == 1 || packet[19] == 1);
    for point in ["p0", "p1", "p2"] {
        let file = folder.path(&format!("{point}.pcap"));
        let mut capture = fs::read(&file).expect("a capture");
        let other_captures = with_other_client(&capture, |_| true);
        capture.extend(&other_captures[HEADER..]);
        let capture = filter_packets(&capture, |packet| point == "p0" || !is_ping_of_one(packet));
        fs::write(&file, capture).expect("a file");
    }
    let ran = run(&files, &["--clock", "same", "--format", "ndjson"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let unknown = lines(&ran).pop().expect("a summary")["loss_unknown"].take();
    let [kind] = unknown["never_passed_kinds"]
        .as_array()
        .expect("a list")
        .as_slice()
    else {
        panic!("{unknown}");
    };
    assert_eq!(
        (&kind["point"], &kind["others_passed"]),
        (&"p1".into(), &true.into())
    );
    let text = run(&files, &["--clock", "same"]).out;
    // The last may have been under way when the capture ended.
    let packets = kind["packets"].as_u64().expect("a count");
    assert!((98..=100).contains(&packets), "{unknown}");
    let expected = format!(
        "{packets} packets of icmp forward not seen at the next point; none of their hosts' passed p1, although packets of other hosts did: all may have been lost before it."
    );
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn hosts_captured_in_one_direction_are_reported_with_a_remedy() {
    let folder = TestFolder::empty();
    let (files, _) = Simulation::of(PathModel::PLAIN, 100, 5).write(&folder, |_, at| at);
    let is_datagram = |packet: &[u8]| packet[9] == 17;
    for point in ["p0", "p1"] {
        let file = folder.path(&format!("{point}.pcap"));
        let other_captures = with_other_client(&fs::read(&file).expect("a capture"), is_datagram);
        let is_in_capture =
            |packet: &[u8]| !is_datagram(packet) || packet[15] == 9 || point == "p0";
        fs::write(&file, filter_packets(&other_captures, is_in_capture)).expect("a file");
    }
    let text = run(&files, &[]).out;
    let expected = "\n200 packets excluded: at two points only one direction of their hosts was seen. Capture both directions; if one kernel captured both points, use NAME@HOST=FILE or --clock same.\n";
    assert!(text.contains(expected), "{text}");
    let with_same_clock = run(&files, &["--clock", "same"]).out;
    assert!(
        !with_same_clock.contains("packets excluded"),
        "{with_same_clock}"
    );
}
