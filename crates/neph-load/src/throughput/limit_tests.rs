use neph_model::Span;

use super::*;

const GIGABIT: BitRate = BitRate(1_000_000_000);

fn usage(thread: f64, core_busy: f64, waited: f64) -> Usage {
    Usage {
        thread,
        core: Some(1),
        core_busy: Some(core_busy),
        waited,
        ..Usage::default()
    }
}

fn tcp(change: fn(&mut Totals, &mut TcpTotals)) -> Totals {
    let mut tcp = TcpTotals {
        segments: 100_000,
        srtt_mean: Span::from_millis(21),
        min_rtt: Span::from_millis(20),
        ..TcpTotals::default()
    };
    let mut totals = Totals {
        sent_bytes: 1,
        sent: GIGABIT,
        goodput: GIGABIT,
        sender: usage(0.2, 0.3, 0.7),
        receiver: usage(0.2, 0.3, 0.7),
        ..Totals::default()
    };
    change(&mut totals, &mut tcp);
    totals.tcp = Some(tcp);
    totals
}

fn udp(change: fn(&mut Totals, &mut UdpTotals)) -> Totals {
    let mut udp = UdpTotals {
        sent: 100_000,
        received: 100_000,
        ..UdpTotals::default()
    };
    let mut totals = tcp(|_, _| {});
    totals.tcp = None;
    totals.sender = usage(0.6, 0.99, 0.0);
    change(&mut totals, &mut udp);
    udp.lost = udp.sent - udp.received;
    totals.udp = Some(udp);
    totals
}

/// Counts, the expected limit, and a part of its sentence.
type Case = (Totals, LimitKind, &'static str);

/// The requested rate has precedence.
fn cases_of_a_rate() -> Vec<Case> {
    vec![
        (
            tcp(|totals, _| {
                totals.requested = Some(BitRate(1_009_000_000));
                totals.sender = usage(1.0, 1.0, 0.0);
            }),
            LimitKind::TargetRate,
            "1.01 Gbit/s requested, 1 Gbit/s received",
        ),
        (
            tcp(|totals, _| totals.requested = Some(BitRate(1_011_000_000))),
            LimitKind::Path,
            "waited 70 % of the time for acknowledgements",
        ),
    ]
}

/// The rate of a policy has precedence over what it causes: a closed window, a thread that waits.
fn cases_of_a_policy() -> Vec<Case> {
    vec![
        (
            tcp(|totals, tcp| {
                totals.receiver.policy = 0.91;
                tcp.rwnd_limited = 0.9;
            }),
            LimitKind::Policy,
            "budget.rate in the policy file of the receiver held it back 91 % of the time",
        ),
        (
            udp(|totals, _| totals.sender.policy = 0.8),
            LimitKind::Policy,
            "policy file of the sender held it back 80 %",
        ),
        (
            tcp(|totals, _| totals.sender.policy = 0.05),
            LimitKind::Path,
            "waited 70 % of the time",
        ),
    ]
}

/// Windows, and ends that are short of CPU.
fn cases_of_tcp() -> Vec<Case> {
    vec![
        (
            tcp(|_, tcp| tcp.rwnd_limited = 0.6),
            LimitKind::ReceiveWindow,
            "full 60 % of the time",
        ),
        (
            tcp(|totals, tcp| {
                tcp.rwnd_limited = 0.9;
                totals.receiver = usage(0.1, 0.2, 0.05);
            }),
            LimitKind::Receiver,
            "waited for data 5.0 %; its thread was busy 10 % of the time, its core 1 was busy 20 %",
        ),
        (
            tcp(|totals, _| totals.sender = usage(0.98, 0.99, 0.01)),
            LimitKind::Sender,
            "its thread was busy 98 % of the time, its core 1 was busy 99 %",
        ),
        (
            tcp(|totals, _| totals.sender = usage(0.5, 0.6, 0.04)),
            LimitKind::Sender,
            "waited only 4.0 % of the time",
        ),
        (
            tcp(|totals, _| totals.receiver = usage(0.99, 1.0, 0.01)),
            LimitKind::Receiver,
            "its thread was busy 99 % of the time",
        ),
        (
            tcp(|totals, _| totals.receiver = usage(0.5, 0.98, 0.1)),
            LimitKind::Receiver,
            "its core 1 was busy 98 %",
        ),
        (
            tcp(|totals, _| totals.sender = usage(0.5, 0.92, 0.4)),
            LimitKind::Sender,
            "its core 1 was busy 92 %",
        ),
    ]
}

/// Neither a window nor a CPU is the limit.
fn cases_of_a_path() -> Vec<Case> {
    vec![
        // Other programs use the cores.
        (
            tcp(|totals, _| {
                totals.sender = usage(0.04, 0.94, 0.95);
                totals.receiver = usage(0.04, 1.0, 0.95);
            }),
            LimitKind::Path,
            "waited 95 % of the time",
        ),
        (
            tcp(|_, tcp| tcp.sndbuf_limited = 0.8),
            LimitKind::Sender,
            "net.ipv4.tcp_wmem) was full 80 % of the time",
        ),
        (
            tcp(|_, tcp| {
                tcp.retransmissions = 500;
                tcp.srtt_mean = Span::from_millis(46);
            }),
            LimitKind::Path,
            "500 segments retransmitted (0.5 %); the round-trip time rose from 20.00 ms to 46.00 ms",
        ),
        (
            tcp(|totals, _| totals.sender = usage(0.2, 0.3, 0.2)),
            LimitKind::Unknown,
            "the sender's thread was busy 20 % of the time",
        ),
        (
            tcp(|totals, _| totals.sent_bytes = 0),
            LimitKind::Unknown,
            "nothing was sent",
        ),
    ]
}

fn cases_of_udp() -> Vec<Case> {
    vec![
        (
            udp(|_, udp| {
                udp.received = 90_000;
                udp.socket_drops = 9_000;
            }),
            LimitKind::Receiver,
            "its socket dropped 9.0 % of what was sent",
        ),
        (
            udp(|_, udp| udp.received = 99_000),
            LimitKind::Path,
            "1000 datagrams of 100000 (1.0 %) were lost on the path",
        ),
        (
            udp(|totals, udp| {
                totals.requested = Some(BitRate(1_005_000_000));
                udp.received = 99_500;
            }),
            LimitKind::TargetRate,
            "(0.5 % of datagrams lost)",
        ),
        (
            udp(|_, udp| udp.refused = 5_000),
            LimitKind::Sender,
            "refused 5000 datagrams",
        ),
        (
            udp(|totals, _| totals.sender = usage(0.1, 0.2, 0.8)),
            LimitKind::Path,
            "waited 80 % of the time for room",
        ),
        (
            udp(|_, _| {}),
            LimitKind::Sender,
            "it sent 1 Gbit/s although the maximum rate was requested, and all of it arrived; its thread \
             was busy 60 % of the time, its core 1 was busy 99 %",
        ),
        (
            udp(|_, udp| udp.received = 99_900),
            LimitKind::Sender,
            "and only 0.1 % of it was lost; its thread",
        ),
        (
            udp(|totals, _| totals.requested = Some(BitRate(2_000_000_000))),
            LimitKind::Sender,
            "although 2 Gbit/s was requested",
        ),
    ]
}

#[test]
fn the_limiting_factor_follows_from_the_counters() {
    let cases = [
        cases_of_a_rate(),
        cases_of_a_policy(),
        cases_of_tcp(),
        cases_of_a_path(),
        cases_of_udp(),
    ];
    for (totals, kind, evidence) in cases.into_iter().flatten() {
        let limit = find_limit(&totals);
        assert_eq!(limit.kind, kind, "{}", limit.sentence);
        assert!(limit.sentence.contains(evidence), "{}", limit.sentence);
        assert!(limit.sentence.starts_with("The "), "{}", limit.sentence);
        assert!(limit.sentence.ends_with('.'), "{}", limit.sentence);
    }
}

#[test]
fn cpu_steal_is_reported_as_the_limit() {
    let mut end = usage(0.6, 0.99, 0.0);
    end.core_steal = Some(0.2);
    assert!(work(&end).ends_with("its core 1 was busy 99 % (20 % taken by the hypervisor)"));
}
