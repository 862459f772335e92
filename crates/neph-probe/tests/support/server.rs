//! Servers of a few lines, at loopback.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

/// Handles each connection in a thread of its own.
pub(crate) fn serve_tcp(handle: fn(&mut TcpStream) -> io::Result<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                stream.set_nodelay(true)?;
                handle(&mut stream)
            });
        }
    });
    address
}

/// Replies to each datagram with all that `reply` makes of it; ends after 5 s without one.
pub(crate) fn serve_udp(reply: fn(&[u8]) -> Vec<Vec<u8>>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = socket.local_addr().expect("bound");
    let patience = Some(Duration::from_secs(5));
    socket.set_read_timeout(patience).expect("it is positive");
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((count, peer)) = socket.recv_from(&mut buffer) {
            for datagram in reply(&buffer[..count]) {
                let _ = socket.send_to(&datagram, peer);
            }
        }
    });
    address
}
