//! What a link does to packets beside delaying them, seen by the kernels of its sites.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

use neph_lab::{Direction, DirectionCount, Lab, Record, Recording, TruthFile, UpOptions, Verdict};
use neph_sys::clock;
use neph_sys::netns::with_namespace;

use crate::support::{lab_lock, lab_name, two_sites, up};

/// A socket at `site` that gives up after a second.
fn udp(lab: &Lab, site: &str) -> UdpSocket {
    let address = lab.addresses(site).expect("there")[0];
    let socket = with_namespace(&lab.namespace(site).expect("there"), || {
        UdpSocket::bind((address, 0))
    });
    let socket = socket.expect("enter").expect("bind");
    let second = Some(Duration::from_secs(1));
    socket.set_read_timeout(second).expect("timeout");
    socket
}

/// The counter `name` of `protocol` in the kernel of `site`.
fn kernel_count(lab: &Lab, site: &str, (protocol, name): (&str, &str)) -> u64 {
    let snmp = with_namespace(&lab.namespace(site).expect("there"), || {
        std::fs::read_to_string("/proc/thread-self/net/snmp")
    });
    let snmp = snmp.expect("enter").expect("snmp");
    let mut lines = snmp
        .lines()
        .filter_map(|line| line.strip_prefix(&format!("{protocol}: ")));
    let [names, values] = [lines.next(), lines.next()].map(|line| line.expect("two lines"));
    let mut counters = names.split(' ').zip(values.split(' '));
    let (_, value) = counters
        .find(|(counter, _)| *counter == name)
        .expect("the kernel counts it");
    value.parse().expect("a number")
}

fn count(lab: &Lab) -> DirectionCount {
    lab.counters(0).expect("emulated").read(Direction::AToB)
}

/// Sends numbered datagrams of 500 bytes from `s0` to `s1`, so few that all fit the receiving
/// socket; what arrives, in order.
fn send_numbers(lab: &Lab, numbers: std::ops::Range<u32>) -> Vec<u32> {
    let (from, to) = (udp(lab, "s0"), udp(lab, "s1"));
    let target = to.local_addr().expect("address");
    let mut message = [0x5a; 500];
    for number in numbers {
        message[..4].copy_from_slice(&number.to_be_bytes());
        from.send_to(&message, target).expect("send");
        clock::nap(Duration::from_micros(200));
    }
    let (mut arrived, mut buffer) = (Vec::new(), [0; 600]);
    while let Ok(length) = to.recv(&mut buffer) {
        assert!(length == 500 && buffer[4..500] == message[4..], "unharmed");
        arrived.push(u32::from_be_bytes([
            buffer[0], buffer[1], buffer[2], buffer[3],
        ]));
    }
    arrived
}

#[test]
fn a_flipped_bit_loses_a_datagram_and_makes_tcp_retransmit() {
    let Some(_lock) = lab_lock("a_flipped_bit_loses_a_datagram_and_makes_tcp_retransmit") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let options = UpOptions {
        truth: Some(Recording {
            folder: folder.path().into(),
            every: std::num::NonZeroU32::MIN,
        }),
        ..UpOptions::with_name(lab_name('t'))
    };
    let lab = Lab::up(
        &two_sites("delay = \"1ms\"\na_to_b = { corrupt = \"20%\" }"),
        &options,
    );
    let lab = lab.expect("up");
    let arrived = send_numbers(&lab, 0..120);
    let counts = count(&lab);
    assert_eq!(counts.delivered, 120);
    assert!((5..=50).contains(&counts.corrupted), "{counts:?}");
    let arrived_intact = usize::try_from(120 - counts.corrupted).expect("few");
    assert_eq!(arrived.len(), arrived_intact, "none of those that were hit");
    let checksum_errors = kernel_count(&lab, "s1", ("Udp", "InCsumErrors"));
    let in_header = kernel_count(&lab, "s1", ("Ip", "InHdrErrors"));
    assert!(checksum_errors > 0 && checksum_errors + in_header <= counts.corrupted);
    transfer(&lab, 300_000);
    let retransmitted = kernel_count(&lab, "s0", ("Tcp", "RetransSegs"));
    let checksum_errors = kernel_count(&lab, "s1", ("Tcp", "InCsumErrors"));
    assert!(
        retransmitted > 0 && checksum_errors > 0,
        "{retransmitted} sent again, {checksum_errors} found"
    );
    let corrupted = count(&lab).corrupted;
    lab.down().expect("down");
    let mut flipped = 0;
    for record in TruthFile::open(&folder.path().join("path0.truth")).expect("open") {
        if let Record::Packet {
            handling, passage, ..
        } = record.expect("fine")
        {
            let known = passage.identity.protocol;
            assert!(matches!(known, 6 | 17), "as it came: {known}");
            flipped += u64::from(handling.flipped.is_some_and(|bit| bit >= 14 * 8));
        }
    }
    // TCP may still send something between the count and the end of the lab.
    assert!(
        (corrupted..=corrupted + 5).contains(&flipped),
        "{flipped} recorded, {corrupted} counted"
    );
}

/// Sends `bytes` from `s0` to `s1` over TCP and waits until all are there.
fn transfer(lab: &Lab, bytes: usize) {
    let address = lab.addresses("s1").expect("there")[0];
    let listener = with_namespace(&lab.namespace("s1").expect("there"), || {
        TcpListener::bind((address, 0))
    });
    let listener = listener.expect("enter").expect("bind");
    let target = listener.local_addr().expect("address");
    let stream = with_namespace(&lab.namespace("s0").expect("there"), || {
        TcpStream::connect(target)
    });
    let mut stream = stream.expect("enter").expect("connect");
    let (mut accepted, _) = listener.accept().expect("accept");
    let ten = Some(Duration::from_secs(10));
    accepted.set_read_timeout(ten).expect("timeout");
    let sender = std::thread::spawn(move || stream.write_all(&vec![7; bytes]));
    let mut received = Vec::new();
    accepted.read_to_end(&mut received).expect("all of it");
    assert!(received.len() == bytes && received.iter().all(|byte| *byte == 7));
    sender.join().expect("no panic").expect("sent");
}

#[test]
fn a_duplicate_arrives_right_after_and_a_reordered_packet_before_earlier_ones() {
    let test = "a_duplicate_arrives_right_after_and_a_reordered_packet_before_earlier_ones";
    let Some(_lock) = lab_lock(test) else { return };
    let lab = up(
        &two_sites("delay = \"5ms\"\nduplicate = \"100%\""),
        &lab_name('u'),
    );
    let arrived = send_numbers(&lab, 0..50);
    let duplicated: Vec<u32> = (0..50).flat_map(|number| [number, number]).collect();
    assert_eq!(arrived, duplicated);
    let counts = count(&lab);
    assert_eq!((counts.delivered, counts.copies), (50, 50));
    lab.down().expect("down");
    let lab = up(
        &two_sites("delay = \"20ms\"\nreorder = \"20%\""),
        &lab_name('v'),
    );
    let arrived = send_numbers(&lab, 0..120);
    let reordered_count = arrived.windows(2).filter(|pair| pair[1] < pair[0]).count();
    let early = count(&lab).early;
    assert!(
        (5..=50).contains(&early) && reordered_count > 5,
        "{early} {reordered_count}"
    );
    assert_eq!(arrived.len(), 120);
    lab.down().expect("down");
}

/// How long the link kept the packets of an upload from `s0` to `s1`, by its record: the median of the
/// last three tenths.
fn median_final_delay(record: &Path) -> Duration {
    let mut delays = Vec::new();
    for record in TruthFile::open(record).expect("open") {
        if let Record::Packet {
            passage,
            verdict: Verdict::Delivered,
            due,
            ..
        } = record.expect("fine")
            && passage.direction == 0
        {
            delays.push((passage.arrival, due - passage.arrival));
        }
    }
    delays.sort_unstable();
    let mut last: Vec<i64> = delays[delays.len() * 7 / 10..]
        .iter()
        .map(|delay| delay.1)
        .collect();
    last.sort_unstable();
    let median = last[last.len() / 2].try_into().expect("it was kept");
    Duration::from_nanos(median)
}

#[test]
fn codel_keeps_the_queue_of_an_upload_shorter_than_drop_tail() {
    let test = "codel_keeps_the_queue_of_an_upload_shorter_than_drop_tail";
    let Some(_lock) = lab_lock(test) else { return };
    let features = "delay = \"5ms\"\na_to_b = { rate = \"20Mbit/s\", queue = \"512KiB\"";
    let [drop_tail_delay, codel_delay] = ["", ", discipline = \"codel\""].map(|discipline| {
        // What most senders have; bbr would not fill the queue.
        let mut topology = two_sites(&format!("{features}{discipline} }}"));
        for site in &mut topology.sites {
            site.congestion_control = Some("cubic".into());
        }
        let folder = tempfile::tempdir().expect("a folder");
        let options = UpOptions {
            truth: Some(Recording {
                folder: folder.path().into(),
                every: std::num::NonZeroU32::MIN,
            }),
            ..UpOptions::with_name(lab_name('s'))
        };
        let lab = Lab::up(&topology, &options).expect("up");
        // 2.4 seconds at the link's rate.
        transfer(&lab, 6_000_000);
        let counts = count(&lab);
        assert_eq!(counts.codel > 0, !discipline.is_empty());
        lab.down().expect("down");
        let wait = median_final_delay(&folder.path().join("path0.truth"));
        println!("{discipline} {wait:?} {counts:?}");
        wait
    });
    // A full queue takes 210 ms; TCP is at half of it by then.
    assert!(
        drop_tail_delay > Duration::from_millis(60),
        "{drop_tail_delay:?}"
    );
    assert!(codel_delay < Duration::from_millis(30), "{codel_delay:?}");
}

#[test]
fn a_site_sends_nothing_longer_than_the_mtu_of_its_link() {
    let Some(_lock) = lab_lock("a_site_sends_nothing_longer_than_the_mtu_of_its_link") else {
        return;
    };
    let lab = up(&two_sites("delay = \"1ms\"\nmtu = 1300"), &lab_name('w'));
    transfer(&lab, 100_000);
    let counts = count(&lab);
    assert!(counts.delivered >= 77 && counts.over_mtu == 0, "{counts:?}");
    lab.down().expect("down");
}

/// A veth refuses what is longer than its own end allows: the narrow way must not narrow the other.
#[test]
fn a_slow_forward_path_does_not_slow_the_reverse_path() {
    let test = "a_slow_forward_path_does_not_slow_the_reverse_path";
    let Some(_lock) = lab_lock(test) else { return };
    let features = "delay = \"1ms\"\na_to_b = { mtu = 1300 }";
    let lab = up(&two_sites(features), &lab_name('e'));
    let (sender, receiver) = (udp(&lab, "s0"), udp(&lab, "s1"));
    let addresses = [&sender, &receiver].map(|end| end.local_addr().expect("address"));
    let mut buffer = [0; 2000];
    // 1472 bytes and headers of 28 fill an Ethernet frame.
    receiver.send_to(&[1; 1472], addresses[0]).expect("send");
    assert_eq!(sender.recv(&mut buffer).expect("it comes"), 1472);
    // The narrow way gets it in fragments, and drops none of them.
    sender.send_to(&[1; 1472], addresses[1]).expect("send");
    assert_eq!(receiver.recv(&mut buffer).expect("it comes"), 1472);
    let counter = lab.counters(0).expect("emulated");
    let [out, back] = Direction::BOTH.map(|direction| counter.read(direction));
    assert_eq!((out.over_mtu, out.delivered), (0, 2), "two fragments");
    assert_eq!((back.refused, back.delivered), (0, 1));
    lab.down().expect("down");
}
