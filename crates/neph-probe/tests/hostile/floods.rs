//! Servers that send without end: the client's memory does not grow with what they send.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use neph_model::{Span, Stop, Target};
use neph_probe::{Flow, FlowSpec};
use neph_sys::deadline::Stopwatch;
use neph_sys::ppoll::{self, Awaited};
use neph_wire::frame::{HelloReply, Status};
use neph_wire::http::parse_request;
use neph_wire::ws::{check_request, server_response};

use crate::support::{is_alone, peak_of, reset_peak};

/// A flood goes on for this long.
const FLOOD: Duration = Duration::from_millis(1_500);
/// A client may grow by this much while it is flooded, megabytes: its buffers, and pages of code.
const GROWTH: u64 = 24;
const MEGABYTE: usize = 1 << 20;

/// One connection's flood: what comes first, and what then comes without end.
struct Flood {
    first: Vec<u8>,
    endless: Vec<u8>,
}

fn ws(mut frames: Vec<u8>, request: &[u8]) -> Flood {
    let head = parse_request(request).expect("a request").expect("whole");
    let mut first = Vec::new();
    server_response(check_request(&head).expect("an upgrade"), &mut first);
    if frames.len() > MEGABYTE {
        first.append(&mut frames);
        frames = vec![7; MEGABYTE];
    }
    Flood {
        first,
        endless: frames,
    }
}

/// Serves the flood to whoever connects, without reading more than the request; returns how many bytes
/// were taken from it.
fn flood(listener: &TcpListener, make: fn(&[u8]) -> Flood) -> u64 {
    listener.set_nonblocking(true).expect("a listener");
    let begun = Stopwatch::start();
    let mut sent = 0;
    while begun.elapsed() < FLOOD {
        if let Ok((stream, _)) = listener.accept() {
            sent += flood_one(stream, make, begun);
        } else {
            let mut awaited = [Awaited::readable(listener.as_fd())];
            let tick = Some(Duration::from_millis(50));
            ppoll::wait(&mut awaited, tick).expect("a listener");
        }
    }
    sent
}

fn flood_one(mut stream: TcpStream, make: fn(&[u8]) -> Flood, begun: Stopwatch) -> u64 {
    let short = Some(Duration::from_millis(100));
    stream.set_nonblocking(false).expect("a socket");
    stream.set_read_timeout(short).expect("a limit");
    stream.set_write_timeout(short).expect("a limit");
    let mut request = [0; 4_096];
    let Ok(count) = stream.read(&mut request) else {
        return 0;
    };
    let flood = make(&request[..count]);
    let mut sent = 0;
    let mut bytes = flood.first.as_slice();
    while begun.elapsed() < FLOOD {
        match stream.write(bytes) {
            Ok(count) => {
                sent += count as u64;
                bytes = &bytes[count..];
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        if bytes.is_empty() {
            bytes = &flood.endless;
        }
    }
    sent
}

/// Runs a flow against the flood; returns megabytes that were sent, and by how many the process grew.
fn flooded(scheme: &str, reflector: bool, make: fn(&[u8]) -> Flood) -> (u64, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("bound");
    let server = thread::spawn(move || flood(&listener, make));
    let target = Target::parse(&format!("{scheme}://{address}")).expect("a target");
    let mut spec = FlowSpec::plain(target, address);
    spec.schedule.interval = Span::from_millis(5);
    spec.timeout = Span::from_millis(300);
    spec.reflector = reflector;
    let (sent, growth) = measured(spec, server);
    (sent >> 20, growth)
}

/// Runs a flow until the server's flood is over; returns what it sent, and by how many megabytes the process
/// grew.
fn measured(spec: FlowSpec, server: JoinHandle<u64>) -> (u64, u64) {
    let before = reset_peak();
    let stop = Stop::new();
    let flow = Flow::start(spec, stop.clone()).expect("a thread");
    let sent = server.join().expect("no panic");
    stop.set();
    for _ in flow.reports() {}
    flow.join().expect("the flow ran");
    (sent, peak_of(before) / 1_024)
}

/// A reflector that answers with more than was requested.
fn large_reply(_: &[u8]) -> Flood {
    let granted = HelloReply {
        status: Status::Granted,
        reply_size: 100,
        max_request: u32::MAX,
    };
    let mut first = Vec::new();
    granted.encode(&mut first);
    first.extend_from_slice(&(60_u32 << 20).to_be_bytes());
    Flood {
        first,
        endless: vec![7; MEGABYTE],
    }
}

#[test]
fn a_server_that_sends_without_end_makes_no_client_grow() {
    type Make = fn(&[u8]) -> Flood;
    if !is_alone("hostile::floods::a_server_that_sends_without_end_makes_no_client_grow") {
        return;
    }
    let ping = |request: &[u8]| {
        let frame = [&[0x89, 125][..], &[7; 125]].concat();
        ws(frame.repeat(8_000), request)
    };
    let message_without_end = |request: &[u8]| {
        let mut frames = vec![0x82, 127, 0x0f, 0, 0, 0, 0, 0, 0, 0];
        frames.resize(2 * MEGABYTE, 7);
        ws(frames, request)
    };
    let fragments_without_end = |request: &[u8]| {
        let first = [&[0x02, 126, 0xff, 0xff][..], &vec![7; 65_535]].concat();
        let next = [&[0x00, 126, 0xff, 0xff][..], &vec![7; 65_535]].concat();
        let mut flood = ws(next, request);
        flood.first.extend_from_slice(&first);
        flood
    };
    let body = |_: &[u8]| Flood {
        first: b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
        endless: vec![7; 1 << 20],
    };
    let chunks = |_: &[u8]| Flood {
        first: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
        endless: [b"10000\r\n".as_slice(), &vec![7; 1 << 16], b"\r\n"].concat(),
    };
    let informational = |_: &[u8]| Flood {
        first: Vec::new(),
        endless: b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1_000),
    };
    let head = |_: &[u8]| Flood {
        first: b"HTTP/1.1 200 OK\r\n".to_vec(),
        endless: b"A: b\r\n".repeat(1_000),
    };
    let floods: [(&str, &str, bool, u64, Make); 8] = [
        ("pings that ask for pongs", "ws", false, 20, ping),
        ("one message", "ws", false, 100, message_without_end),
        ("fragments", "ws", false, 100, fragments_without_end),
        ("a body", "http", false, 100, body),
        ("chunks", "http", false, 100, chunks),
        ("informational responses", "http", false, 5, informational),
        ("a head", "http", false, 0, head),
        ("a reply that nobody asked for", "tcp", true, 0, large_reply),
    ];
    for (name, scheme, reflector, min_megabytes, make) in floods {
        let (sent, growth) = flooded(scheme, reflector, make);
        assert!(sent >= min_megabytes, "{name}: only {sent} MB were sent");
        assert!(growth < GROWTH, "{name}: {growth} MB more after {sent} MB");
    }
}

/// A reflector that answers every request with copies without end.
#[test]
fn replies_that_are_repeated_without_end_make_no_client_grow() {
    if !is_alone("hostile::floods::replies_that_are_repeated_without_end_make_no_client_grow") {
        return;
    }
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = socket.local_addr().expect("bound");
    let patience = Some(Duration::from_millis(50));
    socket.set_read_timeout(patience).expect("a limit");
    let server = thread::spawn(move || {
        let (mut buffer, mut sent, begun) = ([0; 2_000], 0_u64, Stopwatch::start());
        while begun.elapsed() < FLOOD {
            let Ok((count, from)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            for _ in 0..500 {
                // The client's queue may be full: what the kernel drops floods nobody.
                sent += u64::from(socket.send_to(&buffer[..count], from).is_ok());
            }
        }
        sent
    });
    let target = Target::parse(&format!("udp://{address}")).expect("a target");
    let mut spec = FlowSpec::plain(target, address);
    spec.schedule.interval = Span::from_millis(2);
    spec.timeout = Span::from_millis(300);
    let (sent, growth) = measured(spec, server);
    assert!(sent > 20_000, "only {sent} were sent");
    assert!(growth < GROWTH, "{growth} MB more after {sent} replies");
}
