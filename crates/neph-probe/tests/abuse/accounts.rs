//! The reflector's counters against the kernel's: nothing that arrived is missing from them.

use super::*;
use crate::support::{Net, is_root, skip};

const AT: &str = "127.0.0.1:8080";

/// A counter of `/proc/net/snmp` in the reflector's namespace.
fn of_the_kernel(net: &Net, protocol: &str, name: &str) -> u64 {
    let text = net.run("here", &["cat", "/proc/net/snmp"]);
    let prefix = format!("{protocol}: ");
    let mut rows = text.lines().filter_map(|line| line.strip_prefix(&prefix));
    let (names, values) = (rows.next().expect("names"), rows.next().expect("values"));
    let at = names.split(' ').position(|name_text| name_text == name);
    let value = values.split(' ').nth(at.expect("the kernel counts it"));
    value.expect("a value").parse().expect("a number")
}

/// Datagrams of every kind: answered, malformed, repeated, from a port of servers.
fn send_datagrams() {
    let socket = UdpSocket::bind("127.0.0.2:0").expect("bind");
    for seq in 0..50 {
        let request = numbered_request(seq, Auth::Open, 44);
        socket.send_to(&request, AT).expect("sent");
        socket.send_to(&request[..20], AT).expect("sent");
    }
    for _ in 0..50 {
        let request = numbered_request(7, Auth::Open, 44);
        socket.send_to(&request, AT).expect("sent");
    }
    let resolver = UdpSocket::bind("127.0.0.3:53").expect("root may");
    for seq in 0..50 {
        let request = numbered_request(seq, Auth::Open, 44);
        resolver.send_to(&request, AT).expect("sent");
    }
}

#[test]
fn every_connection_and_every_datagram_is_counted_once() {
    if !is_root() {
        return skip("counted once", "namespaces need root");
    }
    let net = Net::new("accounts", &["here"]);
    let spec = ReflectorSpec {
        caps: CAPS,
        ..ReflectorSpec::at(AT.parse().expect("an address"))
    };
    let reflector = start_in(&spec, &net.placement("here"));
    let connections = net.within("here", || {
        send_datagrams();
        // One address has a share of 8.
        let connect = |_| TcpStream::connect(AT).expect("connect");
        (0..20).map(connect).collect::<Vec<_>>()
    });
    let of = |counter| counted(&reflector, counter);
    eventually("all is read", || {
        of(Counted::Datagrams) >= 200
            && of(Counted::Connections) + of(Counted::RefusedConnections) >= 20
    });
    drop(connections);
    eventually("each datagram has its end", || {
        let ends = of(Counted::AnsweredDatagrams) + of(Counted::RefusedDatagrams);
        ends + of(Counted::UnsentDatagrams) == of(Counted::Datagrams)
    });
    assert_eq!(of(Counted::Connections), 8);
    assert_eq!(of(Counted::RefusedConnections), 12);
    let accepted = of_the_kernel(&net, "Tcp", "PassiveOpens");
    assert_eq!(accepted, 20);
    // The replies wait at the asker's socket, which read none.
    assert_eq!(
        of(Counted::Datagrams),
        of_the_kernel(&net, "Udp", "InDatagrams")
    );
    assert_eq!(of(Counted::DroppedByKernel), 0);
    assert_eq!(of(Counted::RefusedMalformed), 50);
    assert_eq!(of(Counted::RefusedPorts), 50);
    assert!(of(Counted::RefusedRepeats) > 0);
    assert!(of(Counted::AnsweredDatagrams) >= 50);
}
