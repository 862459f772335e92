use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::deadline::{Deadline, wait_until};

use super::*;
use crate::clock;

fn stamps(socket: BorrowedFd<'_>, wanted: usize) -> Vec<SendStamp> {
    let deadline = Deadline::after(Duration::from_secs(2));
    let mut observed = Vec::new();
    while observed.len() < wanted && !deadline.has_passed() {
        match take_notice(socket).expect("the error queue can be read") {
            Some(Notice::Stamp(stamp)) => observed.push(stamp),
            Some(Notice::Other) => {}
            None => std::thread::yield_now(),
        }
    }
    observed
}

/// Enables receive timestamps, and waits until they arrive: the kernel enables them with a delay.
fn stamping() -> KeepAwake {
    let awake = KeepAwake::new().expect("a socket");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    enable(socket.as_fd(), Carrier::Datagrams).expect("stamps");
    let is_stamping = wait_until(Duration::from_secs(2), || {
        let own_address = socket.local_addr().expect("bound");
        socket.send_to(b"hello", own_address).expect("send");
        let received = receive(socket.as_fd(), &mut [0; 16]).expect("receive");
        received.stamp.is_some()
    });
    assert!(is_stamping, "received datagrams are stamped");
    awake
}

#[test]
fn a_datagram_is_stamped_when_queued_sent_and_received() {
    let _awake = stamping();
    let sender = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("bind");
    sender
        .connect(receiver.local_addr().expect("bound"))
        .expect("connect");
    enable(sender.as_fd(), Carrier::Datagrams).expect("stamps");
    enable(receiver.as_fd(), Carrier::Datagrams).expect("stamps");
    let before = clock::wall();
    for _ in 0..3 {
        sender.send(b"hello").expect("send");
    }
    let mut buffer = [0; 16];
    let metadata = receive(receiver.as_fd(), &mut buffer).expect("receive");
    let after = clock::wall();
    let at = metadata.stamp.expect("received datagrams are stamped");
    assert!(before < at && at < after);
    assert_eq!(metadata.from, sender.local_addr().ok());
    let observed = stamps(sender.as_fd(), 6);
    let sent: Vec<u32> = observed
        .iter()
        .filter(|s| s.point == Point::Sent)
        .map(|s| s.id)
        .collect();
    assert_eq!(sent, [0, 1, 2]);
    assert_eq!(
        observed.iter().filter(|s| s.point == Point::Queued).count(),
        3
    );
}

#[test]
fn restarted_timestamp_ids_begin_at_zero() {
    let _awake = KeepAwake::new().expect("a socket");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("bind");
    sender
        .connect(receiver.local_addr().expect("bound"))
        .expect("connect");
    enable(sender.as_fd(), Carrier::Datagrams).expect("stamps");
    let mut ids = Vec::new();
    for _ in 0..2 {
        for _ in 0..2 {
            sender.send(b"hello").expect("send");
        }
        let observed = stamps(sender.as_fd(), 4);
        ids.extend(
            observed
                .iter()
                .filter(|s| s.point == Point::Sent)
                .map(|s| s.id),
        );
        restart_count(sender.as_fd(), Carrier::Datagrams).expect("stamps");
    }
    assert_eq!(ids, [0, 1, 0, 1]);
}

#[test]
fn a_stream_write_is_stamped_at_its_last_byte_with_the_connections_state() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let mut client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connect");
    let (mut server, _) = listener.accept().expect("accept");
    enable(client.as_fd(), Carrier::Stream).expect("stamps");
    let message = [7; 1000];
    assert_eq!(
        send(client.as_fd(), &message, Ending::Message).expect("send"),
        1000
    );
    assert_eq!(
        send(client.as_fd(), &message[..24], Ending::Message).expect("send"),
        24
    );
    server.read_exact(&mut [0; 1024]).expect("read");
    server.write_all(b"x").expect("write");
    client.read_exact(&mut [0]).expect("read");
    let observed = stamps(client.as_fd(), 6);
    for point in [Point::Queued, Point::Sent, Point::Acked] {
        let ids: Vec<u32> = observed
            .iter()
            .filter(|s| s.point == point)
            .map(|s| s.id)
            .collect();
        assert_eq!(ids, [999, 1023], "{point:?}");
    }
    let acked = observed
        .iter()
        .find(|s| s.point == Point::Acked)
        .expect("acknowledged");
    assert!(acked.tcp.expect("streams tell their state").cwnd > 0);
}

/// What the kernel allows to wait on this socket: twice what was requested.
fn room(socket: &UdpSocket) -> i32 {
    let (mut value, mut len) = (0_i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: getsockopt writes at most `len` bytes to `reported`, which has that size.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUF,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    assert_eq!(outcome, 0);
    value
}

/// Takes all capabilities from this thread, and from no other.
fn renounce() {
    const VERSION_3: u32 = 0x2008_0522;
    let (header, none) = ([VERSION_3, 0], [0_u32; 6]);
    // SAFETY: capset reads a header of two words and two sets of three, alive for the call.
    let outcome = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    assert_eq!(outcome, 0, "{}", io::Error::last_os_error());
}

#[test]
fn rmem_max_limits_an_unprivileged_buffer() {
    let Ok(max) = std::fs::read_to_string("/proc/sys/net/core/rmem_max") else {
        println!("SKIP rmem_max_limits_an_unprivileged_buffer: net.core.rmem_max is not told here");
        return;
    };
    let max: i32 = max.trim().parse().expect("a number");
    let thread = std::thread::spawn(move || {
        renounce();
        for requested in [max.saturating_add(1 << 20), max / 2] {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
            make_room(socket.as_fd(), requested).expect("none known");
            assert_eq!(room(&socket), 2 * requested.min(max));
        }
    });
    thread.join().expect("as claimed");
}
