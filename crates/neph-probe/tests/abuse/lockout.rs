//! Peers that take every connection: nobody is locked out.

use super::*;
use crate::support::{Net, is_root, skip};

const TIGHT: ReflectorCaps = ReflectorCaps {
    connections: 16,
    connections_per_peer: 8,
    idle: Span::from_secs(300),
    ..CAPS
};

/// Whether a connection is served: a hello is answered.
fn is_served(mut stream: &TcpStream) -> bool {
    let written = stream.write_all(&hello(Mode::Echo, 100));
    written.is_ok() && stream.read(&mut [0; 16]).is_ok_and(|count| count == 16)
}

#[test]
fn two_addresses_that_hold_all_connections_lock_out_no_peer() {
    let reflector = with_caps(TIGHT);
    let mut streams = Vec::new();
    for last in [104, 105].repeat(8) {
        let stream = connect(&reflector, last);
        assert!(is_served(&stream));
        streams.push(stream);
    }
    let others: Vec<TcpStream> = (110..114).map(|last| connect(&reflector, last)).collect();
    assert!(
        others.iter().all(is_served),
        "a newcomer of its own address"
    );
    assert_eq!(counted(&reflector, Counted::Replaced), 4);
    let port = reflector.address().port();
    let (stop, behaving) = behave(&format!("ws://127.0.0.1:{port}"));
    eventually("the flow that behaves is answered", || {
        counted(&reflector, Counted::Replies) > 20
    });
    stop.set();
    let tally = behaving.join().expect("no panic");
    assert!(tally.messages - tally.replies <= 1, "{tally:?}");
}

/// Connects from one address to another, within a namespace.
fn connect_from(from: &str, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV6, Type::STREAM, None).expect("a socket");
    let from: SocketAddr = format!("[{from}]:0").parse().expect("an address");
    socket.bind(&SockAddr::from(from)).expect("bind");
    socket.connect(&SockAddr::from(to)).expect("connect");
    let stream = TcpStream::from(socket);
    let patience = Some(Duration::from_secs(4));
    stream.set_read_timeout(patience).expect("a limit");
    stream
}

#[test]
fn the_many_addresses_of_one_ipv6_network_have_one_share() {
    if !is_root() {
        return skip("one share", "addresses need root");
    }
    let net = Net::new("lockout", &["here"]);
    // Every address of the prefix is this namespace's own.
    net.ip("here", "-6 route add local 2001:db8::/32 dev lo");
    net.set("here", "net/ipv6/ip_nonlocal_bind", "1");
    let spec = ReflectorSpec {
        caps: TIGHT,
        ..ReflectorSpec::at("[::1]:8080".parse().expect("an address"))
    };
    let reflector = start_in(&spec, &net.placement("here"));
    let to = reflector.address();
    net.within("here", || {
        let served = |from: String| {
            let stream = connect_from(&from, to);
            is_served(&stream).then_some(stream)
        };
        let hosts = |network: &str| -> Vec<TcpStream> {
            let host = |number| served(format!("2001:db8:{network}::{number}"));
            (1..=20).filter_map(host).collect()
        };
        let of_one_64 = hosts("1:100");
        assert_eq!(of_one_64.len(), 8);
        let of_the_same_56 = hosts("1:101");
        assert_eq!(of_the_same_56.len(), 4, "a half more");
        let of_another = hosts("2:100");
        // Four places are free; then the greediest network gives some up.
        assert!(of_another.len() >= 7, "{}", of_another.len());
    });
}
