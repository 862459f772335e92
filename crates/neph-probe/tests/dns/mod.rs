//! DNS over UDP and TCP: against dnsmasq, and against servers that reply what they should not.

mod resolver;

use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};

use neph_model::{Answer, Outcome};

use crate::loopback::{measure, short_flow};
use crate::support::{serve_tcp, serve_udp};

/// A query's place of the number, of the flags and of the first label.
const FLAGS: usize = 2;
const QUESTIONS: usize = 5;
const LABEL: usize = 12;

/// `query` as its response, with this response code.
fn response(query: &[u8], rcode: u8) -> Vec<u8> {
    let mut response = query.to_vec();
    response[FLAGS] = 0x81;
    response[FLAGS + 1] = 0x80 | rcode;
    response
}

/// What no client may believe, made of the true response.
fn lies(query: &[u8]) -> Vec<Vec<u8>> {
    let truth = response(query, 0);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut lie = truth.clone();
        change(&mut lie);
        lie
    };
    vec![
        Vec::new(),
        vec![0xff; 40],
        query.to_vec(),
        changed(&|lie| lie.truncate(LABEL - 1)),
        changed(&|lie| lie.truncate(LABEL + 4)),
        changed(&|lie| lie[LABEL + 1] = b'x'),
        changed(&|lie| *lie.last_mut().expect("a class") = 3),
        changed(&|lie| lie[QUESTIONS] = 0),
        changed(&|lie| lie[QUESTIONS] = 2),
        // A name that points at itself.
        changed(&|lie| lie.splice(LABEL.., [0xc0, 12, 0, 1, 0, 1]).for_each(drop)),
    ]
}

fn count_of(messages: &[neph_model::Message], name: &str) -> usize {
    let answer = Answer::from_name(name);
    assert!(answer.is_some(), "{name}");
    messages.iter().filter(|m| m.answer == answer).count()
}

#[test]
fn only_the_response_to_the_very_query_is_believed_and_a_second_one_is_a_duplicate() {
    let address = serve_udp(|query| {
        let mut responses = lies(query);
        responses.push(response(query, 2));
        responses.push(response(query, 2));
        responses
    });
    let (messages, tally) = measure(short_flow(&format!("dns://{address}/example.org"), 20));
    assert_eq!((tally.messages, tally.replies, tally.lost), (20, 20, 0));
    assert_eq!(tally.duplicates, 20);
    assert_eq!(count_of(&messages, "dns-servfail"), 20);
}

#[test]
fn lies_alone_leave_every_query_without_a_reply() {
    let address = serve_udp(lies);
    let (messages, tally) = measure(short_flow(&format!("dns://{address}/example.org"), 10));
    assert_eq!((tally.replies, tally.lost), (0, 10));
    assert!(
        messages
            .iter()
            .all(|m| m.outcome == Outcome::Lost && m.answer.is_none())
    );
}

/// Queries that the server takes on a connection before it ends it, as servers do.
const QUERIES: usize = 5;

/// Responds to each query behind lies, a few bytes at a time.
fn serve(stream: &mut TcpStream) -> io::Result<()> {
    for _ in 0..QUERIES {
        let mut len = [0; 2];
        stream.read_exact(&mut len)?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(len))];
        stream.read_exact(&mut query)?;
        let mut framed = Vec::new();
        for message in lies(&query).into_iter().chain([response(&query, 3)]) {
            let len = u16::try_from(message.len()).expect("short");
            framed.extend(len.to_be_bytes());
            framed.extend(message);
        }
        for part in framed.chunks(100) {
            stream.write_all(part)?;
        }
    }
    Ok(())
}

#[test]
fn over_tcp_a_connection_that_the_server_ends_costs_no_query() {
    let address = serve_tcp(serve);
    let (messages, tally) = measure(short_flow(&format!("dns-tcp://{address}/example.org"), 20));
    assert_eq!((tally.replies, tally.lost, tally.failed), (20, 0, 0));
    assert_eq!(count_of(&messages, "dns-nxdomain"), 20);
    let latest = messages.iter().map(|m| m.connection).max();
    assert!(
        latest >= Some(3),
        "20 queries, 5 on each connection: {latest:?}"
    );
}

#[test]
fn a_closed_dns_port_is_an_error_with_its_reason() {
    let socket = UdpSocket::bind("127.86.53.1:0").expect("loopback has a free port");
    let address = socket.local_addr().expect("bound");
    drop(socket);
    let (messages, tally) = measure(short_flow(&format!("dns://{address}/example.org"), 5));
    assert_eq!((tally.replies, tally.errors), (0, 5));
    assert_eq!(count_of(&messages, "icmp-port-unreachable"), 5);
}
