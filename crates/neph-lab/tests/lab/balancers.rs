//! Boxes in the path: who is reached through them, and what each side sees of the other.

#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use neph_lab::{Lab, LabError, Topology, UpOptions};
use neph_sys::netns::with_namespace;
use neph_text::Source;

use crate::support::{lab_lock, lab_name, leftovers};

const CONNECTIONS: usize = 40;

/// A client, a balancer and two endpoints around a router.
fn lab(name: &str, balancer: &str) -> Option<Lab> {
    let text = format!(
        "version = 1\nnetwork = \"10.79.0.0/24\"\n\
         [[generate]]\nshape = \"star\"\nnames = [\"client\", \"lb\", \"one\", \"two\"]\n\
         [[balancer]]\nname = \"front\"\nkind = \"l4\"\nsite = \"lb\"\nlisten = 80\n\
         to = [\"one:8080\", \"two:8080\"]\n{balancer}\n"
    );
    let topology = Topology::parse(&Source::new("l4", text)).expect("fine");
    match Lab::up(&topology, &UpOptions::with_name(name)) {
        Ok(lab) => Some(lab),
        // Where nft is not installed the sentence names the package; CI has it.
        Err(LabError::Program(error)) if std::env::var("CI").as_deref() != Ok("true") => {
            assert!(error.to_string().contains("nftables"), "{error}");
            println!("SKIP balancers: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Answers each connection at a site's port 8080 with the site's name and what it sees.
fn serve(lab: &Lab, site: &'static str) {
    let address = lab.addresses(site).expect("there")[0];
    let listener = with_namespace(&lab.namespace(site).expect("there"), || {
        TcpListener::bind((address, 8080)).expect("bind")
    });
    let listener = listener.expect("enter");
    thread::spawn(move || {
        for _ in 0..CONNECTIONS {
            let Ok((mut stream, peer)) = listener.accept() else {
                return;
            };
            let _ = write!(stream, "{site} {}", peer.ip());
        }
    });
}

/// Which endpoint answered how often, and whom it saw.
fn count_answers(lab: &Lab, balancer_address: SocketAddr) -> BTreeMap<String, usize> {
    let answers = with_namespace(&lab.namespace("client").expect("there"), || {
        let mut answers = BTreeMap::new();
        for _ in 0..CONNECTIONS {
            let timeout = Duration::from_secs(5);
            let mut stream =
                TcpStream::connect_timeout(&balancer_address, timeout).expect("balanced");
            assert_eq!(stream.peer_addr().expect("connected"), balancer_address);
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer");
            *answers.entry(answer).or_insert(0) += 1;
        }
        answers
    });
    answers.expect("enter")
}

fn balancer_address(lab: &Lab) -> SocketAddr {
    SocketAddr::new(lab.addresses("lb").expect("there")[0], 80)
}

#[test]
fn connections_are_balanced_at_random_behind_one_address() {
    let test = "connections_are_balanced_at_random_behind_one_address";
    let Some(_lock) = lab_lock(test) else {
        return;
    };
    let name = lab_name('p');
    let Some(lab) = lab(&name, "") else { return };
    serve(&lab, "one");
    serve(&lab, "two");
    let answers = count_answers(&lab, balancer_address(&lab));
    let lb: IpAddr = balancer_address(&lab).ip();
    let sites: Vec<&str> = answers.keys().map(String::as_str).collect();
    assert_eq!(
        sites,
        [format!("one {lb}"), format!("two {lb}")],
        "both, and from the balancer"
    );
    // One in 10^6 runs has less than 6 of 40 at one of two.
    assert!(answers.values().all(|times| *times >= 5), "{answers:?}");
    lab.down().expect("down");
    assert_eq!(leftovers(&name), [].into());
}

#[test]
fn connections_of_one_source_stay_at_one_endpoint_if_configured() {
    let test = "connections_of_one_source_stay_at_one_endpoint_if_configured";
    let Some(_lock) = lab_lock(test) else {
        return;
    };
    let name = lab_name('q');
    let Some(lab) = lab(&name, "spread = \"source\"") else {
        return;
    };
    serve(&lab, "one");
    serve(&lab, "two");
    let answers = count_answers(&lab, balancer_address(&lab));
    assert_eq!(answers.len(), 1, "{answers:?}");
    lab.down().expect("down");
}
