//! `neph clock` where the truth is known: both ends on one kernel have one clock, whatever the link
//! does; a time namespace shifts the raw clock alone; a capture's stamps can be rewritten.

#![expect(
    clippy::print_stdout,
    reason = "a test tells what it measured and what it skipped"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use neph_model::Span;
use neph_sys::clock;
use neph_sys::process;
use serde_json::Value;

use crate::points::CaptureFiles;
use crate::setup::{TwoSites, is_privileged, measure, neph, run_successfully};

const SECOND: i64 = 1_000_000_000;
/// The forward path is far longer, and has queues.
const ASYMMETRIC_LINK: &str =
    "delay = \"2ms\"\na_to_b = { delay = \"10ms\", jitter = \"pareto 1ms\" }";

/// Short, so that the bound is too.
const SHORT_LINK: &str = "delay = \"100us\"\na_to_b = { delay = \"300us\" }";

fn number(value: &Value) -> i64 {
    value.as_i64().expect("a whole number")
}

fn real(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// What `neph clock` reports with these arguments.
fn clock_document(arguments: &[&str]) -> Value {
    let format_arguments = ["--format", "json", "--method", "hulls,four-stamps"];
    let arguments: Vec<&str> = ["clock"]
        .iter()
        .chain(arguments)
        .chain(&format_arguments)
        .copied()
        .collect();
    let output = run_successfully(neph(Path::new("/nowhere"), &arguments));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A process that ends with its test.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Whoever is gone already needs no signal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn one_clock_has_no_offset_beyond_its_bound_on_an_asymmetric_link() {
    if !is_privileged("one_clock_has_no_offset_beyond_its_bound_on_an_asymmetric_link") {
        return;
    }
    let lab = TwoSites::up("clock_uneven", ASYMMETRIC_LINK);
    let reflector = lab.reflector(Span::ZERO);
    let site = lab.namespace("client");
    let document = clock_document(&["10.79.0.2", "--site", &site, "-c", "150", "-i", "20ms"]);
    drop(reflector);
    let [forward, reverse] = lab.delays(80);
    let summary = &document["summary"];
    let minimum = |delays: &[i64]| delays.iter().copied().min().expect("packets");
    let half_min_rtt = minimum(&forward).midpoint(minimum(&reverse));
    for clock in ["wall", "monotonic"] {
        let (offset, bound) = (
            number(&summary[clock]["offset_ns"]),
            number(&summary[clock]["bound_ns"]),
        );
        println!("{clock}: {offset} ± {bound} ns, half of the shortest round trip {half_min_rtt}");
        assert!(offset.abs() <= bound, "{summary}");
        assert!(
            bound >= half_min_rtt,
            "no message proves more than the link's delays allow"
        );
    }
    let mean =
        |delays: &[i64]| delays.iter().sum::<i64>() / i64::try_from(delays.len()).expect("some");
    let (formula, by_link) = (
        number(&summary["four_timestamps"]["wall_offset_ns"]),
        (mean(&forward) - mean(&reverse)) / 2,
    );
    println!("four stamps: {formula} ns; half of what the link's ways differ by: {by_link}");
    // Three seconds over a path of 12 ms hardly tell one.
    let drift = &summary["drift"];
    assert!(
        drift.is_null() || real(&drift["ppm"]).abs() <= real(&drift["bound_ppm"]),
        "{drift}"
    );
    assert_eq!(summary["steps"], Value::Array(Vec::new()));
}

#[test]
fn a_raw_clock_shifted_by_a_time_namespace_has_that_offset() {
    if !is_privileged("a_raw_clock_shifted_by_a_time_namespace_has_that_offset") {
        return;
    }
    let child = process::command("unshare")
        .args(["--time", "--monotonic", "12345", "--fork", "--kill-child"])
        .args([
            env!("CARGO_BIN_EXE_neph"),
            "reflect",
            "--listen",
            "127.0.0.1:0",
        ])
        .stderr(Stdio::piped())
        .spawn();
    let mut child = KilledOnDrop(child.expect("unshare runs"));
    let mut printed = String::new();
    let stderr = child.0.stderr.take().expect("piped");
    BufReader::new(stderr)
        .read_line(&mut printed)
        .expect("text");
    let Some(address) = printed
        .strip_prefix("neph reflect: ")
        .and_then(|rest| rest.split(' ').next())
    else {
        println!("SKIP a_raw_clock_shifted_by_a_time_namespace_has_that_offset: {printed}");
        return;
    };
    let summary = &clock_document(&[address, "-c", "50", "-i", "10ms"])["summary"];
    let (raw, wall) = (&summary["monotonic"], &summary["wall"]);
    let error = number(&raw["offset_ns"]) - 12_345 * SECOND;
    println!("raw clocks: {error} ns off 12345 s, ± {}", raw["bound_ns"]);
    assert!(error.abs() <= number(&raw["bound_ns"]), "{summary}");
    assert!(
        number(&wall["offset_ns"]).abs() <= number(&wall["bound_ns"]),
        "{summary}"
    );
}

/// tcpdump at a site's end of the link, writing until it is told to end.
pub(crate) struct Capture {
    child: KilledOnDrop,
    file: PathBuf,
}

impl Capture {
    /// `None` where there is no tcpdump.
    pub(crate) fn begin(lab: &TwoSites, site: &str) -> Option<Self> {
        let name = format!("neph-{}.pcap", lab.namespace(site));
        let file = std::env::temp_dir().join(name);
        let mut child = process::command("nsenter")
            .arg(format!("--net=/run/netns/{}", lab.namespace(site)))
            .args([
                "tcpdump",
                "-Z",
                "root",
                "-i",
                "path",
                "-s",
                "128",
                "--immediate-mode",
            ])
            .args(["--time-stamp-precision=nano", "-U", "-w"])
            .arg(&file)
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let stderr = child.stderr.take().expect("piped");
        let child = KilledOnDrop(child);
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        lines.find(|line| line.contains("listening on"))?;
        Some(Self { child, file })
    }

    /// At both ends; `None` where there is no tcpdump, which is said of the test.
    pub(crate) fn at_both_ends(lab: &TwoSites, test: &str) -> Option<[Self; 2]> {
        let captures = ["client", "server"].map(|site| Self::begin(lab, site));
        let [Some(first), Some(second)] = captures else {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "tcpdump");
            println!("SKIP {test}: tcpdump is not installed");
            return None;
        };
        Some([first, second])
    }

    /// Ends both when all is quiet. Gives the files' bytes and a moment, nanoseconds since 1970: both
    /// hold everything that passed before it.
    ///
    /// tcpdump forgets what it has not read when it is told to end, and of an exchange that TCP repeats,
    /// 200 ms after the link lost the first, one may see what the other does not.
    pub(crate) fn end_both([first, second]: [Self; 2]) -> ([Vec<u8>; 2], i64) {
        clock::nap(Duration::from_millis(50));
        let until = clock::wall().0;
        clock::nap(Duration::from_millis(400));
        ([first.end(), second.end()], until)
    }

    /// Ends it and gives the file's bytes.
    fn end(mut self) -> Vec<u8> {
        let pid = self.child.0.id().to_string();
        let sent = process::command("kill").args(["-INT", &pid]).status();
        assert!(sent.expect("kill runs").success());
        self.child.0.wait().expect("it ends");
        let bytes = fs::read(&self.file).expect("what was captured");
        fs::remove_file(&self.file).expect("the file is ours");
        bytes
    }
}

/// The same capture by a clock that is so far off at its first packet, and so many ppm fast.
pub(crate) fn shifted(mut capture: Vec<u8>, offset: i64, ppm: i64) -> Vec<u8> {
    assert_eq!(
        capture[..4],
        0xa1b2_3c4d_u32.to_le_bytes(),
        "pcap of nanoseconds"
    );
    let field = |bytes: &[u8], position: usize| {
        i64::from(u32::from_le_bytes(
            bytes[position..position + 4]
                .try_into()
                .expect("four bytes"),
        ))
    };
    let (mut position, mut first) = (24, None);
    while position + 16 <= capture.len() {
        let time = field(&capture, position) * SECOND + field(&capture, position + 4);
        let elapsed = time - *first.get_or_insert(time);
        let shifted_time = time + offset + elapsed / 1_000_000 * ppm;
        for (index, value) in [
            (position, shifted_time / SECOND),
            (position + 4, shifted_time % SECOND),
        ] {
            let value = u32::try_from(value).expect("32 bits");
            capture[index..index + 4].copy_from_slice(&value.to_le_bytes());
        }
        position += 16 + usize::try_from(field(&capture, position + 8)).expect("a length");
    }
    capture
}

#[test]
fn captures_at_both_ends_show_an_offset_and_drift_in_bounds() {
    if !is_privileged("captures_at_both_ends") {
        return;
    }
    let lab = TwoSites::up("clock_captures", SHORT_LINK);
    let reflector = lab.reflector(Span::ZERO);
    let Some(captures) = Capture::at_both_ends(&lab, "captures_at_both_ends") else {
        return;
    };
    for scheme in ["icmp", "udp", "tcp"] {
        measure(lab.flow(scheme, Span::from_millis(20), 100));
    }
    drop(reflector);
    let ([first, second], _) = Capture::end_both(captures);
    let forward = shifted(second, 3 * SECOND, 40);
    let files = CaptureFiles::of("clock-files", [("here", &first), ("there", &forward)]);
    let document = clock_document(&["--captures", &files.paths[0], &files.paths[1]]);
    drop(files);
    let summary = &document["summary"];
    println!("{} packets, {}", summary["n"], summary["clocks"]);
    assert!(
        number(&summary["n"]) >= 600,
        "of 100 exchanges by each of three protocols: {summary}"
    );
    let rows = document["offsets"].as_array().expect("rows");
    // Since the second capture's first packet; the first one's is at most a second away.
    for row in rows {
        let truth = 3 * SECOND + number(&row["since_ns"]) / 1_000_000 * 40;
        let error = number(&row["clocks"]["offset_ns"]) - truth;
        let bound = number(&row["clocks"]["bound_ns"]) + 40_000;
        assert!(error.abs() <= bound, "{error}: {row}");
    }
    let drift = &summary["drift"];
    println!("drift {} ± {} ppm", drift["ppm"], drift["bound_ppm"]);
    assert!(
        (real(&drift["ppm"]) - 40.0).abs() <= real(&drift["bound_ppm"]),
        "{drift}"
    );
    assert_eq!(summary["steps"], Value::Array(Vec::new()));
}
