//! `neph clock`: clocks that are one, clocks of captures whose offset is known, and what has none.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::neph::{RunOutput, TestFolder, command, neph, send_signal};
use crate::pings::reflector;

pub(crate) const SECOND: i64 = 1_000_000_000;
pub(crate) const START: i64 = 1_795_000_000 * SECOND;

pub(crate) fn document(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

pub(crate) fn number(value: &Value) -> i64 {
    value.as_i64().expect("a whole number")
}

fn float(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Against a reflector on this machine, so many times.
fn measure_local_clock(extra_args: &[&str]) -> RunOutput {
    let reflector = reflector();
    let peer = reflector.address().to_string();
    let base_args = ["clock", &peer, "-c", "30", "-i", "10ms"];
    neph(base_args.into_iter().chain(extra_args.iter().copied()))
}

#[test]
fn both_ends_on_one_machine_have_one_clock() {
    let ran = measure_local_clock(&["--format", "json", "--method", "hulls,four-stamps"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let summary = &document(&ran.out)["summary"];
    for clock in ["wall", "monotonic"] {
        let (offset, bound) = (&summary[clock]["offset_ns"], &summary[clock]["bound_ns"]);
        assert!(number(offset).abs() <= number(bound), "{clock}: {summary}");
    }
    let drift = &summary["drift"];
    assert!(
        float(&drift["ppm"]).abs() <= float(&drift["bound_ppm"]),
        "{summary}"
    );
    assert_eq!(summary["steps"], Value::Array(Vec::new()));
    assert_eq!(number(&summary["n"]), 30);
    let four = &summary["four_timestamps"];
    assert_eq!((number(&four["n"]), &four["bound_ns"]), (30, &Value::Null));
}

#[test]
fn each_line_has_offset_and_bound_and_the_summary_each_method() {
    let text = measure_local_clock(&["--every", "100ms", "--method", "hulls,four-stamps"]);
    assert_eq!(text.status, 0, "{}", text.err);
    let mut rows = text.out.lines().filter(|line| line.contains(" ppm "));
    let row = rows.next().expect("a line each tenth of a second");
    assert!(row.matches(" ± ").count() == 2, "{row}");
    for line in [
        "wall clocks now",
        "raw clocks  ",
        "drift",
        "wander",
        "four timestamps",
        "steps",
    ] {
        assert!(
            text.out.contains(&format!("\n{line}")),
            "{line}:\n{}",
            text.out
        );
    }
    assert!(text.out.contains("No bound"), "{}", text.out);
    let lines = measure_local_clock(&["--every", "100ms", "--format", "ndjson"]);
    let kinds: Vec<Value> = lines
        .out
        .lines()
        .map(|line| document(line)["kind"].clone())
        .collect();
    assert_eq!(kinds.first(), Some(&"offset".into()));
    assert_eq!(kinds.last(), Some(&"summary".into()));
}

#[test]
fn ctrl_c_prints_the_summary_of_measured_data() {
    let reflector = reflector();
    let peer = reflector.address().to_string();
    let mut child = command()
        .args(["clock", &peer, "-i", "10ms", "--every", "50ms"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("neph runs");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("ppm") {
        line.clear();
        assert!(out.read_line(&mut line).expect("text") > 0, "it ended");
    }
    send_signal("INT", child.id());
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(rest.contains("wall clocks now"), "{rest}");
}

#[test]
fn an_absent_reflector_is_reported_with_its_remedy() {
    let ran = neph([
        "clock",
        "127.0.0.1:9",
        "-c",
        "2",
        "-i",
        "10ms",
        "--format",
        "json",
    ]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("start neph reflect there"), "{}", ran.err);
    assert_eq!(document(&ran.out)["summary"], Value::Null);
}

#[test]
fn a_peer_that_takes_another_key_may_be_silent_for_that() {
    let reflector = reflector();
    let peer = reflector.address().to_string();
    let base_args = [
        "clock",
        &peer,
        "-c",
        "1",
        "-i",
        "10ms",
        "--stamp-key",
        "env:PATH",
    ];
    let ran = neph(base_args);
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(
        ran.err.contains("with the --stamp-key of here"),
        "{}",
        ran.err
    );
}

#[test]
fn a_figure_that_never_came_leaves_its_place_as_it_was() {
    let folder = TestFolder::empty();
    for before in [None, Some("mine")] {
        let figure = folder.path("offset.svg");
        if let Some(text) = before {
            fs::write(&figure, text).expect("a file");
        }
        let path = figure.display().to_string();
        let args = [
            "clock",
            "127.0.0.1:9",
            "-c",
            "1",
            "--force",
            "--figure",
            &path,
        ];
        let ran = neph(args);
        assert_eq!(ran.status, 1, "{}", ran.err);
        assert_eq!(fs::read_to_string(&figure).ok().as_deref(), before);
    }
}

/// A capture of raw IPv4 in nanoseconds.
pub(crate) struct Capture(pub(crate) Vec<(i64, Vec<u8>)>);

impl Capture {
    /// A datagram with this number between hosts 1 and 2.
    pub(crate) fn add_datagram(&mut self, at: i64, number: u16, (from, to): (u8, u8)) {
        let mut packet = vec![0x45, 0, 0, 44];
        packet.extend(number.to_be_bytes());
        packet.extend([0x40, 0, 64, 17, 0, 0, 192, 0, 2, from, 192, 0, 2, to]);
        packet.extend([0x30, from, 0x30, to, 0, 24, 0, 0]);
        packet.extend([7; 16]);
        self.0.push((at, packet));
    }

    pub(crate) fn write(&self, path: &Path) {
        let mut file = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
        file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0]);
        for (at, packet) in &self.0 {
            let length = i64::try_from(packet.len()).expect("short");
            for field in [at / SECOND, at % SECOND, length, length] {
                file.extend(u32::try_from(field).expect("32 bits").to_le_bytes());
            }
            file.extend(packet);
        }
        fs::write(path, file).expect("a file");
    }
}

/// An exchange each 50 ms for a minute, 5 ms there and 1 ms back and a little more each time, seen at
/// both ends; the second clock shows what `shows` makes of the time.
pub(crate) fn exchanges(folder: &TestFolder, clock: impl Fn(i64) -> i64) -> [String; 2] {
    let (mut first, mut second) = (Capture(Vec::new()), Capture(Vec::new()));
    for number in 0..1_200_u16 {
        let sent = START + i64::from(number) * SECOND / 20;
        let jitter = |step: u16| i64::from(number.wrapping_mul(step) % 997) * 1_000;
        let arrived = sent + 5_000_000 + jitter(31);
        let answered = arrived + 40_000;
        let returned = answered + 1_000_000 + jitter(57);
        first.add_datagram(sent, number, (1, 2));
        second.add_datagram(clock(arrived), number, (1, 2));
        second.add_datagram(clock(answered), number, (2, 1));
        first.add_datagram(returned, number, (2, 1));
    }
    [("here", first), ("there", second)].map(|(name, capture)| {
        let path = folder.path(&format!("{name}.pcap"));
        capture.write(&path);
        path.display().to_string()
    })
}

pub(crate) fn compare_captures(files: &[String; 2], extra_args: &[&str]) -> RunOutput {
    let base_args = ["clock", "--captures", &files[0], &files[1]];
    neph(base_args.into_iter().chain(extra_args.iter().copied()))
}

#[test]
fn captures_show_a_clock_offset_and_drift_within_their_bounds() {
    let folder = TestFolder::empty();
    let clock = |at: i64| at + 3 * SECOND + (at - START) / 1_000_000 * 40;
    let files = exchanges(&folder, clock);
    let figure = folder.path("offset.svg").display().to_string();
    let ran = compare_captures(
        &files,
        &[
            "--format",
            "json",
            "--method",
            "hulls,four-stamps",
            "--figure",
            &figure,
        ],
    );
    assert_eq!(ran.status, 0, "{}", ran.err);
    let document = document(&ran.out);
    let rows = document["offsets"].as_array().expect("rows");
    assert!(rows.len() >= 10);
    for row in rows {
        let at = START + number(&row["since_ns"]);
        let clocks = &row["clocks"];
        let error = number(&clocks["offset_ns"]) - (clock(at) - at);
        assert!(error.abs() <= number(&clocks["bound_ns"]), "{error}: {row}");
        assert!(
            number(&clocks["bound_ns"]) < 3_500_000,
            "half of the round trip, and little more"
        );
    }
    let summary = &document["summary"];
    assert_eq!(number(&summary["n"]), 2_400);
    assert_eq!(summary["steps"], Value::Array(Vec::new()));
    let drift = &summary["drift"];
    assert!(
        (float(&drift["ppm"]) - 40.0).abs() <= float(&drift["bound_ppm"]),
        "{drift}"
    );
    let drawn = fs::read_to_string(&figure).expect("the figure");
    assert!(drawn.starts_with("<svg") && drawn.contains("Offset of two clocks"));
}

#[test]
fn an_impossible_drift_is_none_and_an_unknown_drift_is_unknown() {
    let folder = TestFolder::empty();
    // Replayed at a speed of 1.005.
    let files = exchanges(&folder, |at| at + (at - START) / 200);
    let ran = compare_captures(&files, &[]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let expected = "\ndrift             not plausible: +";
    assert!(ran.out.contains(expected), "{}", ran.out);
    let summary = document(&compare_captures(&files, &["--format", "json"]).out)["summary"].clone();
    assert_eq!(summary["drift"], Value::Null);
    let implausible_drift = float(&summary["implausible_drift_ppm"]);
    assert!((4_000.0..6_000.0).contains(&implausible_drift), "{summary}");
    let expected = "\nwander            not estimated without a drift; ";
    assert!(ran.out.contains(expected), "{}", ran.out);
    assert_eq!(summary["wander"]["rate_max_ppm"], Value::Null);
    // Of a tenth of a second nothing is known of a drift, with 6 ms there and back.
    let short = files.map(|file| {
        let capture = fs::read(&file).expect("a capture");
        fs::write(&file, &capture[..24 + 4 * 60]).expect("a file");
        file
    });
    let ran = compare_captures(&short, &[]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(
        ran.out
            .contains("\ndrift             not known after so little: within ±1000 ppm"),
        "{}",
        ran.out
    );
    let summary = document(&compare_captures(&short, &["--format", "json"]).out)["summary"].clone();
    assert_eq!(
        summary["drift"],
        Value::Null,
        "no number for programs either"
    );
    assert_eq!(summary["clocks"]["rate_ppm"], Value::Null);
    assert!(ran.out.contains("  not known  "), "of a line: {}", ran.out);
}

#[test]
fn captures_that_cannot_be_compared_are_refused_with_the_reason() {
    let folder = TestFolder::empty();
    let files = exchanges(&folder, |at| at);
    let none = folder.path("none.pcap").display().to_string();
    let mut other = Capture(Vec::new());
    other.add_datagram(START, 5_000, (3, 4));
    other.write(Path::new(&none));
    let path = folder.path("alone.pcap").display().to_string();
    let mut capture = Capture(Vec::new());
    (0..5).for_each(|number| capture.add_datagram(START + i64::from(number), number, (1, 2)));
    capture.write(Path::new(&path));
    for (forward, why) in [
        (&none, "no packet of"),
        (&files[0], "one file twice"),
        (&path, "one direction only"),
        (&"/nowhere.pcap".to_owned(), "/nowhere.pcap"),
    ] {
        let ran = compare_captures(&[files[0].clone(), forward.clone()], &[]);
        assert_eq!(ran.status, 2, "{}", ran.out);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
}

#[test]
fn captures_of_different_hosts_have_no_packet_in_common() {
    let folder = TestFolder::empty();
    let files = [("one", (1, 2)), ("other", (3, 4))].map(|(name, hosts)| {
        let mut capture = Capture(Vec::new());
        (0..20).for_each(|second| capture.add_datagram(START + second * SECOND, 7, hosts));
        let path = folder.path(&format!("{name}.pcap"));
        capture.write(&path);
        path.display().to_string()
    });
    let ran = compare_captures(&files, &[]);
    assert_eq!(ran.status, 2, "{}", ran.out);
    let why = format!("no packet of {} is in {}", files[0], files[1]);
    assert!(ran.err.contains(&why), "{}", ran.err);
    // Where one has them that the other has too, the copies are to blame.
    let mut pair = Capture(Vec::new());
    pair.add_datagram(START, 7, (1, 2));
    pair.write(Path::new(&files[1]));
    let ran = compare_captures(&files, &[]);
    assert_eq!(ran.status, 2, "{}", ran.out);
    assert!(ran.err.contains("cannot be matched"), "{}", ran.err);
}

#[test]
fn invalid_arguments_are_refused() {
    for (arguments, why) in [
        (&["clock"][..], "neph clock --captures HERE THERE"),
        (&["clock", "tcp://h:1"], "udp://"),
        (&["clock", "tcp://h"], "write udp://h"),
        (
            &["clock", "h", "--figure", "/nonexist/x.svg"],
            "make the folder /nonexist",
        ),
        (&["clock", "h", "--figure", "offset.bmp"], ".svg"),
        (&["clock", "h", "-i", "1us"], "100us"),
        (&["clock", "h", "--wander", "3000"], "1000 ppm"),
        (
            &["clock", "h", "--captures", "a", "b"],
            "cannot be used with",
        ),
    ] {
        let ran = neph(arguments.iter().copied());
        assert_eq!(ran.status, 2, "{arguments:?}");
        assert!(ran.err.contains(why), "{arguments:?}: {}", ran.err);
    }
}
