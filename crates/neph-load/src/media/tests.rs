//! Tests over loopback with both ends in this process.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use neph_model::{BitRate, Span, Stop};
use neph_sys::deadline::wait_until;

use super::*;

fn spec(caps: ServerCaps) -> ServerSpec {
    ServerSpec {
        listen: ([127, 0, 0, 1], 0).into(),
        caps,
        trace: Trace::animation().expect("a trace"),
    }
}

const CAPS: ServerCaps = ServerCaps {
    streams: 8,
    rate: None,
    duration: Span::from_secs(60),
};

/// Stops a server, also if the work panics.
struct StopOnDrop<'a>(&'a Stop);
impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Events of a server.
type Events = Mutex<Vec<MediaServed>>;

/// Runs `work` with a server.
fn with_server<T>(caps: ServerCaps, work: impl FnOnce(SocketAddr, &Events) -> T) -> T {
    let server = Server::bind(&spec(caps)).expect("a port");
    let (stop, events) = (Stop::new(), Events::default());
    let push = |event| events.lock().expect("no panic").push(event);
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(&stop, &push));
        let stopped = StopOnDrop(&stop);
        let worked = work(server.address(), &events);
        drop(stopped);
        serving.join().expect("no panic").expect("it serves");
        worked
    })
}

fn media_request(server: SocketAddr, streams: u16, duration: Span) -> MediaRequest {
    MediaRequest {
        url: format!("rtsp://{server}/video"),
        streams,
        duration,
        buffer: Span::from_millis(200),
        start: None,
    }
}

#[test]
fn all_streams_are_set_up_before_any_begins_and_complete() {
    with_server(CAPS, |server, events| {
        let mut seconds = Vec::new();
        let media_request = media_request(server, 3, Span::from_secs(3));
        let measured = measure(server, &media_request, &Stop::new(), &mut |second| {
            seconds.push(second.clone());
        });
        let measured = measured.expect("it is measured");
        assert_eq!((measured.fault(), measured.is_stopped), (None, false));
        assert_eq!(measured.streams.len(), 3);
        for stream in &measured.streams {
            let statistics = &stream.statistics;
            assert_eq!(stream.encoding.as_deref(), Some("X-NEPH-FRAMES"));
            assert_eq!(
                (statistics.lost, statistics.duplicates),
                (0, 0),
                "{statistics:?}"
            );
            // On a busy host a packet may be late and count in the next second.
            let rates = stream
                .seconds
                .iter()
                .map(|stream_second| stream_second.bytes * 8 / 1_000);
            let is_near = |(rate, due): (u64, u64)| rate.abs_diff(due) <= 60;
            assert!(
                rates.clone().zip([110, 845, 845]).all(is_near),
                "{:?}",
                stream.seconds
            );
            assert_eq!(rates.len(), 3);
            assert!(statistics.frames.in_time >= 68, "{statistics:?}");
            assert!(statistics.network_jitter.is_some());
        }
        assert_eq!(seconds.len(), 3);
        assert!(seconds[1].rate().bits_per_second().abs_diff(2_535_000) <= 180_000);
        let served = || events.lock().expect("no panic").clone();
        assert!(
            wait_until(Duration::from_secs(10), || served().len() == 6),
            "{:?}",
            served()
        );
        let is_begin = |event: &MediaServed| matches!(event, MediaServed::Began { streams: 3, .. });
        let (began, ended): (Vec<_>, Vec<_>) = served().into_iter().partition(is_begin);
        assert_eq!(
            (began.len(), ended.len()),
            (3, 3),
            "all were set up when the first began"
        );
        for event in ended {
            assert!(
                matches!(event, MediaServed::Ended { fault: None, .. }),
                "{event:?}"
            );
        }
    });
}

#[test]
fn streams_above_the_caps_are_refused_and_ended_ones_free_their_place() {
    let caps = ServerCaps { streams: 2, ..CAPS };
    with_server(caps, |server, _| {
        let second = Span::from_secs(1);
        let many = media_request(server, 3, second);
        let refused = measure(server, &many, &Stop::new(), &mut |_| {}).expect_err("2 places");
        assert!(
            refused
                .to_string()
                .contains("453 Not Enough Bandwidth; ask for fewer"),
            "{refused}"
        );
        let two = media_request(server, 2, second);
        let mut last = None;
        // The server soon detects that the connections of the first client are closed.
        assert!(
            wait_until(Duration::from_secs(10), || {
                last = Some(measure(server, &two, &Stop::new(), &mut |_| {}));
                matches!(last, Some(Ok(_)))
            }),
            "{last:?}"
        );
        let repeated = measure(server, &two, &Stop::new(), &mut |_| {});
        repeated.expect("the places are free");
    });
    let caps = ServerCaps {
        rate: Some(BitRate(1_000_000)),
        ..CAPS
    };
    with_server(caps, |server, _| {
        let two = media_request(server, 2, Span::from_secs(1));
        let refused = measure(server, &two, &Stop::new(), &mut |_| {});
        assert!(refused.is_err(), "{refused:?}");
    });
}

#[test]
fn a_stop_keeps_measurements_and_the_duration_cap_ends_a_stream() {
    let caps = ServerCaps {
        duration: Span::from_millis(1_500),
        ..CAPS
    };
    with_server(caps, |server, events| {
        let stop = Stop::new();
        let long = media_request(server, 1, Span::from_secs(3_600));
        let measured = measure(server, &long, &stop, &mut |_| stop.set());
        let measured = measured.expect("the results so far are kept");
        assert!(measured.is_stopped);
        assert!(measured.streams[0].statistics.packets > 20, "{measured:?}");
        let measured = measure(server, &long, &Stop::new(), &mut |_| {});
        let measured = measured.expect("the results so far are kept");
        let fault = measured.fault().expect("it broke off");
        assert!(fault.contains("closed the RTSP connection"), "{fault}");
        let events = events.lock().expect("no panic");
        let is_capped = |event: &MediaServed| matches!(event, MediaServed::Ended { fault: Some(fault), .. } if fault.contains("grants"));
        assert!(events.iter().any(is_capped), "{events:?}");
    });
}

/// Sends requests on a connection; returns it and the responses so far.
fn raw(server: SocketAddr, requests: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(server).expect("it listens");
    stream.write_all(requests.as_bytes()).expect("it is sent");
    let mut text = String::new();
    let requested = requests.matches("CSeq").count();
    let mut buffer = [0; 4096];
    while text.matches("CSeq").count() < requested {
        let count = stream.read(&mut buffer).expect("it answers");
        assert!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    (stream, text)
}

/// Plays a stream to this port over a plain connection.
fn played(server: SocketAddr, port: u16) -> TcpStream {
    let (mut stream, text) = raw(
        server,
        &format!(
            "SETUP rtsp://{server}/video/track0 RTSP/1.0\r\nCSeq: 1\r\n\
             Transport: RTP/AVP;unicast;client_port={port}\r\n\r\n"
        ),
    );
    let session = text.lines().find_map(|line| line.strip_prefix("Session: "));
    let session = session.and_then(|session| session.split(';').next());
    let session = session.unwrap_or_else(|| panic!("{text}"));
    let play =
        format!("PLAY rtsp://{server}/video RTSP/1.0\r\nCSeq: 2\r\nSession: {session}\r\n\r\n");
    stream.write_all(play.as_bytes()).expect("it is sent");
    stream
}

/// Waits until a stream ended with this fault.
fn ended_with(events: &Events, expected: &str) {
    let is_it = |event: &MediaServed| matches!(event, MediaServed::Ended { fault: Some(fault), .. } if fault.contains(expected));
    let found = wait_until(Duration::from_secs(20), || {
        events.lock().expect("no panic").iter().any(is_it)
    });
    assert!(found, "{expected}: {:?}", events.lock().expect("no panic"));
}

#[test]
fn the_stream_of_a_disconnected_client_ends_within_seconds() {
    with_server(CAPS, |server, events| {
        let here = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let port = here.local_addr().expect("bound").port();
        // No requests, but an open port: the session is over after 10 s.
        let silent = played(server, port);
        let mut buffer = [0; 2048];
        let length = here.recv(&mut buffer).expect("RTP comes");
        assert!(length > 12);
        // Its connection closes.
        drop(played(server, port));
        ended_with(events, "closed its connection");
        // Its port closes.
        let closed_socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let port = closed_socket.local_addr().expect("bound").port();
        drop(closed_socket);
        let without_port = played(server, port);
        ended_with(events, "UDP port is closed");
        ended_with(events, "no request and no report for 10 s");
        drop([silent, without_port]);
    });
}

#[test]
fn malformed_requests_do_not_harm_the_media_server() {
    with_server(CAPS, |server, _| {
        for malformed in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"$\x00\x00\x04abcd",
            b"\xff\xfe\n\n\n",
            b"PLAY * RTSP/1.0\r\nCSeq: 1\r\nContent-Length: 70000\r\n\r\n",
        ] {
            let mut stream = TcpStream::connect(server).expect("it listens");
            stream.write_all(malformed).expect("it is sent");
            let mut rest = Vec::new();
            // It is closed, with or without a reset.
            let _ = stream.read_to_end(&mut rest);
        }
        let measured = measure(
            server,
            &media_request(server, 1, Span::from_secs(1)),
            &Stop::new(),
            &mut |_| {},
        );
        measured.expect("it is measured");
    });
}
