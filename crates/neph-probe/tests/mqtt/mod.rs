//! MQTT over TCP and TLS: against mosquitto, and against servers that reply what they should not.

mod broker;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use neph_model::{Answer, Message, Outcome, Span, Stop, Tally};
use neph_probe::{Flow, FlowSpec, Report};
use neph_sys::clock;

use crate::loopback::short_flow;
use crate::support::serve_tcp;

/// What a flow measured, and what it said.
fn measure(spec: FlowSpec) -> (Vec<Message>, Tally, Vec<String>) {
    let flow = Flow::start(spec, Stop::new()).expect("a thread");
    let (mut messages, mut event_texts, mut tally) = (Vec::new(), Vec::new(), Tally::default());
    for report in flow.reports() {
        match report {
            Report::Message(message) => messages.push(message),
            Report::Ended(ended) => tally = ended,
            Report::Event { text, .. } => event_texts.push(text),
            Report::Reply(_) | Report::Opened { .. } | Report::Tcp { .. } | Report::Anchor(_) => {}
        }
    }
    flow.join().expect("the flow ran");
    (messages, tally, event_texts)
}

const CONNACK: [u8; 4] = [0x20, 2, 0, 0];
const PINGRESP: [u8; 2] = [0xd0, 0];

/// Reads a packet of at most 127 bytes.
fn packet(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = [0; 2];
    stream.read_exact(&mut head)?;
    let mut body = vec![0; usize::from(head[1])];
    stream.read_exact(&mut body)?;
    Ok([&head[..], &body].concat())
}

#[test]
fn mqtt_packets_in_pieces_are_reassembled() {
    let address = serve_tcp(|stream| {
        packet(stream)?;
        for byte in CONNACK {
            stream.write_all(&[byte])?;
        }
        while packet(stream)? == [0xc0, 0] {
            for byte in PINGRESP {
                stream.write_all(&[byte])?;
                clock::nap(Duration::from_millis(1));
            }
        }
        Ok(())
    });
    let (messages, tally, event_texts) = measure(short_flow(&format!("mqtt://{address}"), 20));
    assert_eq!((tally.replies, tally.lost), (20, 0), "{event_texts:?}");
    assert!(messages.iter().all(|message| message.answer.is_none()));
}

/// Each ping is answered 40 ms later, while the next ones are due every 5 ms.
#[test]
fn a_late_reply_is_matched_to_its_ping_on_its_connection() {
    let address = serve_tcp(|stream| {
        packet(stream)?;
        stream.write_all(&CONNACK)?;
        while packet(stream)? == [0xc0, 0] {
            clock::nap(Duration::from_millis(40));
            stream.write_all(&PINGRESP)?;
        }
        Ok(())
    });
    let (messages, tally, event_texts) = measure(short_flow(&format!("mqtt://{address}"), 30));
    assert_eq!(tally.replies, 30, "{event_texts:?}");
    for message in &messages {
        let service = message.ledger().expect("replied to").service_time();
        assert!(service >= Span::from_millis(40), "{service}");
    }
    let latest = messages.iter().map(|m| m.connection).max();
    assert!(latest >= Some(3), "one at a time on each: {latest:?}");
}

#[test]
fn a_peer_that_does_not_speak_mqtt_is_reported_with_the_reason() {
    for (address, why) in [
        (
            serve_tcp(|stream| stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
            "begins with 0x48",
        ),
        (
            serve_tcp(|stream| stream.write_all(&[0x20, 2, 1, 0])),
            "malformed MQTT packet",
        ),
        (
            serve_tcp(|stream| stream.write_all(&PINGRESP)),
            "PINGRESP before CONNACK",
        ),
        (
            serve_tcp(|stream| packet(stream).map(drop)),
            "before the protocol's opening was done",
        ),
    ] {
        let (messages, tally, event_texts) = measure(short_flow(&format!("mqtt://{address}"), 3));
        assert_eq!(
            (tally.replies, tally.failed),
            (0, 3),
            "{why}: {event_texts:?}"
        );
        assert!(messages.iter().all(|m| m.outcome == Outcome::Failed));
        assert!(
            event_texts.iter().any(|text| text.contains(why)),
            "{why}: {event_texts:?}"
        );
    }
}

#[test]
fn an_unsolicited_mqtt_publish_ends_the_connection() {
    let address = serve_tcp(|stream| {
        packet(stream)?;
        stream.write_all(&CONNACK)?;
        packet(stream)?;
        stream.write_all(&[0x30, 3, 0, 1, b'a'])?;
        // Until the client leaves.
        packet(stream).map(drop)
    });
    let (_, tally, event_texts) = measure(short_flow(&format!("mqtt://{address}"), 3));
    assert_eq!((tally.replies, tally.lost), (0, 3), "{event_texts:?}");
    assert!(
        event_texts
            .iter()
            .any(|text| text.contains("begins with 0x30")),
        "{event_texts:?}"
    );
}

#[test]
fn a_connack_that_refuses_is_the_answer_of_each_message() {
    let address = serve_tcp(|stream| {
        packet(stream)?;
        stream.write_all(&[0x20, 2, 0, 3])
    });
    let (messages, tally, event_texts) = measure(short_flow(&format!("mqtt://{address}"), 5));
    assert_eq!((tally.replies, tally.failed), (0, 5), "{event_texts:?}");
    let refused = Answer::from_name("mqtt-connack-3");
    assert!(
        messages.iter().all(|message| message.answer == refused),
        "{messages:?}"
    );
    let sentence = "the broker refused the connection: MQTT CONNACK code 3 (server unavailable)";
    assert!(
        event_texts.iter().any(|text| text == sentence),
        "{event_texts:?}"
    );
}
