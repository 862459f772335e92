use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use neph_model::{ByteSize, ExperimentOrder, Permit, Prepared, Warning};

use super::*;
use crate::executor::tests::{carry_out, order, reflector};
use crate::flows::main_flow;
use crate::{LabAccess, LinkCounters, LocalExecutor};

/// Takes one connection, reads a question, and sends `answer`, if any, until the peer ends.
fn third_party_server(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut question = [0; 1024];
        let _ = stream.read(&mut question);
        let _ = stream.write_all(answer.as_bytes());
        let _ = stream.read_to_end(&mut Vec::new());
    });
    address
}

/// A port without a listener.
fn closed_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

fn prepared(order: &ExperimentOrder) -> Result<Prepared, String> {
    prepared_by(&mut LocalExecutor::new(), order)
}

fn prepared_by(executor: &mut LocalExecutor, order: &ExperimentOrder) -> Result<Prepared, String> {
    let mut ran = carry_out(executor, std::slice::from_ref(order), &|_| true);
    ran.prepared.remove(0).map_err(|error| error.to_string())
}

const ANSWER: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

#[test]
fn an_experiment_without_a_reachable_reflector_fails_with_a_reason() {
    for scheme in ["ws", "http", "tcp"] {
        let address = closed_address();
        let error =
            prepared(&order(&format!("{scheme}://{address}"))).expect_err("no server there");
        assert!(
            error.contains("identify the server") && error.contains(&address.to_string()),
            "{error}"
        );
        assert!(error.contains("refused"), "{error}");
    }
    // A STAMP reflector of another vendor listens on UDP alone.
    let udp = prepared(&order(&format!("udp://{}", closed_address())));
    assert!(!udp.expect("it runs").flows[0].reflector);
}

#[test]
fn a_syn_flow_runs_although_its_reflector_is_not_identified() {
    let local_reflector = reflector();
    let mut order = order(&format!("syn://{}", local_reflector.address()));
    order.scenario.interval = neph_model::Span::from_secs(1);
    order.reflector = true;
    assert!(!prepared(&order).expect("it runs").flows[0].reflector);
}

#[test]
fn reflectors_and_third_party_servers_are_distinguished() {
    let local_reflector = reflector();
    let ready =
        prepared(&order(&format!("ws://{}", local_reflector.address()))).expect("it answers");
    assert!(ready.flows[0].reflector);
    let ready =
        prepared(&order(&format!("ws://{}", third_party_server(ANSWER)))).expect("it answers");
    assert!(!ready.flows[0].reflector);
}

#[test]
fn a_third_party_server_in_place_of_a_reflector_is_not_measured() {
    for scheme in ["ws", "http", "tcp", "udp"] {
        let mut order = order(&format!("{scheme}://{}", third_party_server(ANSWER)));
        order.reflector = true;
        let error = prepared(&order).expect_err("the reflector is gone");
        assert!(
            error.ends_with("where a reflector of this campaign should be"),
            "{error}"
        );
    }
}

/// A lab whose reflector should be there.
#[derive(Debug)]
struct LocalReflectorLab(SocketAddr);

impl LabAccess for LocalReflectorLab {
    fn placement(&self, _: &str) -> Option<neph_probe::Placement> {
        None
    }
    fn enter(&mut self, _: Option<&str>) -> Result<(), String> {
        Ok(())
    }
    fn reflects(&self, address: SocketAddr) -> bool {
        address == self.0
    }
    fn cue(&self) {}
    fn stress(&mut self, _: &[neph_model::SiteLoad]) -> Result<crate::LoadResults, String> {
        Ok(crate::LoadResults::default())
    }
    fn links(&self) -> Vec<LinkCounters> {
        Vec::new()
    }
    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }
}

#[test]
fn the_labs_own_reflector_must_answer() {
    let address = third_party_server(ANSWER);
    let mut executor = LocalExecutor::in_lab(Box::new(LocalReflectorLab(address)));
    let ready = prepared_by(&mut executor, &order(&format!("http://{address}")));
    assert!(ready.is_err(), "{ready:?}");
    let address = third_party_server(ANSWER);
    let mut executor = LocalExecutor::in_lab(Box::new(LocalReflectorLab(closed_address())));
    let ready = prepared_by(&mut executor, &order(&format!("http://{address}")));
    ready.expect("others may be strangers");
}

/// The flow towards a third-party server.
fn flow(url: &str, request: usize, response: usize) -> FlowSpec {
    let mut order = order(url);
    order.scenario.request_size = ByteSize(request as u64);
    order.scenario.response_size = ByteSize(response as u64);
    order.scenario.interval = neph_model::Span::from_secs(1);
    main_flow(&order, None, &Permit::ANYTHING).expect("an address needs no resolver")
}

#[test]
fn sizes_that_third_party_servers_cannot_apply_are_flagged() {
    let flagged =
        |url: &str, request, response| sizes_warning(&flow(url, request, response)).is_some();
    assert!(!flagged("ws://127.0.0.1:1", 125, 125));
    assert!(flagged("ws://127.0.0.1:1", 126, 126));
    assert!(flagged("ws://127.0.0.1:1", 64, 125));
    assert!(flagged("http://127.0.0.1:1", 64, 64));
    assert!(flagged("tcp://127.0.0.1:1", 64, 64));
    assert!(!flagged("udp://127.0.0.1:1", 1400, 1400));
    assert!(!flagged("icmp://127.0.0.1", 1400, 1400));
    assert!(
        !flagged("syn://127.0.0.1:1", 64, 64),
        "a SYN has no size to give"
    );
    let mut measured_flow = flow("http://127.0.0.1:1", 10_000, 1024);
    assert_eq!(
        sizes_warning(&measured_flow),
        Some(Warning::SizesNotApplied {
            request: ByteSize(10_000),
            response: ByteSize(1024),
        })
    );
    measured_flow.reflector = true;
    assert_eq!(sizes_warning(&measured_flow), None);
}
