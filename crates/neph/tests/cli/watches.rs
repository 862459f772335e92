//! `neph watch`: flows on the loopback interface of a namespace of their own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Output, Stdio};

use neph_sys::netns::{NetNs, remove, with_namespace};
use serde_json::Value;

use crate::labs::without_root;
use crate::neph::{
    RunOutput, TIMEOUT, TestFolder, eventually, run_ip, send_signal, start_and_read_line,
};
use crate::watches_asked::ask_names;

#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
pub(crate) fn skip(test: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{test}");
    println!("SKIP {test}: namespaces need root");
}

/// Runs `work` in a namespace whose loopback interface is up, if this user may make one.
pub(crate) fn with_loopback(test: &str, work: impl FnOnce() + Send) {
    let name = format!("nephwatch-{}-{test}", std::process::id());
    let Ok(ns) = NetNs::create(&name) else {
        skip(test);
        return;
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        with_namespace(&ns, || {
            run_ip("link set lo up");
            work();
        })
    }));
    remove(&name).expect("remove");
    outcome
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        .expect("enter");
}

/// A watch that listens, begun in this thread's namespace.
pub(crate) struct Watch(Option<Child>);

impl Watch {
    pub(crate) fn begin(folder: &TestFolder, arguments: &[&str]) -> Self {
        Self::of(folder, "lo", arguments)
    }

    pub(crate) fn of(folder: &TestFolder, interface: &str, arguments: &[&str]) -> Self {
        let mut command = folder.command(["watch", interface].iter().chain(arguments).copied());
        let (child, printed, line) = start_and_read_line(command.stdout(Stdio::piped()));
        assert!(line.contains(&format!("looking at {interface}")), "{line}");
        // What it says further is read when it has ended.
        std::mem::forget(printed);
        Self(Some(child))
    }

    fn end(self) -> RunOutput {
        self.output().into()
    }

    /// What it wrote, byte by byte, when it has ended by itself.
    pub(crate) fn output(mut self) -> Output {
        let child = self.0.take().expect("it runs");
        child.wait_with_output().expect("it ends")
    }

    /// Ends it as ctrl-C does.
    pub(crate) fn interrupt(self) -> RunOutput {
        send_signal("INT", self.0.as_ref().expect("it runs").id());
        self.end()
    }
}

impl Drop for Watch {
    /// A test that failed leaves it running.
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Requests one after the other over a connection to a server of ours, which answers each; gives its
/// port.
pub(crate) fn exchange(server: &str, count: u8) -> u16 {
    let listener = TcpListener::bind((server, 0)).expect("listen");
    exchange_with(listener, count, |address| {
        TcpStream::connect(address).expect("connect")
    })
}

/// The same with a server that listens already, wherever that is.
pub(crate) fn exchange_with(
    listener: TcpListener,
    count: u8,
    connect: impl FnOnce(SocketAddr) -> TcpStream,
) -> u16 {
    let address = listener.local_addr().expect("address");
    let answering = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("accept");
        let mut byte = [0];
        while peer.read_exact(&mut byte).is_ok() {
            peer.write_all(&byte).expect("answer");
        }
    });
    let mut stream = connect(address);
    stream.set_nodelay(true).expect("an option");
    for number in 0..count {
        let mut byte = [number];
        stream.write_all(&byte).expect("ask");
        stream.read_exact(&mut byte).expect("an answer");
    }
    drop(stream);
    answering.join().expect("ended");
    address.port()
}

pub(crate) fn lines(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).expect("JSON");
    text.lines().map(parse).collect()
}

pub(crate) fn lines_of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

/// Bytes of all that was sent by flows in lines of this kind.
fn sent_bytes(lines: &[Value], kind: &str) -> u64 {
    let sent = lines_of_kind(lines, kind)
        .into_iter()
        .map(|line| &line["sent"]);
    let bytes = sent.flat_map(|sent| ["client", "server"].map(|side| &sent[side]["bytes"]));
    bytes.map(|bytes| bytes.as_u64().expect("a count")).sum()
}

#[test]
fn bytes_of_periods_are_those_of_their_flows_whatever_the_link_header() {
    with_loopback("bytes", || {
        let folder = TestFolder::empty();
        let arguments = ["--format", "ndjson", "--proto", "tcp"];
        let watches = ["lo", "any"].map(|interface| Watch::of(&folder, interface, &arguments));
        exchange("127.0.0.1", 20);
        for watch in watches {
            let lines = lines(&watch.interrupt().out);
            let periods = lines_of_kind(&lines, "period").into_iter();
            let entries = periods.map(|line| line["bytes"].as_u64().expect("a count"));
            let of_flows = sent_bytes(&lines, "flow");
            assert!(of_flows > 40 * 40, "{of_flows}");
            assert_eq!(entries.sum::<u64>(), of_flows);
            assert_eq!(sent_bytes(&lines, "flow_period"), of_flows);
            let summary = lines.last().expect("a summary");
            assert_eq!(summary["bytes"], of_flows);
            assert_eq!(summary["files"][0]["bytes"], of_flows);
        }
    });
}

#[test]
fn flows_are_reported_per_period_and_at_the_end() {
    with_loopback("told", || {
        let folder = TestFolder::empty();
        let watch = Watch::begin(&folder, &["--format", "ndjson", "--samples"]);
        let port = exchange("127.0.0.1", 20);
        let ran = watch.interrupt();
        assert_eq!(ran.status, 130);
        let lines = lines(&ran.out);
        let flows = lines_of_kind(&lines, "flow");
        assert_eq!(flows.len(), 1, "{}", ran.out);
        assert_eq!(flows[0]["server"], format!("127.0.0.1:{port}"));
        let answered = &flows[0]["round_trips"]["server"]["acknowledgement"];
        assert_eq!(answered["handshake"]["n"], 1);
        // A server that is slow to answer acknowledges some requests before.
        let answers = answered["with_data"]["n"].as_u64().expect("some");
        assert!((1..=20).contains(&answers), "{answers}");
        // What periods tell adds up to what the summary tells.
        let summary = lines.last().expect("a summary");
        let count = |kind: &str| -> u64 {
            let periods = lines_of_kind(&lines, kind);
            let with_data = |line: &&Value| {
                let of = &line["round_trips"]["server"]["acknowledgement"]["with_data"];
                of["n"].as_u64().unwrap_or(0)
            };
            periods.iter().map(with_data).sum()
        };
        assert_eq!((count("period"), count("flow_period")), (answers, answers));
        let packets = lines_of_kind(&lines, "period")
            .iter()
            .filter_map(|period| period["packets"].as_u64())
            .sum::<u64>();
        assert_eq!(summary["files"][0]["packets"], packets);
        assert_eq!(summary["files"][0]["packets_lost_by_capture"], 0);
        for period in lines_of_kind(&lines, "period") {
            for key in ["retransmitted_segments", "spurious_retransmissions"] {
                assert!(period[key].is_u64(), "{key}: {period}");
            }
            assert_eq!(period["segments_not_tracked"], 0);
        }
        let samples = lines_of_kind(&lines, "sample");
        assert!(samples.len() >= 20, "{}", samples.len());
    });
}

#[test]
fn the_text_output_has_a_line_per_flow_and_the_capture_loss() {
    with_loopback("text", || {
        let folder = TestFolder::empty();
        let watch = Watch::begin(&folder, &["--every", "100ms"]);
        let port = exchange("127.0.0.1", 20);
        let ran = watch.interrupt();
        assert_eq!(ran.status, 130);
        let server = format!("127.0.0.1:{port}");
        let server_lines = ran.out.lines().filter(|line| line.contains(&server));
        assert!(
            server_lines.count() >= 2,
            "in a period and at the end: {}",
            ran.out
        );
        assert!(ran.out.contains("none lost"), "{}", ran.out);
        assert!(ran.out.contains("1 flow of TCP"), "{}", ran.out);
    });
}

#[test]
fn enough_packets_or_time_end_it() {
    with_loopback("enough", || {
        let folder = TestFolder::empty();
        let watch = Watch::begin(&folder, &["--count", "10", "--format", "ndjson"]);
        exchange("127.0.0.1", 20);
        let ran = watch.end();
        assert_eq!(ran.status, 0);
        let lines = lines(&ran.out);
        assert_eq!(lines.last().expect("a summary")["files"][0]["packets"], 10);
        let ran = folder.neph(["watch", "lo", "--duration", "100ms"]);
        assert_eq!(ran.status, 1, "nothing passed: {}", ran.out);
    });
}

#[test]
fn the_kernel_delivers_only_the_requested_packets() {
    with_loopback("filter", || {
        let folder = TestFolder::empty();
        let arguments = ["--host", "::1", "--port", "9", "--proto", "tcp"];
        let none = Watch::begin(&folder, &[&arguments[..], &["--format", "ndjson"]].concat());
        let six = Watch::begin(&folder, &["--host", "::1", "--format", "ndjson"]);
        let four = [
            "--host",
            "127.0.0.1",
            "--host",
            "10.0.0.1",
            "--proto",
            "tcp",
        ];
        let four = Watch::begin(&folder, &[&four[..], &["--format", "ndjson"]].concat());
        let (port_four, port_six) = (exchange("127.0.0.1", 5), exchange("::1", 5));
        let servers = |watch: Watch| -> Vec<String> {
            let ran = watch.interrupt();
            let lines = lines(&ran.out);
            let flows = lines_of_kind(&lines, "flow");
            let server = |flow: &&Value| flow["server"].as_str().expect("a server").to_owned();
            flows.iter().map(server).collect()
        };
        assert_eq!(servers(four), [format!("127.0.0.1:{port_four}")]);
        assert_eq!(servers(six), [format!("[::1]:{port_six}")]);
        assert_eq!(servers(none), [""; 0]);
    });
}

#[test]
fn a_path_that_is_too_slow_raises_an_alarm() {
    with_loopback("alarm", || {
        let folder = TestFolder::empty();
        let rule = "with-data > 1ns p50";
        let other = "with-data > 100s p50";
        let arguments = ["--every", "50ms", "--format", "ndjson"];
        let alarms = ["--alarm", rule, "--alarm", other];
        let watch = Watch::begin(&folder, &[&arguments[..], &alarms].concat());
        exchange("127.0.0.1", 100);
        let ran = watch.interrupt();
        assert_eq!(ran.status, 3, "however it ends: {}", ran.out);
        let lines = lines(&ran.out);
        let alarms = lines_of_kind(&lines, "alarm");
        assert_eq!(alarms.len(), 1, "{}", ran.out);
        assert_eq!(
            (&alarms[0]["rule"], &alarms[0]["state"]),
            (&rule.into(), &"raised".into())
        );
        let ran = folder.neph(["watch", "lo", "--alarm", "pat > 2ms p99"]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""));
        assert!(ran.err.contains("--alarm:1:1"), "{}", ran.err);
    });
}

/// The page for Prometheus.
fn metrics(address: &str) -> std::io::Result<String> {
    let mut peer = TcpStream::connect(address)?;
    peer.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")?;
    let mut page = String::new();
    peer.read_to_string(&mut page)?;
    Ok(page)
}

#[test]
fn prometheus_metrics_contain_pairs_of_hosts() {
    with_loopback("metrics", || {
        let folder = TestFolder::empty();
        let arguments = [
            "watch",
            "lo",
            "--prometheus",
            "0",
            "--alarm",
            "path > 1s p50",
        ];
        let mut command = folder.command(arguments);
        let (child, _stderr, line) = start_and_read_line(command.stdout(Stdio::piped()));
        let address = line
            .split(['/', ' '])
            .find(|part| part.contains(':') && part.contains('.'));
        let address = address.expect("it says where").to_owned();
        exchange("127.0.0.1", 5);
        let mut page = String::new();
        eventually("a pair of hosts", TIMEOUT, || {
            page = metrics(&address).unwrap_or_default();
            page.contains("_count{client=\"127.0.0.1\"")
        });
        // It says where it answers before it listens: now it does.
        ask_names();
        eventually("questions outside of TCP", TIMEOUT, || {
            page = metrics(&address).unwrap_or_default();
            page.contains("half=\"server\",answer=\"dns\"} 3")
        });
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        assert!(
            page.contains("server=\"127.0.0.1\",half=\"server\",answer="),
            "{page}"
        );
        assert!(
            page.contains("neph_watch_alarm{rule=\"path > 1s p50\"} 0"),
            "{page}"
        );
        assert!(page.contains("neph_watch_packets_lost_total 0"), "{page}");
        send_signal("TERM", child.id());
        let ran = RunOutput::from(child.wait_with_output().expect("it ends"));
        assert_eq!(ran.status, 130);
    });
}

#[test]
fn interfaces_and_options_that_cannot_be_watched_are_refused() {
    with_loopback("refused", || {
        let folder = TestFolder::empty();
        for (arguments, printed) in [
            (&["watch", "no-such-if0"][..], "no interface no-such-if0"),
            (&["watch", "lo", "--samples"], "--format ndjson"),
            (&["watch", "lo", "--every", "0"], "above zero"),
            (&["watch", "lo", "--snaplen", "9"], "64 to 262140"),
            (
                &["watch", "lo", "--write", "/no/such/x.pcap"],
                "make the folder /no/such first",
            ),
            (&["watch", "lo", "--write", "-", "--samples"], "leave out"),
        ] {
            let ran = folder.neph(arguments.iter().copied());
            assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
            assert!(ran.err.contains(printed), "{}", ran.err);
        }
    });
}

#[test]
fn without_rights_the_first_sentence_names_all_that_the_way_needs() {
    let folder = TestFolder::empty();
    for (direction, needed) in [
        ("ring", "setcap cap_net_raw+ep"),
        ("bpf", "setcap cap_net_raw,cap_bpf,cap_net_admin+ep"),
    ] {
        let ran = without_root(&folder, 0o755, ["watch", "lo", "--listen", direction]);
        assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
        assert!(ran.err.contains(needed), "{}", ran.err);
    }
}
