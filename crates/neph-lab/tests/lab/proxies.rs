//! Proxies that end connections, as real programs: a request reaches an endpoint through them, and
//! through a chain of two.

#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use neph_lab::{Lab, LabError, Topology, UpOptions};
use neph_sys::netns::with_namespace;
use neph_sys::process;
use neph_text::Source;

use crate::support::{lab_lock, lab_name, leftovers};

/// A client, two proxies and an endpoint around a router.
fn lab(name: &str, balancers: &str) -> Option<Lab> {
    let text = format!(
        "version = 1\nnetwork = \"10.84.0.0/24\"\n\
         [[generate]]\nshape = \"star\"\nnames = [\"client\", \"edge\", \"side\", \"end\"]\n{balancers}"
    );
    let topology = Topology::parse(&Source::new("proxies", text)).expect("fine");
    match Lab::up(&topology, &UpOptions::with_name(name)) {
        Ok(lab) => Some(lab),
        // Where a program is not installed the sentence names the package; CI has them.
        Err(LabError::Program(error)) if std::env::var("CI").as_deref() != Ok("true") => {
            println!("SKIP proxies: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn socket_address(lab: &Lab, site: &str, port: u16) -> SocketAddr {
    SocketAddr::new(lab.addresses(site).expect("there")[0], port)
}

/// Answers one request at the endpoint with the address that it came from and the first line.
fn serve(lab: &Lab) {
    let address = socket_address(lab, "end", 8080);
    let bind = || TcpListener::bind(address).expect("bind");
    let listener = with_namespace(&lab.namespace("end").expect("there"), bind).expect("enter");
    thread::spawn(move || {
        for stream in listener.incoming().take(8) {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 2000];
            let length = stream.read(&mut request).unwrap_or(0);
            let text = String::from_utf8_lossy(&request[..length]);
            let line = text.lines().next().unwrap_or_default();
            let peer = stream.peer_addr().expect("connected").ip();
            let body = format!("{peer} {line}");
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ";
            let _ = write!(stream, "{head}{}\r\n\r\n{body}", body.len());
        }
    });
}

const REQUEST: &str = "GET /path HTTP/1.1\r\nHost: end\r\nConnection: close\r\n\r\n";

fn send_request(lab: &Lab, address: SocketAddr) -> String {
    let answer = with_namespace(&lab.namespace("client").expect("there"), || {
        let mut stream =
            TcpStream::connect_timeout(&address, Duration::from_secs(5)).expect("connect");
        stream.write_all(REQUEST.as_bytes()).expect("ask");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    });
    answer.expect("enter")
}

#[test]
fn a_request_reaches_the_endpoint_from_the_proxys_address() {
    let test = "a_request_reaches_the_endpoint_from_the_proxys_address";
    let Some(_lock) = lab_lock(test) else { return };
    for (kind, letter) in [("haproxy", 'h'), ("nginx", 'i')] {
        let name = lab_name(letter);
        let balancer = format!(
            "[[balancer]]\nname = \"front\"\nkind = \"{kind}\"\nsite = \"edge\"\nlisten = 80\n\
             to = \"end:8080\"\n"
        );
        let Some(lab) = lab(&name, &balancer) else {
            continue;
        };
        serve(&lab);
        let answer = send_request(&lab, socket_address(&lab, "edge", 80));
        let expected_answer = format!("{} GET /path", socket_address(&lab, "edge", 0).ip());
        assert!(answer.contains(&expected_answer), "{kind}: {answer}");
        lab.down().expect("down");
        assert!(leftovers(&name).is_empty());
    }
}

/// A mesh's gateway that ends TLS and a sidecar, as two programs.
#[test]
fn a_chain_of_two_ends_tls_at_the_first() {
    let Some(_lock) = lab_lock("a_chain_of_two_ends_tls_at_the_first") else {
        return;
    };
    let name = lab_name('j');
    let balancers = "[[balancer]]\nname = \"sidecar\"\nkind = \"haproxy\"\nsite = \"side\"\n\
                     listen = 15006\nto = \"end:8080\"\n\
                     [[balancer]]\nname = \"gateway\"\nkind = \"nginx\"\nsite = \"edge\"\n\
                     listen = 443\ntls = true\nto = \"side:15006\"\n";
    let Some(lab) = lab(&name, balancers) else {
        return;
    };
    serve(&lab);
    let gateway = socket_address(&lab, "edge", 443).to_string();
    let answer = with_namespace(&lab.namespace("client").expect("there"), || {
        let mut client = process::command("openssl")
            .args(["s_client", "-quiet", "-connect", &gateway])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("openssl");
        let mut input = client.stdin.take().expect("piped");
        input.write_all(REQUEST.as_bytes()).expect("ask");
        let mut answer = String::new();
        let mut output = client.stdout.take().expect("piped");
        output.read_to_string(&mut answer).expect("an answer");
        drop(input);
        client.wait().expect("ended");
        answer
    });
    let answer = answer.expect("enter");
    let expected_answer = format!("{} GET /path", socket_address(&lab, "side", 0).ip());
    assert!(answer.contains(&expected_answer), "{answer}");
    lab.down().expect("down");
    assert!(leftovers(&name).is_empty());
}
