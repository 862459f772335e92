//! Small transfers on chosen source ports, over loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::channel;

use neph_load::{TRANSFER_SIZE, TransferSpec};
use neph_model::{SourcePortOutcome, SourcePortTransfer, Span, Stop, Target};
use neph_probe::{DiscoveryOptions, ProbeError, Resolve, SmallTransfer, Trust};

use crate::loopback::reflector;

/// What is requested, and from where.
struct Task {
    target: Target,
    spec: TransferSpec,
}

fn spec(url: &str, source_ports: Vec<u16>) -> Task {
    let target = Target::parse(url).expect("a good target");
    let spec = TransferSpec {
        address: target.addresses(None).expect("an address")[0],
        source_ports,
        repetitions: 3,
        interval: Span::from_millis(2),
        timeout: Span::from_secs(2),
        site: None,
    };
    Task { target, spec }
}

fn transfers(task: &Task, stop: &Stop) -> Result<Vec<SourcePortTransfer>, ProbeError> {
    let options = DiscoveryOptions {
        tls_version: None,
        trust: Trust::Public,
        patience: task.spec.timeout,
        site: None,
    };
    let small = SmallTransfer::at(&task.target, task.spec.address, TRANSFER_SIZE, &options)?;
    let made = neph_load::run_transfers(&task.spec, &|| small.exchange(), stop);
    Ok(made.expect("no site to enter"))
}

/// Ports that nobody has.
fn free(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"))
        .collect();
    let port = |listener: &TcpListener| listener.local_addr().expect("bound").port();
    listeners.iter().map(port).collect()
}

#[test]
fn ports_take_turns_and_each_transfer_has_its_port_again() {
    let reflector = reflector(Span::ZERO);
    for scheme in ["http", "tcp"] {
        let ports = free(4);
        let url = format!("{scheme}://{}", reflector.address());
        let made = transfers(&spec(&url, ports.clone()), &Stop::new()).expect("a reflector");
        let order: Vec<(u32, u16)> = made
            .iter()
            .map(|transfer| (transfer.pass, transfer.source_port))
            .collect();
        let expected: Vec<(u32, u16)> = (0..3)
            .flat_map(|pass| ports.iter().map(move |port| (pass, *port)))
            .collect();
        assert_eq!(order, expected, "{scheme}");
        for transfer in &made {
            let (total_time, connect) = (transfer.total(), transfer.connect());
            assert!(
                total_time > connect && connect > Some(Span::ZERO),
                "{transfer:?}"
            );
        }
        let gaps = made.windows(2).map(|two| two[1].begun - two[0].begun);
        assert!(gaps.min() >= Some(Span::from_millis(2)));
    }
}

#[test]
fn each_transfer_uses_its_source_port_and_receives_the_file() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let (port_sender, ports_seen) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let peer = stream.peer_addr().map_or(0, |peer: SocketAddr| peer.port());
            let mut request = [0; 1024];
            let count = stream.read(&mut request).unwrap_or(0);
            if request[..count].starts_with(b"GET /file ") {
                let sent = port_sender.send(peer);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n");
                let _ = sent.map(|()| stream.write_all(&[7; 3000]));
            } else {
                let _ = stream.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    let ports = free(2);
    let made = transfers(
        &spec(&format!("http://{address}/file"), ports.clone()),
        &Stop::new(),
    );
    let made = made.expect("a server");
    assert!(
        made.iter().all(|transfer| transfer.total().is_some()),
        "{made:?}"
    );
    let received_ports: Vec<u16> = ports_seen.try_iter().collect();
    assert_eq!(received_ports, [&ports[..], &ports, &ports].concat());
}

#[test]
fn invalid_targets_fail_and_a_busy_port_fails_alone() {
    let reflector = reflector(Span::ZERO);
    let address = reflector.address();
    let message_of = |url: &str| {
        let made = transfers(&spec(url, vec![1]), &Stop::new());
        made.expect_err(url).to_string()
    };
    assert!(message_of(&format!("ws://{address}")).contains("only http:// and tcp://"));
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = silent.local_addr().expect("bound");
    drop(silent);
    assert!(message_of(&format!("tcp://{closed}")).contains("refused"));

    let taken = TcpListener::bind("0.0.0.0:0").expect("a port");
    let taken_port = taken.local_addr().expect("bound").port();
    let mut ports = free(1);
    ports.push(taken_port);
    let url = format!("http://{address}");
    let made = transfers(&spec(&url, ports), &Stop::new()).expect("a reflector");
    for transfer in made {
        let failed =
            matches!(&transfer.outcome, SourcePortOutcome::Failed(why) if why.contains("port"));
        assert_eq!(failed, transfer.source_port == taken_port, "{transfer:?}");
    }
}

#[test]
fn a_stop_before_the_first_transfer_returns_no_transfers() {
    let reflector = reflector(Span::ZERO);
    let stop = Stop::new();
    stop.set();
    let url = format!("http://{}", reflector.address());
    let made = transfers(&spec(&url, free(2)), &stop).expect("a reflector");
    assert!(made.is_empty());
}
