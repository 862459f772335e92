//! Links keep their word, and their records say what others measure.

use std::net::UdpSocket;
use std::num::NonZeroU32;
use std::time::Duration;

use neph_lab::{
    Direction, DirectionCount, Lab, LinkCheck, Record, Recording, TruthFile, UpOptions, Verdict,
    verify, verify_link,
};
use neph_sys::deadline::{Stopwatch, wait_until};

use neph_sys::clock::{self, RawNanos, Spin};
use neph_sys::netns::with_namespace;

use crate::support::{chain, lab_lock, lab_name, parse_shipped, two_sites, up};
use crate::undisturbed::measure_undisturbed;

/// Microseconds at the median and the 99th percentile (nearest rank).
fn quantiles(mut nanos: Vec<i64>) -> (f64, f64) {
    nanos.sort_unstable();
    let rank = |percent: usize| nanos[(nanos.len() * percent).div_ceil(100) - 1];
    #[expect(clippy::cast_precision_loss, reason = "display")]
    let micros = |nanos: i64| nanos as f64 / 1e3;
    (micros(rank(50)), micros(rank(99)))
}

/// What a link was measured to do one way, and what its record has of it.
struct ComparedDirection {
    check: LinkCheck,
    /// The median of what it kept packets for, microseconds.
    recorded: f64,
    /// How late packets left at the median and the 99th percentile, microseconds.
    lateness: (f64, f64),
}

/// Links with these delays, measured and recorded at once.
fn compare_with_record(requested: &[&str]) -> Vec<ComparedDirection> {
    let folder = tempfile::tempdir().expect("a folder");
    let features: Vec<String> = requested
        .iter()
        .map(|delay| format!("delay = \"{delay}\""))
        .collect();
    let features: Vec<&str> = features.iter().map(String::as_str).collect();
    let truth = Some(Recording {
        folder: folder.path().into(),
        every: NonZeroU32::MIN,
    });
    let options = UpOptions {
        truth,
        ..UpOptions::with_name(lab_name('k'))
    };
    let lab = Lab::up(&chain(&features), &options).expect("up");
    let mut checks = verify(&lab).expect("verify").into_iter();
    lab.down().expect("down");
    let mut compared_links = Vec::new();
    for number in 0..requested.len() {
        let path = folder.path().join(format!("path{number}.truth"));
        let mut errors = Vec::new();
        let mut recorded_delays: [Vec<i64>; 2] = Default::default();
        for record in TruthFile::open(&path).expect("open") {
            if let Record::Packet {
                passage,
                verdict,
                due,
                left,
                ..
            } = record.expect("fine")
            {
                assert_eq!(verdict, Verdict::Delivered);
                errors.push(left - due);
                recorded_delays[usize::from(passage.direction)].push(left - passage.arrival);
            }
        }
        let lateness = quantiles(errors);
        compared_links.extend(checks.by_ref().zip(recorded_delays).map(
            |(check, recorded_delays)| ComparedDirection {
                check,
                recorded: quantiles(recorded_delays).0,
                lateness,
            },
        ));
    }
    compared_links
}

#[test]
fn delays_match_the_configuration_and_the_truth_record() {
    let test = "delays_match_the_configuration_and_the_truth_record";
    let Some(_lock) = lab_lock(test) else { return };
    let requested = ["0.1ms", "1ms", "5ms", "20ms", "100ms"];
    let compared_links = measure_undisturbed(|| compare_with_record(&requested));
    assert_eq!(compared_links.len(), 2 * requested.len());
    for ComparedDirection {
        check,
        recorded,
        lateness,
    } in compared_links
    {
        assert!(check.loss.sent >= 500, "{check:?}");
        let (expected, measured) = (check.delay.expected, check.delay.measured.expect("it came"));
        let error = (measured.median - expected.median).nanos();
        let p99 = (measured.p99 - expected.p99).nanos();
        #[expect(clippy::cast_precision_loss, reason = "microseconds")]
        let difference = measured.median.nanos() as f64 / 1e3 - recorded;
        println!(
            "{} -> {} {}: error median {:.1} p99 {:.1} us; left late {:.1}/{:.1} us; \
             measured - recorded {difference:.1} us",
            check.from,
            check.to,
            expected.median,
            quantiles(vec![error]).0,
            quantiles(vec![p99]).0,
            lateness.0,
            lateness.1
        );
        assert!(check.is_ok(), "{check:?}");
        assert!(
            difference.abs() < 20.0,
            "the record says {recorded} us: {check:?}"
        );
    }
}

#[test]
fn rate_and_queue_match_the_configuration() {
    let Some(_lock) = lab_lock("rate_and_queue_match_the_configuration") else {
        return;
    };
    let features = [
        "delay = \"1ms\"\na_to_b = { rate = \"20Mbit/s\", queue = \"64KiB\" }\n\
         b_to_a = { rate = \"3Mbit/s\", queue = \"64KiB\" }",
        "delay = \"5ms\"\nrate = \"200Mbit/s\"\nqueue = \"1MiB\"",
    ];
    let lab = up(&chain(&features), &lab_name('l'));
    for check in measure_undisturbed(|| verify(&lab).expect("verify")) {
        println!(
            "{} -> {}: {:?} {:?}",
            check.from, check.to, check.rate, check.queue
        );
        assert!(check.rate.is_some() && check.queue.is_some(), "{check:?}");
        assert!(check.is_ok(), "{check:?}");
    }
    let count = lab.counters(0).expect("emulated").read(Direction::AToB);
    assert!(
        count.queue_full > 0 && count.unexpected_losses() == 0,
        "{count:?}"
    );
    lab.down().expect("down");
}

#[test]
fn loss_and_jitter_match_the_configuration_per_direction() {
    let Some(_lock) = lab_lock("loss_and_jitter_match_the_configuration_per_direction") else {
        return;
    };
    let features = "delay = \"5ms\"\na_to_b = { loss = \"5%\" }\n\
                    b_to_a = { loss = \"0.5%\", jitter = \"normal 200us\" }";
    let lab = up(&two_sites(features), &lab_name('m'));
    for check in measure_undisturbed(|| verify_link(&lab, 0).expect("verify")) {
        println!("{} -> {}: {:?}", check.from, check.to, check.loss);
        assert!(check.loss.sent > 1_500 && check.is_ok(), "{check:?}");
    }
    lab.down().expect("down");
}

#[test]
fn a_link_that_breaks_its_word_is_found_out() {
    let Some(_lock) = lab_lock("a_link_that_breaks_its_word_is_found_out") else {
        return;
    };
    let features = "rate = \"10Mbit/s\"\nqueue = \"64KiB\"\ndelay = \"3ms\"";
    let lab = up(&two_sites(features), &lab_name('n'));
    // The same links, held against another topology: every judgement must turn.
    let other = "rate = \"11Mbit/s\"\nqueue = \"80KiB\"\ndelay = \"3.2ms\"";
    let checks = neph_lab::verify_against(&lab, &two_sites(other).links[0], 0).expect("verify");
    for check in checks {
        assert!(!check.delay.is_ok, "{check:?}");
        assert!(check.rate.is_some_and(|rate| !rate.is_ok), "{check:?}");
        assert!(check.queue.is_some_and(|queue| !queue.is_ok), "{check:?}");
        assert!(check.loss.is_ok, "{check:?}");
    }
    lab.down().expect("down");
}

#[test]
fn an_overloaded_link_counts_every_packet_it_loses() {
    let Some(_lock) = lab_lock("an_overloaded_link_counts_every_packet_it_loses") else {
        return;
    };
    // In two seconds more packets come than an engine keeps, which is 65,536.
    let lab = up(&two_sites("delay = \"2s\""), &lab_name('p'));
    let load = load(&lab, (100, 70_000));
    println!("{load:?}");
    lab.down().expect("down");
    assert!(
        load.count.overflow > 0,
        "70,000 packets in {} s",
        load.seconds
    );
    assert_eq!(
        load.count.delivered + load.count.unexpected_losses(),
        load.sent
    );
    assert_eq!(
        load.arrived, load.count.delivered,
        "by the receiver's kernel"
    );
}

#[test]
#[ignore = "a figure of this machine: run it alone, in release"]
fn a_link_carries_its_configured_rate_for_seconds() {
    let Some(_lock) = lab_lock("a_link_carries_its_configured_rate_for_seconds") else {
        return;
    };
    for per_ms in [50, 150, 200, 300, 400, 600] {
        let lab = up(&two_sites("delay = \"5ms\""), &lab_name('q'));
        let load = load(&lab, (per_ms, per_ms * 3_000));
        #[expect(clippy::cast_precision_loss, reason = "display")]
        let rate = load.sent as f64 / load.seconds;
        println!("{rate:.0} packets/s of {per_ms},000 asked: {load:?}");
        lab.down().expect("down");
        assert_eq!(
            load.count.delivered + load.count.unexpected_losses(),
            load.sent
        );
        assert_eq!(
            load.arrived, load.count.delivered,
            "by the receiver's kernel"
        );
        assert!(
            rate > 200_000.0 || load.count.unexpected_losses() == 0,
            "150,000/s are promised"
        );
    }
}

/// A fleet of 512 flows, 200 a second each, asks 102,400 times a second and is answered as often.
#[test]
#[ignore = "a figure of this machine: run it alone, in release"]
fn a_link_carries_both_directions_at_once() {
    let Some(_lock) = lab_lock("a_link_carries_both_directions_at_once") else {
        return;
    };
    let four_paths: String = ["35ms", "37ms", "39.5ms", "43ms"]
        .map(|delay| format!("[[link.path]]\ndelay = \"{delay}\"\n"))
        .concat();
    for (features, per_ms) in [
        ("delay = \"5ms\"", 50),
        ("delay = \"5ms\"", 102),
        (&four_paths, 50),
        (&four_paths, 102),
    ] {
        let lab = up(&two_sites(features), &lab_name('r'));
        let sockets = ["s0", "s1"].map(|site| socket(&lab, site));
        let [a, b] = &sockets;
        for (from, to) in [(a, b), (b, a)] {
            from.connect(to.local_addr().expect("address"))
                .expect("connect");
        }
        let sent = std::thread::scope(|scope| {
            let reverse = scope.spawn(|| send(b, (per_ms, per_ms * 3_000)));
            [
                send(a, (per_ms, per_ms * 3_000)),
                reverse.join().expect("sent"),
            ]
        });
        let counts =
            || Direction::BOTH.map(|direction| lab.counters(0).expect("emulated").read(direction));
        let is_complete = |counts: &[DirectionCount; 2]| {
            let counted = counts
                .iter()
                .map(|count| count.delivered + count.unexpected_losses());
            counted.eq(sent.iter().map(|(sent, _)| *sent))
        };
        wait_until(Duration::from_secs(5), || is_complete(&counts()));
        let [forward, reverse] = counts();
        println!("{per_ms},000/s each way of {features:?}: {sent:?}\n{forward:?}\n{reverse:?}");
        lab.down().expect("down");
        assert!(is_complete(&[forward, reverse]), "each packet is counted");
    }
}

#[derive(Debug)]
struct Load {
    sent: u64,
    seconds: f64,
    /// By the counters of the receiving site's kernel, which know nothing of the engine.
    arrived: u64,
    count: DirectionCount,
}

fn socket(lab: &Lab, site: &str) -> UdpSocket {
    let address = lab.addresses(site).expect("there")[0];
    with_namespace(&lab.namespace(site).expect("there"), || {
        UdpSocket::bind((address, 0))
    })
    .expect("enter")
    .expect("bind")
}

/// Sends `total` datagrams of 64 bytes in all, `burst` in each millisecond; how many left, and in how
/// many seconds.
fn send(from: &UdpSocket, (burst, total): (u32, u32)) -> (u64, f64) {
    let (start, raw) = (Stopwatch::start(), clock::raw().0);
    let mut sent = 0;
    for number in 0..total {
        if number % burst == 0 {
            let due = raw + i64::from(number / burst) * 1_000_000;
            clock::sleep_until(RawNanos(due), Spin::NONE);
        }
        sent += u64::from(from.send(&[0; 22]).is_ok());
    }
    (sent, start.elapsed().as_secs_f64())
}

/// Sends `total` datagrams of 64 bytes in all from `s0` to `s1`, `burst` in each millisecond.
fn load(lab: &Lab, (burst, total): (u32, u32)) -> Load {
    let (from, to) = (socket(lab, "s0"), socket(lab, "s1"));
    from.connect(to.local_addr().expect("address"))
        .expect("connect");
    let before = packets_arrived(lab);
    let (sent, seconds) = send(&from, (burst, total));
    // The engine counts what its ring dropped at most a second after the last packet.
    let count = || lab.counters(0).expect("emulated").read(Direction::AToB);
    wait_until(Duration::from_secs(20), || {
        count().delivered + count().unexpected_losses() == sent
    });
    Load {
        sent,
        seconds,
        arrived: packets_arrived(lab) - before,
        count: count(),
    }
}

/// IPv4 packets that reached `s1`.
fn packets_arrived(lab: &Lab) -> u64 {
    let snmp = with_namespace(&lab.namespace("s1").expect("there"), || {
        std::fs::read_to_string("/proc/thread-self/net/snmp")
    });
    let snmp = snmp.expect("enter").expect("snmp");
    let line = snmp
        .lines()
        .filter(|line| line.starts_with("Ip:"))
        .nth(1)
        .expect("values");
    // InReceives. UDP's own count has a datagram only when it is read, which nobody does here.
    line.split(' ')
        .nth(3)
        .expect("there")
        .parse()
        .expect("a number")
}

#[test]
fn the_demo_topology_passes_verification() {
    let Some(_lock) = lab_lock("the_demo_topology_passes_verification") else {
        return;
    };
    let text = include_str!("../../topologies/demo.toml");
    let lab = up(&parse_shipped(text), &lab_name('o'));
    for check in measure_undisturbed(|| verify(&lab).expect("verify")) {
        assert!(check.is_ok(), "{check:?}");
    }
    lab.down().expect("down");
}
