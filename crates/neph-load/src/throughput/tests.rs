//! Tests over loopback with both ends in this process.

use std::net::{SocketAddr, TcpStream};
use std::thread;

use neph_model::{
    AllowedTargets, BitRate, Budgets, Permit, Quantity, Span, Stop, ThroughputMeasure,
    TransferDirection, TransferTransport,
};
use neph_wire::throughput::{Direction, Protocol, TestRequest, VERSION};

use super::*;

fn test_request(protocol: Protocol, direction: Direction) -> TestRequest {
    TestRequest {
        version: VERSION,
        protocol,
        direction,
        streams: 1,
        duration_ns: 2_000_000_000,
        rate_bit_s: Some(50_000_000),
        datagram_bytes: 1448,
        congestion: None,
        dscp: None,
    }
}

fn spec(read_pause: Span) -> ServerSpec {
    ServerSpec {
        listen: ([127, 0, 0, 1], 0).into(),
        caps: ServerCaps {
            duration: Span::from_secs(60),
            streams: 16,
            rate: None,
        },
        read_pause,
        permit: Permit::ANYTHING,
        busy_poll: false,
    }
}

const fn request_of(server: SocketAddr, test_request: &TestRequest) -> ThroughputRequest<'_> {
    ThroughputRequest {
        server,
        test_request,
        permit: &Permit::ANYTHING,
    }
}

/// Stops a server, also if the work panics.
struct StopOnDrop<'a>(&'a Stop);
impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Runs `work` with a server.
fn with_server<T>(spec: &ServerSpec, work: impl FnOnce(&Server) -> T) -> T {
    let server = Server::bind(spec).expect("a port");
    let stop = Stop::new();
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(&stop, &|_| {}));
        let stop_guard = StopOnDrop(&stop);
        let result = work(&server);
        drop(stop_guard);
        serving.join().expect("no panic").expect("it serves");
        result
    })
}

fn measure_with_server(test_request: &TestRequest, spec: &ServerSpec) -> (Measured, Vec<Second>) {
    with_server(spec, |server| {
        let mut seconds = Vec::new();
        let measured = measure(
            request_of(server.address(), test_request),
            &Stop::new(),
            &mut |second| {
                seconds.push(second.clone());
            },
        );
        (measured.expect("it is measured"), seconds)
    })
}

/// Within `percent` of 50 Mbit/s.
fn is_near(rate: BitRate, percent: f64) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = rate.bits_per_second() as f64 / 50e6;
    (share - 1.0).abs() * 100.0 <= percent
}

#[test]
fn the_target_rate_is_reached_with_each_protocol_and_direction() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for direction in [Direction::Up, Direction::Down] {
            let (measured, seconds) =
                measure_with_server(&test_request(protocol, direction), &spec(Span::ZERO));
            assert_eq!(measured.fault, None);
            let [result] = &measured.results()[..] else {
                panic!("one direction")
            };
            let totals = &result.totals;
            assert!(is_near(totals.sent, 1.0), "{protocol:?} {totals:?}");
            assert!(is_near(totals.goodput, 1.0), "{protocol:?} {totals:?}");
            let sentence = &result.limit.sentence;
            assert_eq!(result.limit.kind, LimitKind::TargetRate, "{sentence}");
            assert_eq!(seconds.len(), 2, "{seconds:?}");
            assert!(seconds.iter().all(|second| is_near(second.goodput, 3.0)));
            if let Some(udp) = totals.udp {
                assert_eq!((udp.lost, udp.reordered, udp.duplicates), (0, 0, 0));
                assert!(udp.variation.pdv_p99_ns.is_some(), "{udp:?}");
            }
        }
    }
}

#[test]
fn both_directions_are_measured_at_the_same_time_on_all_streams() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let two = TestRequest {
            streams: 2,
            ..test_request(protocol, Direction::Both)
        };
        let (measured, seconds) = measure_with_server(&two, &spec(Span::ZERO));
        let results = measured.results();
        let directions = results.iter().map(|result| result.direction);
        assert!(directions.eq([Direction::Up, Direction::Down]));
        for result in &results {
            let goodput = result.totals.goodput;
            assert!(is_near(goodput, 1.0), "{protocol:?} {:?}", result.totals);
        }
        assert_eq!(seconds.len(), 4);
        let streams = |intervals: &[neph_wire::throughput::SentInterval]| {
            let mut streams: Vec<u16> = intervals.iter().map(|interval| interval.stream).collect();
            streams.sort_unstable();
            streams.dedup();
            streams
        };
        assert_eq!(streams(&measured.client.sent), [0, 1]);
        assert_eq!(streams(&measured.server.sent), [2, 3]);
    }
}

#[test]
fn a_slow_receiver_is_reported_as_the_limit() {
    let slow = spec(Span::from_millis(100));
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let max = TestRequest {
            rate_bit_s: None,
            ..test_request(protocol, Direction::Up)
        };
        let (measured, _) = measure_with_server(&max, &slow);
        let limit = &measured.results()[0].limit;
        assert_eq!(limit.kind, LimitKind::Receiver, "{}", limit.sentence);
    }
}

#[test]
fn a_busy_server_refuses_with_the_remaining_time_and_a_stop_keeps_results() {
    with_server(&spec(Span::ZERO), |server| {
        let (stop, address) = (Stop::new(), server.address());
        let long = TestRequest {
            duration_ns: 30_000_000_000,
            ..test_request(Protocol::Tcp, Direction::Up)
        };
        let other = test_request(Protocol::Udp, Direction::Down);
        let mut refusal = None;
        let measured = measure(request_of(address, &long), &stop, &mut |_| {
            refusal.get_or_insert_with(|| {
                measure(request_of(address, &other), &Stop::new(), &mut |_| {})
                    .expect_err("it is busy")
                    .to_string()
            });
            stop.set();
        });
        let measured = measured.expect("the results so far are kept");
        assert!(
            measured.is_stopped && measured.fault.is_none(),
            "{:?}",
            measured.fault
        );
        let refusal = refusal.expect("a second was measured");
        assert!(
            refusal.contains("busy with a test of 127.0.0.1 for up to "),
            "{refusal}"
        );
        let totals = &measured.results()[0].totals;
        assert!(totals.lasted < Span::from_secs(20));
        assert!(is_near(totals.goodput, 3.0), "{totals:?}");
        // The slot is free at once.
        let next = measure(request_of(address, &other), &Stop::new(), &mut |_| {});
        next.expect("it is measured");
    });
}

#[test]
fn malformed_requests_do_not_harm_the_throughput_server() {
    use std::io::Write;
    with_server(&spec(Span::ZERO), |server| {
        for malformed in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"{\"message\":\"start\"}\n",
            b"{nonsense and more of it\n",
            b"NTPs\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01",
        ] {
            let mut stream = TcpStream::connect(server.address()).expect("it listens");
            stream.write_all(malformed).expect("it is sent");
        }
        let measured = measure(
            request_of(
                server.address(),
                &test_request(Protocol::Tcp, Direction::Up),
            ),
            &Stop::new(),
            &mut |_| {},
        );
        measured.expect("it is measured");
    });
}

#[test]
fn a_datagram_above_the_mtu_goes_in_fragments() {
    let large = TestRequest {
        datagram_bytes: 65_507,
        ..test_request(Protocol::Udp, Direction::Up)
    };
    let (measured, _) = measure_with_server(&large, &spec(Span::ZERO));
    let totals = &measured.results()[0].totals;
    assert!(is_near(totals.goodput, 1.5), "{totals:?}");
}

#[test]
fn senders_stay_within_the_rate_of_their_permit_with_each_protocol() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let budgets = Budgets {
            rate: Some(BitRate(20_000_000)),
            ..Budgets::default()
        };
        let permit = Permit::new(AllowedTargets::default(), budgets, 0);
        let test_request = TestRequest {
            rate_bit_s: None,
            ..test_request(protocol, Direction::Up)
        };
        let measured = with_server(&spec(Span::ZERO), |server| {
            let permitted_request = ThroughputRequest {
                permit: &permit,
                ..request_of(server.address(), &test_request)
            };
            measure(permitted_request, &Stop::new(), &mut |_| {}).expect("it is measured")
        });
        let sent = measured.results()[0].totals.sent_bytes;
        assert_eq!(measured.results()[0].limit.kind, LimitKind::Policy);
        // The token bucket starts full: one second's worth more than two seconds allow.
        assert!(
            (4_000_000..=7_900_000).contains(&sent),
            "{protocol:?}: {sent}"
        );
        assert!(permit.spent_today() >= sent);
    }
}

#[test]
fn receivers_stay_within_their_permit_and_leave_budget_for_later_messages() {
    const TENTH_OF_SECOND_NS: i64 = 100_000_000;
    for (protocol, rate_bit_s, max_rate_bit_s, limit) in [
        (Protocol::Tcp, None, 22_000_000, LimitKind::Policy),
        // Datagrams arrive faster than the budget: nothing can slow their sender down.
        (
            Protocol::Udp,
            Some(60_000_000),
            61_000_000,
            LimitKind::TargetRate,
        ),
    ] {
        let budgets = Budgets {
            rate: Some(BitRate(20_000_000)),
            ..Budgets::default()
        };
        let permit = Permit::new(AllowedTargets::default(), budgets, 0);
        let server = ServerSpec {
            permit: permit.clone(),
            ..spec(Span::ZERO)
        };
        let test_request = TestRequest {
            rate_bit_s,
            ..test_request(protocol, Direction::Up)
        };
        let (measured, _) = measure_with_server(&test_request, &server);
        let goodput = measured.results()[0].totals.goodput.0;
        assert!(
            (15_000_000..=max_rate_bit_s).contains(&goodput),
            "{protocol:?}: {goodput}"
        );
        assert_eq!(measured.results()[0].limit.kind, limit);
        assert!(permit.spent_today() > 0);
        let later = neph_sys::clock::raw().0 + TENTH_OF_SECOND_NS;
        assert!(permit.message(1_000, later), "{protocol:?}: debt is left");
    }
}

#[test]
fn results_become_quantities_with_their_limit() {
    let test = ThroughputMeasure {
        transport: TransferTransport::Udp,
        direction: TransferDirection::Both,
        streams: 1,
        rate: Some(BitRate(50_000_000)),
    };
    let test_request = super::build_test_request(&test, Span::from_secs(2), None);
    let (measured, seconds) = measure_with_server(&test_request, &spec(Span::ZERO));
    let quantities = measured.quantities();
    for (goodput, loss) in [
        (Quantity::UpGoodput, Quantity::UpLoss),
        (Quantity::DownGoodput, Quantity::DownLoss),
    ] {
        let rate = quantities.values[&goodput];
        assert!((45e6..=51e6).contains(&rate), "{goodput}: {rate}");
        assert!((0.0..=10.0).contains(&quantities.values[&loss]));
    }
    assert!(!quantities.values.contains_key(&Quantity::UpRetransmissions));
    assert_eq!(quantities.limits.len(), 2);
    let of_seconds = seconds.iter().flat_map(Second::quantities);
    let ups = of_seconds.filter(|(quantity, _)| *quantity == Quantity::UpGoodput);
    assert!(ups.count() >= 2);
}
