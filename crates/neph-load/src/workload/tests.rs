//! Loads against services of known behaviour, on this host.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use neph_model::{Span, Stop};

use super::*;

/// Serves each connection with `answer` until it returns false; ends with the process.
fn server(answer: fn(&mut TcpStream) -> bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            thread::spawn(move || while answer(&mut stream) {});
        }
    });
    address
}

/// Reads a request of one packet; false at the end of the connection.
fn has_request(stream: &mut TcpStream) -> bool {
    stream.read(&mut [0; 4_096]).is_ok_and(|count| count > 0)
}

fn answer_ok(stream: &mut TcpStream) -> bool {
    has_request(stream)
        && stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .is_ok()
}

fn spec(target: SocketAddr, demand: Demand) -> WorkloadSpec {
    WorkloadSpec {
        target,
        tls: None,
        request: HttpRequest {
            method: "GET".to_owned(),
            target: "/".to_owned(),
            host: "test".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            keep_alive: true,
        },
        demand,
        share: Share::WHOLE,
        seed: 1,
        duration: Span::from_millis(1_200),
        warmup: Span::ZERO,
        timeout: Span::from_secs(10),
        connections: None,
        threads: 1,
        interval: Span::from_secs(1),
        lateness_bound: Span::from_secs(1),
        spins: false,
    }
}

fn workers(count: u32, think: &str) -> Demand {
    Demand::Closed(Workers {
        count,
        think: think.parse().expect(think),
        ramp: Span::ZERO,
    })
}

fn run(spec: &WorkloadSpec) -> (WorkloadMeasured, Vec<WorkloadSecond>) {
    let mut seconds = Vec::new();
    let measured = generate(spec, &Stop::new(), &mut |second| {
        seconds.push(second.clone());
    });
    (measured.expect("a load"), seconds)
}

#[test]
fn each_worker_keeps_its_connection_and_every_request_has_an_outcome() {
    let spec = WorkloadSpec {
        threads: 2,
        ..spec(server(answer_ok), workers(4, "5ms"))
    };
    let (measured, seconds) = run(&spec);
    let tally = &measured.tally;
    assert_eq!((tally.connections, tally.failed()), (4, 0));
    assert_eq!(tally.sent, tally.ended());
    assert!(tally.successes() > 20, "{tally:?}");
    let by_second: u64 = seconds.iter().map(|second| second.tally.due).sum();
    assert_eq!((seconds.len(), by_second), (2, tally.due));
    assert!(measured.validity.limits.is_empty());
}

#[test]
fn arrivals_are_sent_at_their_times_over_few_connections() {
    let arrivals = "200/s".parse().expect("a rate");
    let spec = WorkloadSpec {
        connections: Some(3),
        ..spec(server(answer_ok), Demand::Open(arrivals))
    };
    let (measured, _) = run(&spec);
    assert_eq!(measured.tally.due, 240);
    assert_eq!(measured.tally.successes(), 240);
    assert!(measured.tally.connections <= 3);
}

#[test]
fn a_connection_for_each_request_if_none_is_kept() {
    let mut spec = spec(server(answer_ok), workers(1, "20ms"));
    spec.request.keep_alive = false;
    let (measured, _) = run(&spec);
    assert_eq!(measured.tally.connections, measured.tally.sent);
    assert!(measured.tally.successes() > 5);
}

/// The service stalls at its first request: arrivals behind it wait, and their waiting time counts.
#[test]
fn waiting_for_a_connection_is_part_of_the_response_time() {
    fn stall_once(stream: &mut TcpStream) -> bool {
        if !has_request(stream) {
            return false;
        }
        if stream.ttl().is_ok_and(|ttl| ttl != 99) {
            neph_sys::clock::nap(std::time::Duration::from_millis(500));
            stream.set_ttl(99).expect("an option");
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .is_ok()
    }
    let arrivals = "100/s".parse().expect("a rate");
    let spec = WorkloadSpec {
        connections: Some(1),
        ..spec(server(stall_once), Demand::Open(arrivals))
    };
    let (measured, seconds) = run(&spec);
    let tally = &measured.tally;
    let time = |quantile: crate::DurationQuantile| quantile.time().expect("enough requests");
    // 50 of 120 requests arrive during the stall.
    assert!(time(tally.response_quantile(800)) > Span::from_millis(150));
    assert!(time(tally.service_quantile(800)) < Span::from_millis(100));
    assert_eq!(measured.validity.limits, [GeneratorLimit::Connections]);
    assert_eq!(seconds.len(), 2);
}

#[test]
fn failures_are_counted_by_their_reason() {
    fn silent(stream: &mut TcpStream) -> bool {
        has_request(stream)
    }
    fn no_http(stream: &mut TcpStream) -> bool {
        has_request(stream) && stream.write_all(b"SSH-2.0-OpenSSH\r\n\r\n").is_ok()
    }
    fn hang_up(stream: &mut TcpStream) -> bool {
        has_request(stream);
        false
    }
    fn unavailable(stream: &mut TcpStream) -> bool {
        has_request(stream)
            && stream
                .write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
                .is_ok()
    }
    let closed_port = TcpListener::bind("127.0.0.1:0").expect("a port");
    let refused = closed_port.local_addr().expect("bound");
    drop(closed_port);
    for (target, failure) in [
        (server(silent), RequestFailure::TimedOut),
        (server(no_http), RequestFailure::Invalid),
        (server(hang_up), RequestFailure::Closed),
        (refused, RequestFailure::Refused),
    ] {
        let spec = WorkloadSpec {
            timeout: Span::from_millis(200),
            duration: Span::from_millis(500),
            ..spec(target, workers(1, "10ms"))
        };
        let tally = run(&spec).0.tally;
        let reasons: Vec<RequestFailure> = tally.failures.keys().copied().collect();
        assert_eq!(reasons, [failure]);
        assert_eq!((tally.successes(), tally.failed()), (0, tally.due));
    }
    let spec = spec(server(unavailable), workers(1, "10ms"));
    let tally = run(&spec).0.tally;
    assert_eq!(tally.error_responses(), tally.due);
    assert_eq!(tally.connections, 1);
}

/// The server closes the connection after each response, without saying so.
#[test]
fn a_request_on_a_connection_that_was_closed_is_sent_again() {
    fn answer_once(stream: &mut TcpStream) -> bool {
        answer_ok(stream);
        has_request(stream);
        false
    }
    let (measured, _) = run(&spec(server(answer_once), workers(1, "10ms")));
    let tally = &measured.tally;
    assert_eq!(tally.failed(), 0, "{tally:?}");
    assert!(tally.retries > 3 && tally.retries < tally.sent, "{tally:?}");
}

#[test]
fn requests_in_flight_at_a_stop_have_no_outcome() {
    fn silent(stream: &mut TcpStream) -> bool {
        has_request(stream)
    }
    let spec = WorkloadSpec {
        duration: Span::from_secs(60),
        ..spec(server(silent), workers(3, "none"))
    };
    let stop = Stop::new();
    let measured = generate(&spec, &stop, &mut |_| stop.set()).expect("a load");
    assert!(measured.is_stopped && measured.lasted < Span::from_secs(30));
    assert_eq!((measured.tally.sent, measured.tally.ended()), (3, 0));
}

#[test]
fn workers_that_share_connections_have_their_turns() {
    let spec = WorkloadSpec {
        connections: Some(2),
        timeout: Span::from_millis(600),
        ..spec(server(answer_ok), workers(8, "none"))
    };
    let tally = run(&spec).0.tally;
    assert_eq!(tally.failed(), 0, "{tally:?}");
    assert!(tally.waited <= tally.due, "{tally:?}");
    let max = tally.response.max().expect("responses");
    assert!(max < Span::from_millis(500), "{max}");
}

#[test]
fn an_endless_body_times_out_and_keeps_no_memory() {
    fn endless(stream: &mut TcpStream) -> bool {
        has_request(stream)
            && stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").is_ok()
            && loop {
                if stream.write_all(&[b'x'; 8_192]).is_err() {
                    break false;
                }
            }
    }
    let spec = WorkloadSpec {
        timeout: Span::from_millis(300),
        duration: Span::from_millis(700),
        ..spec(server(endless), workers(2, "10ms"))
    };
    let (measured, _) = run(&spec);
    let reasons: Vec<RequestFailure> = measured.tally.failures.keys().copied().collect();
    assert_eq!(reasons, [RequestFailure::TimedOut]);
    assert!(measured.tally.received_bytes > 1_000_000);
}
