//! `neph clock` and peers that are not ours, or do not answer for a while.

use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::thread;

use neph_sys::clock;
use neph_wire::stamp::{Auth, ErrorEstimate, Format, ReflectorPacket, Timestamp, decode_request};
use serde_json::Value;

use crate::clocks::{SECOND, document, number};
use crate::neph::neph;

/// A STAMP reflector of somebody else (RFC 8762): no marks, its clock on the wall is `ahead`. It does
/// not answer these requests.
fn start_third_party_reflector(clock_offset: i64, unanswered: Range<u32>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = socket.local_addr().expect("an address");
    thread::spawn(move || {
        let now = || {
            Timestamp::from_unix(clock::wall().0 + clock_offset, Format::Ntp).expect("in this era")
        };
        let mut buffer = [0; 2_048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let receive = now();
            let request = decode_request(&buffer[..length], Auth::Open)
                .expect("STAMP")
                .packet;
            if unanswered.contains(&request.seq) {
                continue;
            }
            let reply = ReflectorPacket {
                seq: request.seq,
                timestamp: now(),
                error: ErrorEstimate::from_nanos(1_000, Format::Ntp),
                ssid: request.ssid,
                receive,
                sender_seq: request.seq,
                sender_timestamp: request.timestamp,
                sender_error: request.error,
                sender_ttl: 64,
            };
            let mut bytes = Vec::new();
            reply.encode(Auth::Open, &mut bytes);
            // Whoever went away needs no answer.
            let _ = socket.send_to(&bytes, from);
        }
    });
    address
}

#[test]
fn a_third_party_reflector_reports_its_wall_clock() {
    let clock_offset = 90 * SECOND;
    let peer = format!("udp://{}", start_third_party_reflector(clock_offset, 0..0));
    let some = ["clock", &peer, "-c", "20", "-i", "10ms"];
    let ran = neph(some.into_iter().chain(["--format", "json"]));
    assert_eq!(ran.status, 0, "{}", ran.err);
    let wall = &document(&ran.out)["summary"]["wall"];
    let error = number(&wall["offset_ns"]) - clock_offset;
    assert!(error.abs() <= number(&wall["bound_ns"]), "{error}: {wall}");
    let text = neph(some);
    assert!(text.out.contains("wall clocks now"), "{}", text.out);
    assert!(!text.out.contains("raw clocks  "), "{}", text.out);
}

#[test]
fn exchanges_without_an_answer_hold_up_no_line_about_those_behind_them() {
    let peer = format!("udp://{}", start_third_party_reflector(0, 5..10));
    let some = ["clock", &peer, "-c", "60", "-i", "50ms", "--every", "200ms"];
    let ran = neph(some.into_iter().chain(["--format", "ndjson"]));
    assert_eq!(ran.status, 0, "{}", ran.err);
    let documents: Vec<Value> = ran.out.lines().map(document).collect();
    let (summary, rows) = documents.split_last().expect("a summary");
    assert_eq!((number(&summary["n"]), number(&summary["lost"])), (55, 5));
    let rows = rows.iter().filter(|row| row["kind"] == "offset");
    let rows: Vec<(i64, bool)> = rows
        .map(|row| (number(&row["n"]), row["no_new_exchanges"] == true))
        .collect();
    // The lost ones are so after five seconds, when all others were sent and answered long ago.
    let later_rows = rows
        .iter()
        .filter(|(n, has_no_new_exchanges)| *n > 5 && !has_no_new_exchanges);
    assert!(later_rows.count() >= 2, "{rows:?}");
    for pair in rows.windows(2) {
        assert_eq!(pair[1].0 == pair[0].0, pair[1].1, "{rows:?}");
    }
    assert!(
        rows.iter()
            .any(|(_, has_no_new_exchanges)| *has_no_new_exchanges),
        "{rows:?}"
    );
}
