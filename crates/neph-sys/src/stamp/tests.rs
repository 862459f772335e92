use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::*;
use crate::clock;

fn stamps(socket: BorrowedFd<'_>, wanted: usize) -> Vec<SendStamp> {
    let deadline = Instant::now() + Duration::from_secs(2);
    let mut seen = Vec::new();
    while seen.len() < wanted && Instant::now() < deadline {
        match take_notice(socket).expect("the error queue can be read") {
            Some(Notice::Stamp(stamp)) => seen.push(stamp),
            Some(Notice::Other) => {}
            None => std::thread::yield_now(),
        }
    }
    seen
}

#[test]
fn a_datagram_is_stamped_when_queued_sent_and_received() {
    let _awake = KeepAwake::new().expect("a socket");
    std::thread::sleep(Duration::from_millis(20));
    let ours = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let theirs = UdpSocket::bind("127.0.0.1:0").expect("bind");
    ours.connect(theirs.local_addr().expect("bound"))
        .expect("connect");
    enable(ours.as_fd(), Carrier::Datagrams).expect("stamps");
    enable(theirs.as_fd(), Carrier::Datagrams).expect("stamps");
    let before = clock::wall();
    for _ in 0..3 {
        ours.send(b"hello").expect("send");
    }
    let mut buffer = [0; 16];
    let received = receive(theirs.as_fd(), &mut buffer).expect("receive");
    let after = clock::wall();
    let at = received.stamp.expect("received datagrams are stamped");
    assert!(before < at && at < after);
    assert_eq!(received.from, ours.local_addr().ok());
    let seen = stamps(ours.as_fd(), 6);
    let sent: Vec<u32> = seen
        .iter()
        .filter(|s| s.point == Point::Sent)
        .map(|s| s.id)
        .collect();
    assert_eq!(sent, [0, 1, 2]);
    assert_eq!(seen.iter().filter(|s| s.point == Point::Queued).count(), 3);
}

#[test]
fn a_count_that_is_restarted_begins_at_zero() {
    let _awake = KeepAwake::new().expect("a socket");
    let ours = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let theirs = UdpSocket::bind("127.0.0.1:0").expect("bind");
    ours.connect(theirs.local_addr().expect("bound"))
        .expect("connect");
    enable(ours.as_fd(), Carrier::Datagrams).expect("stamps");
    let mut ids = Vec::new();
    for _ in 0..2 {
        for _ in 0..2 {
            ours.send(b"hello").expect("send");
        }
        let seen = stamps(ours.as_fd(), 4);
        ids.extend(seen.iter().filter(|s| s.point == Point::Sent).map(|s| s.id));
        restart_count(ours.as_fd(), Carrier::Datagrams).expect("stamps");
    }
    assert_eq!(ids, [0, 1, 0, 1]);
}

#[test]
fn a_stream_write_is_stamped_at_its_last_byte_with_the_connections_state() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let mut ours = TcpStream::connect(listener.local_addr().expect("bound")).expect("connect");
    let (mut theirs, _) = listener.accept().expect("accept");
    enable(ours.as_fd(), Carrier::Stream).expect("stamps");
    let message = [7; 1000];
    assert_eq!(
        send(ours.as_fd(), &message, Ending::Message).expect("send"),
        1000
    );
    assert_eq!(
        send(ours.as_fd(), &message[..24], Ending::Message).expect("send"),
        24
    );
    theirs.read_exact(&mut [0; 1024]).expect("read");
    theirs.write_all(b"x").expect("write");
    ours.read_exact(&mut [0]).expect("read");
    let seen = stamps(ours.as_fd(), 6);
    for point in [Point::Queued, Point::Sent, Point::Acked] {
        let ids: Vec<u32> = seen
            .iter()
            .filter(|s| s.point == point)
            .map(|s| s.id)
            .collect();
        assert_eq!(ids, [999, 1023], "{point:?}");
    }
    let acked = seen
        .iter()
        .find(|s| s.point == Point::Acked)
        .expect("acknowledged");
    assert!(acked.tcp.expect("streams tell their state").cwnd > 0);
}
