//! `neph media` at the command line, over loopback.

use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::neph::{
    RunOutput, TestFolder, command, eventually, neph, send_signal, start_and_read_line,
};

/// A media server in the background on a port of its own; ended with this.
pub(crate) struct MediaServer {
    process: Child,
    pub(crate) address: String,
}

impl MediaServer {
    pub(crate) fn start(options: &[&str]) -> Self {
        let mut serve = command();
        serve.args(["media", "serve", "--listen", "127.0.0.1:0"]);
        let (process, _, first) = start_and_read_line(serve.args(options));
        let fields = first.split_whitespace();
        let address = fields.skip_while(|word| *word != "media:").nth(1);
        let address = address.unwrap_or_else(|| panic!("{first}")).to_owned();
        Self { process, address }
    }
}

impl Drop for MediaServer {
    fn drop(&mut self) {
        send_signal("TERM", self.process.id());
        self.process.wait().expect("it ends");
    }
}

/// The document of a run that ended well.
pub(crate) fn document(ran: &RunOutput) -> Value {
    assert_eq!(ran.status, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).expect("JSON")
}

/// A number of a document.
pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn streams_are_measured_in_each_format() {
    let server = MediaServer::start(&[]);
    let args = |rest: &str| format!("media {} -n 2 -w 2s {rest}", server.address);
    let shown = document(&neph(args("--format json").split_whitespace()));
    assert_eq!(shown["schema"], 2);
    let streams = shown["streams"].as_array().expect("a list");
    assert_eq!(streams.len(), 2);
    for stream in streams {
        assert_eq!(
            (&stream["lost"], &stream["fault"]),
            (&0.into(), &Value::Null),
            "{stream}"
        );
        assert_eq!(stream["seconds"].as_array().map(Vec::len), Some(2));
        // 110 and 845 kbit/s.
        let mean = number(&stream["rate_mean_bit_s"]);
        assert!((mean / 477_500.0 - 1.0).abs() < 0.1, "{stream}");
        assert!(number(&stream["frames_in_time"]) >= 44.0, "{stream}");
        assert!(stream["network_jitter_mean_ns"].is_number() && stream["quality_mos"].is_number());
    }
    let text = neph(args("").split_whitespace());
    assert_eq!(text.status, 0, "{}", text.err);
    for part in [
        "NETWORK JITTER",
        "\n2 streams: mean ",
        "with a buffer of 200.00 ms",
    ] {
        assert!(text.out.contains(part), "{}", text.out);
    }
    let csv = neph(args("--format csv").split_whitespace());
    assert_eq!(csv.out.lines().count(), 5, "{}", csv.out);
    let lines = neph(args("--format ndjson").split_whitespace());
    let kinds: Vec<Value> = lines
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["kind"].clone())
        .collect();
    assert_eq!(kinds, ["second", "second", "second", "second", "summary"]);
}

#[test]
fn invalid_or_refused_media_requests_are_reported() {
    let server = MediaServer::start(&["--max-streams", "2"]);
    let address = server.address.as_str();
    let other = format!("rtsp://{address}/other");
    for (target, args, status, why) in [
        (
            address,
            "-n 3 -w 1s",
            1,
            "453 Not Enough Bandwidth; ask for fewer streams",
        ),
        (
            other.as_str(),
            "-w 1s",
            1,
            "refuses DESCRIBE: 404 Not Found; name the path",
        ),
        (address, "-w 1ms", 2, "write 1s to 24h"),
        (address, "--buffer 2min", 2, "write 0 to 60s"),
        (address, "--start-at tomorrow", 2, "2026-11-27T09:30:00Z"),
        ("http://h/", "-w 1s", 2, "write rtsp://host[:port][/path]"),
        (
            "rtsp://user:secret@h/",
            "-w 1s",
            2,
            "without user and password",
        ),
        ("127.0.0.1:1", "-w 1s", 1, "is neph media serve there?"),
    ] {
        let ran = neph(["media", target].into_iter().chain(args.split(' ')));
        assert_eq!(ran.status, status, "{target} {args}: {}", ran.err);
        assert!(ran.err.contains(why), "{target} {args}: {}", ran.err);
        assert!(!ran.err.contains("secret"), "{}", ran.err);
    }
}

#[test]
fn a_trace_of_one_s_own_is_sent_and_a_bad_one_is_one_sentence_with_its_line() {
    let folder = TestFolder::empty();
    fs::write(folder.path("mine.trace"), "# mine\nfps 50\n2500\n").expect("written");
    let path = folder.path("mine.trace");
    let server = MediaServer::start(&["--trace", &path.to_string_lossy()]);
    let shown = document(&neph([
        "media",
        &server.address,
        "-w",
        "2s",
        "--format",
        "json",
    ]));
    let entry = &shown["streams"][0];
    assert!(
        (number(&entry["rate_mean_bit_s"]) / 1e6 - 1.0).abs() < 0.05,
        "{entry}"
    );
    assert!(number(&entry["frames"]) >= 88.0, "{entry}");
    for (text, why) in [
        (
            "25\n1000\n",
            "line 1: 25 is no frame rate; begin with 'fps N'",
        ),
        ("fps 25\n1000\n12x\n", "line 3: 12x is no frame size"),
        ("", "it has no frame"),
    ] {
        fs::write(folder.path("bad.trace"), text).expect("written");
        let ran = folder.neph(["media", "serve", "--trace", "bad.trace"]);
        assert_eq!(ran.status, 2, "{}", ran.err);
        let wanted = format!("trace bad.trace: {why}");
        assert!(ran.err.contains(&wanted), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
    let ran = folder.neph(["media", "serve", "--trace", "none.trace"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    let ran = folder.neph(["media", "serve", "--max-rate", "900kbit/s"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(ran.err.contains("raise --max-rate"), "{}", ran.err);
}

#[test]
fn ctrl_c_prints_the_result_and_frees_the_media_server() {
    let server = MediaServer::start(&["--max-streams", "1"]);
    let mut client = command();
    client.args(["media", &server.address, "-w", "5min"]);
    let client = client.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut client = client.spawn().expect("neph runs");
    let mut out = client.stdout.take().expect("it is piped");
    let (mut text, mut buffer) = (String::new(), [0; 1024]);
    // The heading, and a second.
    eventually("a second is shown", Duration::from_secs(20), || {
        let count = out.read(&mut buffer).expect("it can be read");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        text.lines().count() >= 2
    });
    send_signal("INT", client.id());
    out.read_to_string(&mut text).expect("it ends");
    assert_eq!(client.wait().expect("it ends").code(), Some(130));
    assert!(text.contains("\n1 stream: mean "), "{text}");
    let next = neph(["media", &server.address, "-w", "1s"]);
    assert_eq!(next.status, 0, "{}", next.err);
}
