//! Media streams over links that lose, delay and limit: what neph measures beside what was done to them.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::thread;

use neph_sys::{clock, process};
use serde_json::Value;

use crate::labs::{LabGuard, TWO_SITES, privileged};
use crate::media::{document, number};
use crate::neph::{RunOutput, send_signal, start_and_read_line};
use crate::star_topology::Star;

/// The mean of a figure over streams.
fn mean<'a>(streams: impl Iterator<Item = &'a Value> + Clone, figure: &str) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a few streams")]
    let count = streams.clone().count() as f64;
    streams.map(|stream| number(&stream[figure])).sum::<f64>() / count
}

/// A star with one uplink of 10 Mbit/s at the server, three other streams of 1 Mbit/s on it that keep their
/// rate, and so many clients at each of three sites: all their streams.
fn shared(workers: u32) -> Vec<Value> {
    const SECONDS: u32 = 30;
    let mut star = Star::up(&format!("u{workers}"));
    for args in [
        "qdisc add dev vs root handle 1: htb default 20",
        "class add dev vs parent 1: classid 1:1 htb rate 10mbit burst 5k cburst 5k",
        "class add dev vs parent 1:1 classid 1:10 htb rate 3mbit ceil 10mbit prio 0 burst 3k cburst 3k",
        "class add dev vs parent 1:1 classid 1:20 htb rate 7mbit ceil 10mbit prio 1 burst 5k cburst 5k",
        "qdisc add dev vs parent 1:20 handle 20: bfifo limit 150000",
        "filter add dev vs parent 1: protocol ip u32 match ip dport 7420 0xffff flowid 1:10",
    ] {
        star.run("s", &format!("tc {args}"));
    }
    star.start(star.neph("s", "media serve"), "serves a video");
    for site in ["a", "b", "c"] {
        star.start(star.neph(site, "throughput serve"), "serves throughput");
    }
    // 971 kbit/s of payload are 1 Mbit/s with headers.
    for address in ["10.90.2.2", "10.90.3.2", "10.90.4.2"] {
        let arguments = format!(
            "throughput {address} --udp --rate 971kbit/s -w {}s",
            SECONDS + 15
        );
        let mut other = star.neph("s", &format!("{arguments} --format csv"));
        other.stdout(Stdio::null()).stderr(Stdio::null());
        star.end_with_star(other.spawn().expect("nsenter runs"));
    }
    let start = jiff::Timestamp::from_second(clock::wall().0 / 1_000_000_000 + 6);
    let start = start.expect("a time of this century");
    let arguments = format!(
        "media {} -n {workers} -w {SECONDS}s --start-at {start} --format json",
        Star::SERVER
    );
    let clients = ["a", "b", "c"].map(|site| {
        let mut client = star.neph(site, &arguments);
        client.stdout(Stdio::piped()).stderr(Stdio::piped());
        client.spawn().expect("nsenter runs")
    });
    let streams = clients.map(|client: Child| {
        let ran = RunOutput::from(client.wait_with_output().expect("it ends"));
        document(&ran)["streams"]
            .as_array()
            .expect("a list")
            .clone()
    });
    streams.concat()
}

/// Source 5, appendix F: 958, 681 and 272 kbit/s a stream, jitter 0.08, 0.45 and 2.1 ms.
#[test]
fn streams_share_an_uplink_as_their_number_has_it() {
    if !privileged("streams_share_an_uplink_as_their_number_has_it") {
        return;
    }
    let [scopes, three, nine] = thread::scope(|scope| {
        let running = [1, 3, 9].map(|workers| scope.spawn(move || shared(workers)));
        running.map(|thread| thread.join().expect("no panic"))
    });
    for (workers, streams) in [(1.0, &scopes), (3.0, &three), (9.0, &nine)] {
        let rate = mean(streams.iter(), "rate_mean_bit_s") / 1e3;
        let expected = f64::min(7_000.0 / (3.0 * workers), 957.1);
        let jitter = mean(streams.iter(), "network_jitter_mean_ns") / 1e6;
        println!(
            "{workers} workers: {rate:.1} kbit/s, {expected:.1} expected, jitter {jitter:.2} ms"
        );
        assert!(
            (rate / expected - 1.0).abs() < 0.1,
            "{workers} workers: {rate} kbit/s, {expected}"
        );
        let faults = streams.iter().filter(|stream| !stream["fault"].is_null());
        assert_eq!(faults.count(), 0, "{workers} workers");
        let loss = mean(streams.iter(), "loss_percent");
        assert_eq!(loss > 1.0, workers > 1.0, "{workers} workers lose {loss} %");
        let (min_jitter, max_jitter) = if workers > 1.0 {
            (0.2, 20.0)
        } else {
            (0.0, 1.0)
        };
        assert!(
            (min_jitter..max_jitter).contains(&jitter),
            "{workers} workers: jitter {jitter} ms"
        );
    }
    assert!(scopes.iter().all(|stream| number(&stream["stalls"]) < 1.0));
    assert!(nine.iter().all(|stream| number(&stream["stalls"]) > 1.0));
}

/// What tshark counts of the RTP streams of a capture, in the order of their ports.
#[derive(Debug)]
struct TsharkCounts {
    packets: f64,
    lost: f64,
    jitter_max_ms: f64,
}

/// tshark knows the clock of payload types that are static only: ours, 96, becomes 33 (0x21), which has 90 kHz too.
fn with_static_payload_type(path: &str) {
    let mut bytes = fs::read(path).expect("a capture");
    let mut at = 24;
    while let Some(head) = bytes.get(at..at + 16) {
        let length = u32::from_le_bytes(head[8..12].try_into().expect("4 bytes"));
        let packet = &mut bytes[at + 16..][..length as usize];
        // Ethernet, IPv4 without options and UDP are 42 bytes.
        let is_udp = packet.len() > 54 && packet[12..14] == [8, 0] && packet[23] == 17;
        if is_udp && packet[42] >> 6 == 2 && packet[43] & 0x7f == 96 {
            packet[43] = packet[43] & 0x80 | 0x21;
        }
        at += 16 + length as usize;
    }
    fs::write(path, bytes).expect("written");
}

/// What tshark prints about a capture, of which it takes UDP for RTP where it can.
fn tshark(path: &str, arguments: &[&str]) -> String {
    let ran = process::command("tshark")
        .args(["-n", "-r", path])
        // A port at random may be that of another protocol.
        .args(["--enable-heuristic", "rtp_udp"])
        .args(["-o", "udp.try_heuristic_first:TRUE"])
        .args(arguments)
        .output()
        .expect("tshark runs");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

fn count_with_tshark(path: &str) -> Vec<TsharkCounts> {
    with_static_payload_type(path);
    let text = tshark(path, &["-q", "-z", "rtp,streams"]);
    let lines = text.lines().filter(|line| line.contains("0x"));
    let streams = lines.map(|line| {
        // ... Payload Pkts Lost (percent) MinDelta MeanDelta MaxDelta MinJitter MeanJitter MaxJitter Problems
        let args: Vec<&str> = line.split_whitespace().collect();
        let lost = args.iter().rposition(|word| word.starts_with('('));
        let lost = lost.unwrap_or_else(|| panic!("{line}"));
        let value = |index: usize| {
            args[index]
                .parse::<f64>()
                .unwrap_or_else(|_| panic!("{line}"))
        };
        TsharkCounts {
            packets: value(lost - 2),
            lost: value(lost - 1),
            jitter_max_ms: value(lost + 6),
        }
    });
    streams.collect()
}

/// Packets that were lost before the first one of each stream. neph knows their number, since the server names
/// its first sequence number in the header RTP-Info; tshark counts from the first packet that arrived.
fn lost_before_first(path: &str) -> f64 {
    let capture = fs::read(path).expect("a capture");
    let text = String::from_utf8_lossy(&capture);
    let parts = text.split(";seq=").skip(1);
    let announced: Vec<u16> = parts
        .map(|part| {
            let end = part.find(|sign: char| !sign.is_ascii_digit());
            part[..end.unwrap_or(part.len())]
                .parse()
                .expect("a sequence number")
        })
        .collect();
    let fields = [
        "-Y", "rtp.seq", "-T", "fields", "-e", "rtp.ssrc", "-e", "rtp.seq",
    ];
    let lines = tshark(path, &fields);
    let mut first_sequences = BTreeMap::new();
    for (ssrc, sequence) in lines.lines().filter_map(|line| line.split_once('\t')) {
        let sequence: u16 = sequence.trim().parse().expect("a sequence number");
        first_sequences.entry(ssrc.to_owned()).or_insert(sequence);
    }
    // Streams start at random numbers: the closest one is its own.
    let before = first_sequences.values().map(|first| {
        let distances = announced.iter().map(|number| first.wrapping_sub(*number));
        f64::from(distances.min().expect("a header RTP-Info"))
    });
    let before: f64 = before.sum();
    assert!(
        before < 20.0,
        "{before} packets lost first: {announced:?} {first_sequences:?}"
    );
    before
}

/// A star whose router loses 2 % of the packets at random, with a media server.
fn lossy() -> Star {
    let mut star = Star::up("l");
    star.run("r", "nft add table ip loss");
    star.run(
        "r",
        "nft add chain ip loss forward { type filter hook forward priority 0 ; }",
    );
    star.run(
        "r",
        "nft add rule ip loss forward udp length > 100 numgen random mod 1000 < 20 drop",
    );
    star.start(star.neph("s", "media serve"), "serves a video");
    star
}

/// The sum of a figure over streams.
fn sum(streams: &[Value], figure: &str) -> f64 {
    streams.iter().map(|stream| number(&stream[figure])).sum()
}

#[test]
fn loss_and_jitter_are_those_of_the_link_and_those_that_tshark_counts() {
    let test = "loss_and_jitter_are_those_of_the_link_and_those_that_tshark_counts";
    if !privileged(test) {
        return;
    }
    let mut star = lossy();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("client.pcap");
    let path = path.to_string_lossy().into_owned();
    let tools = ["tshark", "tcpdump"];
    let tools = tools.map(|tool| process::command(tool).arg("--version").output());
    let has_tools = tools.iter().all(Result::is_ok);
    if has_tools {
        let dump = format!("tcpdump --immediate-mode -U -i va -w {path} tcp or udp");
        star.start(star.at("a", &dump), "listening on");
    }
    let arguments = format!("media {} -n 4 -w 20s --format json", Star::SERVER);
    let ran = RunOutput::from(star.neph("a", &arguments).output().expect("nsenter runs"));
    let shown = document(&ran);
    let streams = shown["streams"].as_array().expect("a list");
    // Of about 7300 packets 2 % are 146, with a standard deviation of 12.
    let (lost, packets) = (sum(streams, "lost"), sum(streams, "packets"));
    let share = lost / (lost + packets);
    assert!((share - 0.02).abs() < 0.006, "{lost} of {packets}");
    let broken = sum(streams, "frames_incomplete") + sum(streams, "frames_missing");
    assert!(broken >= lost / 4.0, "{broken} frames");
    if !has_tools {
        println!("SKIP {test}: tshark and tcpdump are not installed");
        return;
    }
    star.end_last_process();
    agrees_with_tshark(streams, &path);
}

fn agrees_with_tshark(streams: &[Value], path: &str) {
    let tshark_counts = count_with_tshark(path);
    assert_eq!(tshark_counts.len(), streams.len(), "{tshark_counts:?}");
    let tshark_sum = |of: fn(&TsharkCounts) -> f64| tshark_counts.iter().map(of).sum::<f64>();
    let (tshark_packets, tshark_lost) = (
        tshark_sum(|counts| counts.packets),
        tshark_sum(|counts| counts.lost) + lost_before_first(path),
    );
    let (packets, lost) = (sum(streams, "packets"), sum(streams, "lost"));
    // They also count what came in the moment until the streams were ended: a fifth of a second.
    let extra_packets = tshark_packets - packets;
    assert!(
        (0.0..=200.0).contains(&extra_packets),
        "{tshark_packets} {packets}"
    );
    let (share, tshark_share) = (
        lost / (lost + packets),
        tshark_lost / (tshark_lost + tshark_packets),
    );
    assert!(
        (share - tshark_share).abs() < 0.001,
        "{share} {tshark_share}"
    );
    assert!(tshark_lost >= lost, "{lost} {tshark_lost}");
    // Of the mean tshark leaves out packets with a marker, of the maximum nothing that matters.
    let sorted = |values: Vec<f64>| {
        let mut values = values;
        values.sort_by(f64::total_cmp);
        values
    };
    let stream_jitters = streams.iter();
    let stream_jitters = stream_jitters.map(|stream| number(&stream["jitter_max_ns"]) / 1e6);
    let stream_jitters = sorted(stream_jitters.collect());
    let jitters = sorted(
        tshark_counts
            .iter()
            .map(|counts| counts.jitter_max_ms)
            .collect(),
    );
    for (neph_jitter, tshark_jitter) in stream_jitters.iter().zip(&jitters) {
        assert!(
            (neph_jitter / tshark_jitter - 1.0).abs() < 0.05,
            "{neph_jitter} {tshark_jitter} ms"
        );
    }
}

#[test]
fn delay_variation_that_a_link_makes_is_network_jitter() {
    if !privileged("delay_variation_that_a_link_makes_is_network_jitter") {
        return;
    }
    // Of two delays that are even within 2 ms either way the difference is 4/3 ms in the mean.
    let topology = TWO_SITES.replace(
        "delay = \"2ms\"",
        "delay = \"20ms\"\njitter = \"uniform 2ms\"",
    );
    let lab = LabGuard::up(&topology, 'm');
    let program = lab.folder.command([]);
    let program = program.get_program().to_string_lossy().into_owned();
    fs::write(lab.folder.path("even.trace"), "fps 100\n1000\n").expect("written");
    let mut serve = process::command("nsenter");
    serve.arg(format!("--net=/run/netns/neph-{}-b", lab.name));
    serve
        .args([&program, "media", "serve", "--trace"])
        .arg(lab.folder.path("even.trace"));
    let (mut server, _, first) = start_and_read_line(&mut serve);
    let ran = lab.at(
        "a",
        &format!("{program} media 10.80.0.2 -w 20s --format json"),
    );
    send_signal("TERM", server.id());
    server.wait().expect("it ends");
    assert!(first.contains("serves a video"), "{first}");
    let entry = &document(&ran)["streams"][0];
    let jitter = number(&entry["network_jitter_mean_ns"]) / 1e6;
    println!("jitter {jitter:.3} ms");
    assert!((jitter / (4.0 / 3.0) - 1.0).abs() < 0.15, "{jitter} ms");
    assert_eq!(
        (&entry["lost"], &entry["frames_late"]),
        (&0.into(), &0.into())
    );
}
