//! Peers that make a reflector hold memory: each gets its share and its time, and no more.

use super::*;

use std::sync::Arc;

use neph_sys::clock;
use neph_sys::deadline::poll;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::refusals::upgraded;
use crate::support::{is_alone, peak_of, reset_peak};

const MEGABYTE: usize = 1 << 20;
/// Small enough that a few connections fill the room.
const TIGHT: ReflectorCaps = ReflectorCaps {
    request_size: ByteSize(MEGABYTE as u64),
    memory: ByteSize(12 << 20),
    connections: 16,
    ..CAPS
};

fn tight(caps: ReflectorCaps) -> (Reflector, Stop, std::thread::JoinHandle<Tally>) {
    let reflector = with_caps(caps);
    let port = reflector.address().port();
    let (stop, behaving) = behave(&format!("ws://127.0.0.1:{port}"));
    (reflector, stop, behaving)
}

fn lost_nothing(reflector: &Reflector, stop: &Stop, behaving: std::thread::JoinHandle<Tally>) {
    eventually("the others are answered", || {
        counted(reflector, Counted::Replies) > 20
    });
    stop.set();
    let tally = behaving.join().expect("no panic");
    // The one that was out when the flow was stopped may be lost.
    assert!(tally.messages - tally.replies <= 1, "{tally:?}");
}

/// A hello for replies of that size, and a request of `size` bytes.
fn request(reply_size: usize, size: usize) -> Vec<u8> {
    let mut out = hello(
        Mode::Echo,
        u32::try_from(reply_size).expect("below a gigabyte"),
    );
    out.extend_from_slice(&frame_prefix(
        u32::try_from(size).expect("below a gigabyte"),
    ));
    Request { seq: 1 }.encode_into(size, &mut out);
    out
}

/// Sends all but the end of what it announced; may be cut off.
fn send_most(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(&bytes[..bytes.len() - 1]);
}

#[test]
fn unfinished_requests_take_no_memory_or_time_from_others() {
    let caps = ReflectorCaps {
        idle: Span::from_secs(3),
        ..TIGHT
    };
    let (reflector, stop, behaving) = tight(caps);
    let request_bytes = request(100, MEGABYTE);
    let refused = || counted(&reflector, Counted::RefusedMemory);
    let mut hoarders: Vec<TcpStream> = (0..4).map(|_| connect(&reflector, 104)).collect();
    for stream in &mut hoarders {
        send_most(stream, &request_bytes);
    }
    // There is room for one of them, or for two whose buffers happen to grow in small steps.
    eventually("one address gets its share", || refused() >= 2);
    let before = refused();
    for last in 105..112 {
        let mut stream = connect(&reflector, last);
        send_most(&mut stream, &request_bytes);
        hoarders.push(stream);
    }
    eventually("all together get what there is", || refused() > before);
    let mut neighbour = connect(&reflector, 120);
    neighbour.write_all(&request(100, 40_000)).expect("write");
    let mut reply = [0; 16 + 4 + 100];
    neighbour
        .read_exact(&mut reply)
        .expect("small ones need no room");
    eventually("the others' time is over", || {
        let over = [Counted::SlowWriters, Counted::Idle];
        over.iter().any(|reason| counted(&reflector, *reason) >= 1)
    });
    lost_nothing(&reflector, &stop, behaving);
}

#[test]
fn fragments_count_against_the_memory_limit_like_frames() {
    let (reflector, stop, behaving) = tight(ReflectorCaps {
        idle: Span::from_secs(3),
        ..TIGHT
    });
    let length = (MEGABYTE as u64 - 1).to_be_bytes();
    let mut fragment = [&[0x02, 0xff][..], &length, &[0; 4]].concat();
    fragment.resize(fragment.len() + MEGABYTE - 1, 7);
    let bytes = upgraded(&fragment);
    let mut hoarders: Vec<TcpStream> = (0..3).map(|_| connect(&reflector, 104)).collect();
    for stream in &mut hoarders {
        let _ = stream.write_all(&bytes);
    }
    eventually("one address gets a quarter", || {
        counted(&reflector, Counted::RefusedMemory) >= 2
    });
    lost_nothing(&reflector, &stop, behaving);
}

#[test]
fn a_slowly_dripped_request_is_ended() {
    let (reflector, stop, behaving) = tight(TIGHT);
    let mut stream = connect(&reflector, 104);
    drip(&mut stream, &request(100, MEGABYTE));
    assert_eq!(counted(&reflector, Counted::SlowWriters), 1);
    lost_nothing(&reflector, &stop, behaving);
}

/// A line of half a megabit is slow, and no abuse: its first body takes longer than a handshake.
#[test]
fn a_body_that_takes_its_time_is_answered() {
    let reflector = with_caps(CAPS);
    let mut stream = connect(&reflector, 104);
    stream
        .write_all(
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\nConnection: close\r\n\r\n",
        )
        .expect("write");
    for _ in 0..10 {
        stream.write_all(&[7; 6_000]).expect("it is read");
        clock::nap(Duration::from_millis(100));
    }
    let answer = read_to_the_end(&mut stream);
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
}

#[test]
fn an_echo_is_no_larger_than_the_largest_reply() {
    let reflector = with_caps(ReflectorCaps {
        reply_size: ByteSize(1_000),
        ..CAPS
    });
    let mut frame = vec![0x82, 0xfe, 0x03, 0xe9, 0, 0, 0, 0];
    frame.resize(frame.len() + 1_001, 7);
    let mut stream = connect(&reflector, 104);
    stream.write_all(&upgraded(&frame)).expect("write");
    read_to_the_end(&mut stream);
    assert_eq!(counted(&reflector, Counted::RefusedReplySize), 1);
}

const REPLY: usize = 16 << 20;

#[test]
fn replies_that_one_peer_leaves_unread_leave_room_for_others() {
    let (reflector, stop, behaving) = tight(ReflectorCaps {
        reply_size: ByteSize(REPLY as u64),
        memory: ByteSize(12 * REPLY as u64),
        idle: Span::from_secs(5),
        ..CAPS
    });
    let requests = request(REPLY, 100);
    let mut hoarders: Vec<TcpStream> = (0..4).map(|_| connect(&reflector, 104)).collect();
    for stream in &mut hoarders {
        stream.write_all(&requests).expect("write");
    }
    eventually("one address gets a quarter", || {
        counted(&reflector, Counted::RefusedMemory) >= 2
    });
    let mut neighbour = connect(&reflector, 120);
    neighbour.write_all(&requests).expect("write");
    let mut reply = vec![0; 16 + 4 + REPLY];
    neighbour
        .read_exact(&mut reply)
        .expect("there is room for it");
    lost_nothing(&reflector, &stop, behaving);
}

#[test]
fn a_slowly_read_reply_is_ended() {
    let (reflector, stop, behaving) = tight(ReflectorCaps {
        reply_size: ByteSize(REPLY as u64),
        ..CAPS
    });
    let mut stream = connect(&reflector, 104);
    stream.write_all(&request(REPLY, 100)).expect("write");
    let is_over = poll(Duration::from_millis(20), Duration::from_secs(20), || {
        let _ = stream.read(&mut [0; 10]);
        counted(&reflector, Counted::SlowReaders) > 0
    });
    assert!(is_over, "it goes on for ever");
    lost_nothing(&reflector, &stop, behaving);
}

/// A certificate in files of its own, and a client that trusts it.
fn certified(folder: &std::path::Path) -> (ReflectorIdentity, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    fs::write(&certificate, made.cert.pem()).expect("written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let mut permissions = fs::metadata(&key).expect("there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
    fs::set_permissions(&key, permissions).expect("ours");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a certificate");
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (
        ReflectorIdentity::Files { certificate, key },
        Arc::new(config),
    )
}

/// Requests that do not become whole and replies that are not read, plain and over TLS: all copies of
/// them together stay within the memory that is allowed.
#[test]
fn unfinished_and_unread_data_stays_within_the_memory_limit() {
    const MEMORY: usize = 96 << 20;
    if !is_alone("abuse::memory::unfinished_and_unread_data_stays_within_the_memory_limit") {
        return;
    }
    // As `neph reflect` does.
    neph_sys::memory::return_large_blocks();
    let folder = std::env::temp_dir().join(format!("neph-memory-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let (identity, config) = certified(&folder);
    let reflector = start(&ReflectorSpec {
        identity: Some(identity),
        caps: ReflectorCaps {
            memory: ByteSize(MEMORY as u64),
            reply_size: ByteSize(REPLY as u64),
            request_size: ByteSize(2 * REPLY as u64),
            idle: Span::from_secs(20),
            ..CAPS
        },
        ..spec()
    });
    let ask = request(REPLY, 100);
    let hold = request(100, 2 * REPLY);
    let before = reset_peak();
    let mut plain = Vec::new();
    let mut sealed = Vec::new();
    for last in 110..130_u8 {
        let bytes = if last % 4 < 2 { &ask } else { &hold };
        let mut stream = connect(&reflector, last);
        if last % 2 == 0 {
            send_most(&mut stream, bytes);
            let _ = stream.write_all(&bytes[bytes.len() - usize::from(last % 4 < 2)..]);
            plain.push(stream);
            continue;
        }
        let name = ServerName::try_from("localhost").expect("a name");
        let client = ClientConnection::new(Arc::clone(&config), name).expect("a client");
        let mut stream = StreamOwned::new(client, stream);
        // What is refused ends in the middle of this.
        let length = bytes.len() - usize::from(last % 4 >= 2);
        for piece in bytes[..length].chunks(1 << 20) {
            if stream.write_all(piece).is_err() {
                break;
            }
        }
        sealed.push(stream);
    }
    eventually("some are refused", || {
        counted(&reflector, Counted::RefusedMemory) >= 4
    });
    let grown = peak_of(before) << 10;
    let at_least = MEMORY as u64 / 4;
    assert!(grown > at_least, "{grown} bytes: nothing was held");
    assert!(grown < MEMORY as u64, "{grown} bytes of {MEMORY}");
    fs::remove_dir_all(&folder).expect("ours");
}
