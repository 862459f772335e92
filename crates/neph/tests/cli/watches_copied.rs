//! `neph watch --listen`: BPF programs tell what the packet ring tells of the same packets.

use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use neph_sys::deadline::Stopwatch;
use neph_sys::netns::with_namespace;
use neph_sys::offload::switch_off;
use neph_sys::process;
use serde_json::Value;

use crate::neph::{RunOutput, TIMEOUT, TestFolder, run_ip};
use crate::watches::{Watch, exchange, exchange_with, lines, lines_of_kind, skip, with_loopback};
use crate::watches_any::Host;

const ROUND_TRIPS: [&str; 4] = ["--samples", "--format", "ndjson", "--proto=tcp"];

/// Whether the kernel here has such programs; says where not.
fn has_programs(test: &str, folder: &TestFolder) -> bool {
    let ran = folder.neph(["watch", "lo", "--listen", "bpf", "--duration", "1ms"]);
    let has = ran.status < 2;
    if !has {
        skip(test);
    }
    has
}

/// A watch that listens in one way.
fn start_with_capture(
    capture_method: &str,
    folder: &TestFolder,
    interface: &str,
    arguments: &[&str],
) -> Watch {
    Watch::of(
        folder,
        interface,
        &[&["--listen", capture_method], arguments].concat(),
    )
}

fn capture_method_of(ran: &RunOutput) -> Value {
    let stdout = lines(&ran.out);
    lines_of_kind(&stdout, "period").pop().expect("a period")["capture_method"].clone()
}

/// What each round trip is, and how long it took in nanoseconds.
fn round_trips(ran: &RunOutput) -> (Vec<[Value; 3]>, Vec<i64>) {
    let stdout = lines(&ran.out);
    let samples = lines_of_kind(&stdout, "sample").into_iter().map(|sample| {
        let keys = ["side", "method", "answer"].map(|key| sample[key].clone());
        (keys, sample["round_trip_ns"].as_i64().expect("a time"))
    });
    samples.unzip()
}

#[test]
fn bpf_copies_give_the_round_trips_of_the_ring_and_are_used_without_a_queue() {
    with_loopback("copied", || {
        let folder = TestFolder::empty();
        if !has_programs("copies_tell_the_round_trips_of_the_ring", &folder) {
            return;
        }
        let server = Host::behind("copied", 7);
        let copied = start_with_capture("bpf", &folder, "to7", &ROUND_TRIPS);
        let ring_watch = start_with_capture("ring", &folder, "to7", &ROUND_TRIPS);
        let default_watch = Watch::of(&folder, "to7", &ROUND_TRIPS);
        let listener = with_namespace(&server.ns, || TcpListener::bind("10.9.7.2:0"));
        exchange_with(listener.expect("enter").expect("listen"), 200, |address| {
            TcpStream::connect(address).expect("connect")
        });
        let [copied, ring_watch, default_watch] =
            [copied, ring_watch, default_watch].map(Watch::interrupt);
        assert_eq!(
            [&copied, &ring_watch, &default_watch].map(capture_method_of),
            ["bpf", "ring", "bpf"]
        );
        let ((keys, copied), (expected, ring_watch)) =
            (round_trips(&copied), round_trips(&ring_watch));
        assert_eq!(keys, expected);
        assert!(copied.len() >= 200, "{}", copied.len());
        let difference = copied
            .iter()
            .zip(&ring_watch)
            .map(|(difference, other)| (difference - other).abs());
        let mut difference: Vec<i64> = difference.collect();
        difference.sort_unstable();
        let median = difference[difference.len() / 2];
        assert!(median < 20_000, "round trips are {median} ns apart");
        // Where packets wait in a queue, are written, or need more memory.
        for requested in [
            &["--write", "x.pcap"][..],
            &["--snaplen", "4096"],
            &["--ring", "129MiB"],
        ] {
            let default_watch = Watch::of(&folder, "to7", &[requested, &ROUND_TRIPS].concat());
            assert_eq!(
                capture_method_of(&default_watch.interrupt()),
                "ring",
                "{requested:?}"
            );
        }
        run_ip("link set to7 down");
        run_ip("link set to7 txqueuelen 100 up");
        let queue = ["qdisc", "add", "dev", "to7", "root", "pfifo"];
        let queued = process::command("tc").args(queue).status();
        assert!(queued.expect("the tc program").success());
        let default_watch = Watch::of(&folder, "to7", &ROUND_TRIPS);
        assert_eq!(capture_method_of(&default_watch.interrupt()), "ring");
    });
}

#[test]
fn with_segmentation_offload_the_ring_is_used_and_shows_wire_segments() {
    with_loopback("cut", || {
        let folder = TestFolder::empty();
        if !has_programs("where_the_kernel_cuts_segments", &folder) {
            return;
        }
        let server = Host::behind("cut", 7);
        assert_eq!(
            capture_large_transfer(&folder, &server),
            ("bpf".into(), true)
        );
        switch_off("to7").expect("an interface that cuts nothing itself");
        assert_eq!(
            capture_large_transfer(&folder, &server),
            ("ring".into(), false)
        );
    });
}

/// How a watch listens that nobody told how, and whether a packet that it saw of a megabyte was longer
/// than an Ethernet frame.
fn capture_large_transfer(folder: &TestFolder, server: &Host) -> (Value, bool) {
    let watch = Watch::of(folder, "to7", &["--format", "ndjson"]);
    let listener = with_namespace(&server.ns, || TcpListener::bind("10.9.7.2:0"));
    let listener = listener.expect("enter").expect("listen");
    let address = listener.local_addr().expect("an address");
    let reader = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("accept");
        std::io::copy(&mut peer, &mut std::io::sink()).expect("read")
    });
    let mut stream = TcpStream::connect(address).expect("connect");
    stream.write_all(&vec![7; 1 << 20]).expect("send");
    drop(stream);
    assert_eq!(reader.join().expect("ended"), 1 << 20);
    let ran = watch.interrupt();
    let stdout = lines(&ran.out);
    let [flow] = lines_of_kind(&stdout, "flow")[..] else {
        panic!("{}", ran.out);
    };
    let sent = &flow["sent"]["client"];
    let [bytes, packets] =
        ["bytes", "packets"].map(|message| sent[message].as_u64().expect("a count"));
    (capture_method_of(&ran), bytes / packets > 1_500)
}

#[test]
fn copies_contain_only_the_requested_packets() {
    with_loopback("asked", || {
        let folder = TestFolder::empty();
        if !has_programs("copies_contain_only_the_requested_packets", &folder) {
            return;
        }
        let choices = [
            &["--host", "::1"][..],
            &["--host", "127.0.0.1", "--proto", "tcp"],
            &["--port", "9"],
            &[
                "--port", "9", "--host", "::1", "--host", "10.1.2.3", "--proto", "udp",
            ],
            &["--proto", "icmp"],
            &["--host", "10.1.2.3"],
        ];
        let watches = choices.map(|choice| {
            let arguments = [choice, &["--format", "ndjson"]].concat();
            ["bpf", "ring"]
                .map(|capture_method| start_with_capture(capture_method, &folder, "lo", &arguments))
        });
        for server in ["127.0.0.1", "::1"] {
            exchange(server, 20);
            let sender = UdpSocket::bind((server, 0)).expect("a socket");
            for _ in 0..3 {
                // The kernel's answer that nobody is there may come before the next.
                let _ = sender.send_to(b"x", (server, 9));
            }
        }
        let mut packets = Vec::new();
        for (choice, watches) in choices.iter().zip(watches) {
            let [copied, ring_watch] = watches.map(|watch| {
                let lines = lines(&watch.interrupt().out);
                lines.last().expect("a summary")["files"][0].clone()
            });
            assert_eq!(copied, ring_watch, "{choice:?}");
            packets.push(copied["packets"].as_u64().expect("a count"));
        }
        assert!(packets[0] > 40 && packets[1] > 40, "{packets:?}");
        assert!(packets[2] > packets[3] && packets[3] > 0, "{packets:?}");
        assert_eq!((packets[4] > 0, packets[5]), (true, 0));
    });
}

#[test]
fn traffic_that_never_pauses_does_not_keep_it_from_ending() {
    with_loopback("flood", || {
        let folder = TestFolder::empty();
        if !has_programs("traffic_that_never_pauses", &folder) {
            return;
        }
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let (began, is_over) = (Stopwatch::start(), AtomicBool::new(false));
        let ran = std::thread::scope(|scope| {
            scope.spawn(|| {
                // At most so long: a watch that does not end is seen by its time.
                while !is_over.load(Ordering::Relaxed) && began.elapsed() < TIMEOUT {
                    let _ = sender.send_to(b"x", "127.0.0.1:9");
                }
            });
            let ran = folder.neph(["watch", "lo", "--listen", "bpf", "--duration", "300ms"]);
            is_over.store(true, Ordering::Relaxed);
            ran
        });
        assert_eq!(ran.status, 0, "{}", ran.err);
        assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    });
}

#[test]
fn invalid_copy_options_are_refused() {
    with_loopback("uncopied", || {
        let folder = TestFolder::empty();
        for (arguments, printed) in [
            (&["any"][..], "one interface"),
            (&["lo", "--snaplen", "4096"], "at most 2048 bytes"),
            (&["lo", "--write", "x.pcap"], "leave out"),
            (&["lo", "--write", "-"], "leave out"),
            (&["no-such-if0"], "no interface no-such-if0"),
        ] {
            let ran = folder.neph(
                ["watch", "--listen", "bpf"]
                    .iter()
                    .chain(arguments)
                    .copied(),
            );
            assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
            assert!(ran.err.contains(printed), "{}", ran.err);
        }
    });
}
