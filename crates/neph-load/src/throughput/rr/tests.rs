//! Tests over loopback with both ends in this process.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use neph_model::{AllowedTargets, BitRate, Budgets, Permit, Span, Stop};
use neph_wire::throughput::{RrKind, RrTestRequest, VERSION};

use super::super::{Server, ServerCaps, ServerSpec, ThroughputError};
use super::*;

fn spec(kind: RrKind) -> RrSpec {
    RrSpec {
        ask: RrTestRequest {
            version: VERSION,
            kind,
            streams: 1,
            duration_ns: 1_200_000_000,
            request_bytes: kind.min_request_bytes(),
            reply_bytes: kind.min_reply_bytes(),
            dscp: None,
        },
        timeout: Span::from_secs(1),
        busy_poll: false,
    }
}

/// Stops a server, also if the work panics.
struct StopOnDrop<'a>(&'a Stop);
impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// A server with no limit of the rate.
fn server_spec() -> ServerSpec {
    ServerSpec {
        listen: ([127, 0, 0, 1], 0).into(),
        caps: ServerCaps {
            duration: Span::from_secs(60),
            streams: 16,
            rate: None,
        },
        read_pause: Span::ZERO,
        permit: Permit::ANYTHING,
        busy_poll: false,
    }
}

/// Runs `work` with a server.
fn with_server<T>(spec: &ServerSpec, work: impl FnOnce(SocketAddr) -> T) -> T {
    let server = Server::bind(spec).expect("a port");
    let stop = Stop::new();
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(&stop, &|_| {}));
        let stopped = StopOnDrop(&stop);
        let worked = work(server.address());
        drop(stopped);
        serving.join().expect("no panic").expect("it serves");
        worked
    })
}

const fn request_of(server: SocketAddr, spec: &RrSpec) -> RrRequest<'_> {
    RrRequest {
        server,
        spec,
        permit: &Permit::ANYTHING,
    }
}

fn measured(spec: &RrSpec) -> RrMeasured {
    with_server(&server_spec(), |server| {
        let mut counted = (0, crate::Durations::default());
        let measured = measure(request_of(server, spec), &Stop::new(), &mut |second| {
            counted.0 += second.counts.transactions;
            counted.1.merge(&second.rtts);
        });
        let measured = measured.expect("it is measured");
        assert_eq!(measured.fault, None);
        assert_eq!(
            counted,
            (measured.counts.transactions, measured.rtts.clone())
        );
        measured
    })
}

#[test]
fn each_kind_carries_out_one_transaction_after_the_other_on_each_stream() {
    for kind in [RrKind::UdpRr, RrKind::TcpRr, RrKind::TcpCrr] {
        for streams in [1, 3] {
            let mut spec = spec(kind);
            spec.ask.streams = streams;
            let result = measured(&spec);
            assert!(
                result.counts.transactions > 100,
                "{kind:?} {:?}",
                result.counts
            );
            assert_eq!(
                (result.counts.lost, result.counts.foreign),
                (0, 0),
                "{kind:?}"
            );
            assert_eq!(result.rtts.count(), result.counts.transactions);
            assert_eq!(result.lost_requests(), (kind == RrKind::UdpRr).then_some(0));
            let (mean, rate) = (result.rtts.mean().expect("a mean").secs_f64(), result.rate);
            // Transactions follow each other without a gap.
            let share = mean * rate / f64::from(streams);
            assert!((0.9..1.01).contains(&share), "{kind:?} {share} {rate}");
            assert!(result.client.thread > 0.0 && result.server.thread > 0.0);
            assert!(
                result.lasted >= Span::from_millis(1_200),
                "{}",
                result.lasted
            );
        }
    }
}

#[test]
fn all_sizes_work_in_both_directions_and_replies_may_exceed_requests() {
    for (kind, request, reply) in [
        (RrKind::UdpRr, 65_507, 16),
        (RrKind::UdpRr, 16, 65_507),
        (RrKind::TcpRr, 1 << 20, 1),
        (RrKind::TcpRr, 1, 1 << 20),
        (RrKind::TcpCrr, 200_000, 300_000),
        (RrKind::TcpCrr, 17, 1 << 20),
    ] {
        let mut spec = spec(kind);
        (spec.ask.request_bytes, spec.ask.reply_bytes) = (request, reply);
        spec.ask.duration_ns = 300_000_000;
        let result = measured(&spec);
        assert!(
            result.counts.transactions > 10,
            "{kind:?} {:?}",
            result.counts
        );
        assert_eq!(result.counts.lost, 0, "{kind:?} {request} {reply}");
    }
}

#[test]
fn a_client_that_polls_measures_the_same() {
    for kind in [RrKind::UdpRr, RrKind::TcpRr] {
        let spec = RrSpec {
            busy_poll: true,
            ..spec(kind)
        };
        let result = measured(&spec);
        assert!(
            result.counts.transactions > 100,
            "{kind:?} {:?}",
            result.counts
        );
        assert!(result.client.thread > 0.3, "{:?}", result.client);
    }
}

#[test]
fn counts_rtts_spec_and_address_roundtrip_through_json() {
    let result = measured(&spec(RrKind::TcpRr));
    let text = serde_json::to_string(&result).expect("JSON");
    let read: RrMeasured = serde_json::from_str(&text).expect("the same");
    assert_eq!((&read.counts, &read.rtts), (&result.counts, &result.rtts));
    assert_eq!((read.spec, read.address), (result.spec, result.address));
}

#[test]
fn during_tcp_crr_other_clients_are_refused_and_malformed_requests_ignored() {
    with_server(&server_spec(), |server| {
        let long = {
            let mut spec = spec(RrKind::TcpCrr);
            spec.ask.duration_ns = 30_000_000_000;
            spec
        };
        let (stop, mut refusals) = (Stop::new(), Vec::new());
        let measured = measure(request_of(server, &long), &stop, &mut |_| {
            // The rest is returned at the end too, when the server is free.
            if stop.is_set() {
                return;
            }
            let other = measure(
                request_of(server, &spec(RrKind::UdpRr)),
                &Stop::new(),
                &mut |_| {},
            );
            refusals.push(other.expect_err("it is busy").to_string());
            for malformed in [
                &b"GET / HTTP/1.1\r\n\r\n"[..],
                b"NTPs\x01\0\0\0\0\0\0\0\0\0\0\x01",
                b"",
            ] {
                let mut stream = TcpStream::connect(server).expect("it listens");
                stream.write_all(malformed).expect("it is sent");
                if !malformed.is_empty() {
                    let mut byte = [0];
                    assert!(
                        matches!(stream.read(&mut byte), Ok(0) | Err(_)),
                        "it is closed"
                    );
                }
            }
            stop.set();
        });
        let measured = measured.expect("the results so far are kept");
        assert!(measured.is_stopped && measured.counts.transactions > 100);
        assert!(
            refusals
                .iter()
                .all(|refusal| refusal.contains("busy with a test of 127.0.0.1"))
        );
        // The server accepts on its port again.
        let next = measure(
            request_of(server, &spec(RrKind::TcpRr)),
            &Stop::new(),
            &mut |_| {},
        );
        next.expect("it is measured");
    });
}

#[test]
fn a_rate_above_the_servers_cap_ends_the_test_and_keeps_its_results() {
    let mut server_spec = server_spec();
    server_spec.caps.rate = Some(BitRate(1_000));
    with_server(&server_spec, |server| {
        let mut long = spec(RrKind::UdpRr);
        long.ask.duration_ns = 30_000_000_000;
        let measured =
            measure(request_of(server, &long), &Stop::new(), &mut |_| {}).expect("it began");
        let fault = measured.fault.expect("it broke off");
        assert!(fault.contains("that this server allows"), "{fault}");
        assert!(measured.counts.transactions > 0);
    });
}

#[test]
fn an_invalid_request_size_is_refused_before_connecting() {
    let mut few = spec(RrKind::UdpRr);
    few.ask.request_bytes = 15;
    let closed_address = SocketAddr::from(([127, 0, 0, 1], 1));
    let refused = measure(request_of(closed_address, &few), &Stop::new(), &mut |_| {});
    assert!(
        matches!(refused, Err(ThroughputError::InvalidRequest(_))),
        "{refused:?}"
    );
}

#[test]
fn a_server_with_a_budget_of_messages_or_bytes_per_second_refuses_transactions() {
    let messages = Budgets {
        messages: Some(20_000),
        ..Budgets::default()
    };
    let rate = Budgets {
        rate: Some(BitRate(1_000_000)),
        ..Budgets::default()
    };
    for (budgets, key) in [
        (messages, "budget.messages_per_second"),
        (rate, "budget.rate"),
    ] {
        let mut server_spec = server_spec();
        server_spec.permit = Permit::new(AllowedTargets::default(), budgets, 0);
        with_server(&server_spec, |server| {
            let rr_spec = spec(RrKind::UdpRr);
            let refused = measure(request_of(server, &rr_spec), &Stop::new(), &mut |_| {});
            let reason = refused.expect_err("the budget is too low").to_string();
            assert!(reason.contains(key), "{reason}");
        });
    }
}
