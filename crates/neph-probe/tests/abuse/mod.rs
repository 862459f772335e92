//! A reflector under abuse: each refusal has its own counted reason, the connection ends, and a
//! flow that behaves loses nothing meanwhile.

mod accounts;
mod bulk;
mod lockout;
mod loops;
mod memory;
mod refusals;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use neph_model::{
    BitRate, ByteSize, ReflectorCaps, ReflectorIdentity, ReflectorSpec, SecretSource, Span, Stop,
    Tally,
};
use neph_probe::{Counted, Flow, Placement, Reflector, Report};
use neph_sys::deadline::poll;
use neph_wire::echo::Request;
use neph_wire::frame::{Mode, frame_prefix};
use neph_wire::stamp::{
    Auth, ErrorEstimate, Format, Key, SenderPacket, Timestamp, decode_reply, encode_request,
};
use socket2::{Domain, SockAddr, Socket, Type};
use tempfile::NamedTempFile;

use refusals::{hello, refusals};

use crate::loopback::flow;
use crate::support::{eventually, is_alone, peak_of, reset_peak};

const CAPS: ReflectorCaps = ReflectorCaps {
    reply_size: ByteSize(1 << 20),
    request_size: ByteSize(64 << 10),
    memory: ByteSize(64 << 20),
    messages_per_second: 2_000,
    reply_rate: BitRate(8_000_000_000),
    connections: 64,
    connections_per_peer: 8,
    idle: Span::from_millis(900),
    handshake: Span::from_millis(400),
    bulk: Span::from_secs(2),
};

fn spec() -> ReflectorSpec {
    ReflectorSpec {
        caps: CAPS,
        ..ReflectorSpec::at(SocketAddr::from(([127, 0, 0, 1], 0)))
    }
}

fn start(spec: &ReflectorSpec) -> Reflector {
    Reflector::start(spec).expect("loopback has a free port")
}

fn start_in(spec: &ReflectorSpec, placement: &Placement) -> Reflector {
    Reflector::start_in(spec, placement).expect("the port is free")
}

/// A file that holds a secret, as long as this lives: a reflector reads it when it starts.
fn key_file(secret: &[u8]) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file that is ours alone");
    fs::write(&file, secret).expect("written");
    file
}

fn source(file: &NamedTempFile) -> SecretSource {
    SecretSource::File(file.path().display().to_string())
}

fn with_caps(caps: ReflectorCaps) -> Reflector {
    start(&ReflectorSpec { caps, ..spec() })
}

fn reflector(identity: Option<ReflectorIdentity>, key: Option<&[u8]>) -> Reflector {
    let key = key.map(key_file);
    start(&ReflectorSpec {
        identity,
        stamp_key: key.as_ref().map(source),
        ..spec()
    })
}

fn counted(reflector: &Reflector, counter: Counted) -> u64 {
    let counts = reflector.counted();
    let count = counts.iter().find(|(name, _)| *name == counter);
    count.expect("all are told").1
}

/// A connection from an address of its own: budgets are kept by address, and the flow that
/// behaves has 127.0.0.1.
fn connect(reflector: &Reflector, last: u8) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let from = SocketAddr::from(([127, 0, 0, last], 0));
    socket.bind(&SockAddr::from(from)).expect("bind");
    let to = SockAddr::from(reflector.address());
    socket.connect(&to).expect("connect");
    let stream = TcpStream::from(socket);
    let patience = Some(Duration::from_secs(4));
    stream.set_read_timeout(patience).expect("a limit");
    stream.set_write_timeout(patience).expect("a limit");
    stream
}

/// Reads until the reflector ends the connection.
fn read_to_the_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut received = Vec::new();
    let mut buffer = vec![0; 65_536];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return received,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return received,
            Err(error) => panic!("the connection did not end: {error}"),
        }
    }
}

/// A flow that behaves, until it is told to stop; its tally then.
fn behave(url: &str) -> (Stop, std::thread::JoinHandle<Tally>) {
    let mut spec = flow(url, 1);
    spec.schedule.count = None;
    let stop = Stop::new();
    let flow = Flow::start(spec, stop.clone()).expect("a thread");
    let watching = std::thread::spawn(move || {
        let mut tally = Tally::default();
        for report in flow.reports() {
            if let Report::Ended(ended) = report {
                tally = ended;
            }
        }
        flow.join().expect("the flow ran");
        tally
    });
    (stop, watching)
}

#[test]
fn each_abuse_is_counted_by_reason_and_disturbs_no_other_flow() {
    if !is_alone("abuse::each_abuse_is_counted_by_reason_and_disturbs_no_other_flow") {
        return;
    }
    let reflector = reflector(None, None);
    let port = reflector.address().port();
    let (stop, behaving) = behave(&format!("ws://127.0.0.1:{port}"));
    let before = reset_peak();
    for (last, (name, bytes, reason)) in (2..).zip(refusals()) {
        let count = counted(&reflector, reason);
        let mut stream = connect(&reflector, last);
        // A refusal may come before everything is written.
        let _ = stream.write_all(&bytes);
        read_to_the_end(&mut stream);
        eventually(name, || counted(&reflector, reason) == count + 1);
    }
    trickle(&reflector);
    say_nothing_more(&reflector);
    take_too_many(&reflector);
    never_read(&reflector);
    let grown = peak_of(before);
    // The gigabytes that were asked for would show.
    assert!(grown < 400_000, "{grown} kB for requests that were refused");
    stop.set();
    let tally = behaving.join().expect("no panic");
    assert!(tally.messages > 300, "{tally:?}");
    // The one that was out when the flow was stopped may be lost.
    assert!(tally.messages - tally.replies <= 1, "{tally:?}");
}

/// Sends byte by byte until the reflector has had enough.
fn drip<'b>(stream: &mut TcpStream, bytes: impl IntoIterator<Item = &'b u8>) {
    let mut bytes = bytes.into_iter();
    let is_over = poll(Duration::from_millis(20), Duration::from_secs(20), || {
        let byte = bytes.next();
        byte.is_none_or(|byte| stream.write_all(&[*byte]).is_err())
    });
    assert!(is_over, "it goes on for ever");
}

/// A head that comes byte by byte is as late as one that does not come.
fn trickle(reflector: &Reflector) {
    let count = counted(reflector, Counted::RefusedHandshake);
    let mut stream = connect(reflector, 100);
    let head = b"GET / HTTP/1.1\r\nX: ".iter();
    drip(&mut stream, head.chain(std::iter::repeat(&b'x')));
    assert_eq!(counted(reflector, Counted::RefusedHandshake), count + 1);
}

fn say_nothing_more(reflector: &Reflector) {
    let mut stream = connect(reflector, 101);
    stream.write_all(&hello(Mode::Echo, 100)).expect("write");
    read_to_the_end(&mut stream);
    eventually("idle", || counted(reflector, Counted::Idle) == 1);
}

fn take_too_many(reflector: &Reflector) {
    let streams: Vec<TcpStream> = (0..8).map(|_| connect(reflector, 102)).collect();
    let mut ninth = connect(reflector, 102);
    assert!(read_to_the_end(&mut ninth).is_empty());
    eventually("too many", || {
        counted(reflector, Counted::RefusedConnections) == 1
    });
    drop(streams);
    eventually("room again", || {
        let mut new_stream = connect(reflector, 102);
        let written = new_stream.write_all(&hello(Mode::Echo, 100));
        written.is_ok() && new_stream.read(&mut [0; 16]).is_ok_and(|count| count == 16)
    });
}

/// A thousand small requests for a megabyte each, and nothing is read.
fn never_read(reflector: &Reflector) {
    let mut stream = connect(reflector, 103);
    let mut bytes = hello(Mode::Echo, 1 << 20);
    for seq in 0..1_000 {
        bytes.extend_from_slice(&frame_prefix(12));
        Request { seq }.encode_into(12, &mut bytes);
    }
    stream
        .write_all(&bytes)
        .expect("small enough for the buffers");
    eventually("slow reader", || {
        counted(reflector, Counted::SlowReaders) == 1
    });
}

#[test]
fn a_half_open_and_a_broken_tls_handshake_are_refused() {
    let identity = ReflectorIdentity::SelfSigned(vec!["localhost".to_owned()]);
    let reflector = reflector(Some(identity), None);
    let port = reflector.address().port();
    let (stop, behaving) = behave(&format!("wss://127.0.0.1:{port}"));
    let cases: [(&[u8], Counted); 2] = [
        (&[0x16, 3, 1], Counted::RefusedHandshake),
        (&[0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3], Counted::RefusedTls),
    ];
    for (bytes, reason) in cases {
        let mut stream = connect(&reflector, 2);
        stream.write_all(bytes).expect("write");
        read_to_the_end(&mut stream);
        eventually("refused", || counted(&reflector, reason) == 1);
    }
    stop.set();
    let tally = behaving.join().expect("no panic");
    assert!(
        tally.replies > 20 && tally.messages - tally.replies <= 1,
        "{tally:?}"
    );
}

fn stamp_request(auth: Auth<'_>, size: usize) -> Vec<u8> {
    numbered_request(1, auth, size)
}

fn numbered_request(seq: u32, auth: Auth<'_>, size: usize) -> Vec<u8> {
    let packet = SenderPacket {
        seq,
        timestamp: Timestamp(0),
        error: ErrorEstimate::from_nanos(1_000, Format::Ntp),
        ssid: 0,
    };
    let mut out = Vec::new();
    encode_request(&packet, auth, size, &mut out).expect("it fits");
    out
}

#[test]
fn a_stamp_packet_that_is_none_or_has_the_wrong_tag_gets_no_answer() {
    let reflector = reflector(None, Some(b"right"));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    socket.connect(reflector.address()).expect("connect");
    let wrong = Key::new(b"wrong").expect("a key");
    socket.send(&[7; 10]).expect("send");
    eventually("malformed", || {
        counted(&reflector, Counted::RefusedMalformed) == 1
    });
    socket
        .send(&stamp_request(Auth::Keyed(&wrong), 200))
        .expect("send");
    eventually("wrong tag", || {
        counted(&reflector, Counted::RefusedKey) == 1
    });
    socket.send(&stamp_request(Auth::Open, 44)).expect("send");
    eventually("no tag", || counted(&reflector, Counted::RefusedKey) == 2);
    assert_eq!(counted(&reflector, Counted::Replies), 0);
    let right = Key::new(b"right").expect("a key");
    socket
        .send(&stamp_request(Auth::Keyed(&right), 200))
        .expect("send");
    eventually("right tag", || counted(&reflector, Counted::Replies) == 1);
}

#[test]
fn a_stamp_reply_has_the_kernels_clock_error_estimate() {
    let reflector = reflector(None, None);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    socket.connect(reflector.address()).expect("connect");
    let patience = Some(Duration::from_secs(2));
    socket.set_read_timeout(patience).expect("a limit");
    socket.send(&stamp_request(Auth::Open, 44)).expect("send");
    let mut buffer = [0; 100];
    let len = socket.recv(&mut buffer).expect("an answer");
    let reply = decode_reply(&buffer[..len], Auth::Open).expect("a reply");
    let error = reply.packet.error;
    assert_eq!(
        error.synchronized,
        neph_probe::clock_sync().starts_with("synchronised")
    );
    // A clock that nobody keeps may be off by anything.
    assert!(error.synchronized || error.nanos() > 1_000_000, "{error:?}");
}

/// Anybody can send anything under anybody's address: only what is proved costs its owner.
#[test]
fn packets_with_a_wrong_tag_use_up_nobodys_rate() {
    let key = key_file(b"right");
    let reflector = start(&ReflectorSpec {
        stamp_key: Some(source(&key)),
        caps: ReflectorCaps {
            messages_per_second: 5,
            ..CAPS
        },
        ..spec()
    });
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    socket.connect(reflector.address()).expect("connect");
    let [wrong, right] = [&b"wrong"[..], b"right"].map(|secret| Key::new(secret).expect("a key"));
    let send = |key| socket.send(&stamp_request(Auth::Keyed(key), 200));
    for _ in 0..20 {
        send(&wrong).expect("send");
    }
    eventually("wrong tags", || {
        counted(&reflector, Counted::RefusedKey) == 20
    });
    send(&right).expect("send");
    eventually("right tag", || counted(&reflector, Counted::Replies) == 1);
}

/// Random datagrams, some of them requests with random ends: whatever comes back is as long as
/// what was asked with.
#[test]
fn no_reply_is_larger_than_its_request() {
    let reflector = reflector(None, None);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    socket.connect(reflector.address()).expect("connect");
    let patience = Some(Duration::from_secs(2));
    socket.set_read_timeout(patience).expect("a limit");
    let mut state = 42_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 33
    };
    let refusals = |reflector: &Reflector| {
        let why = [Counted::RefusedMalformed, Counted::RefusedAnswers];
        why.map(|why| counted(reflector, why)).iter().sum::<u64>()
    };
    let mut answered = 0;
    for round in 0..400_u32 {
        let size = usize::try_from(random() % 1_400).expect("small");
        let mut bytes: Vec<u8> = (0..size).map(|_| random().to_le_bytes()[0]).collect();
        if round % 2 == 0 {
            let request = numbered_request(round, Auth::Open, 44);
            let count = request.len().min(bytes.len());
            bytes[..count].copy_from_slice(&request[..count]);
        }
        let refused = refusals(&reflector);
        socket.send(&bytes).expect("send");
        let replies = answered;
        eventually("refused or answered", || {
            refusals(&reflector) > refused || counted(&reflector, Counted::Replies) > replies
        });
        if counted(&reflector, Counted::Replies) > answered {
            answered += 1;
            let mut reply = vec![0; 65_536];
            assert_eq!(socket.recv(&mut reply).expect("it was sent"), bytes.len());
        }
    }
    assert!(answered > 150, "{answered} answers prove little");
}
