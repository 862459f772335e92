use neph_model::{Answer, Outcome, Span, Stage, SynAnswer};

use super::*;
use crate::codec::ConnectionEnd;
use crate::sim::{at, spec};

const MS: i64 = 1_000_000;

/// A session over HTTP with one idle connection, its first message due at 10 ms.
fn idle() -> Session {
    let mut session = Session::new(&spec("http://h:9", 3, Span::from_millis(10)), None);
    session.warm_up(at(0));
    let number = session.take_dial().expect("the first connection");
    session.dial_started(number, at(0));
    session.connected(number, at(MS), &mut || at(MS));
    assert!(session.is_warm());
    session.begin(at(10 * MS));
    session
}

fn reset() -> ConnectionEnd {
    ConnectionEnd::new("reset", Some(Answer::Reset))
}

fn refused() -> ConnectionEnd {
    ConnectionEnd::new("refused", Some(Answer::Syn(SynAnswer::Rst)))
}

/// Writes everything, as a socket that takes it.
fn write_all(session: &mut Session, number: u32) -> usize {
    let mut written = 0;
    while let Some((bytes, _)) = session.to_write(number) {
        let count = bytes.len();
        session.wrote(number, count);
        written += count;
    }
    written
}

fn reply(session: &mut Session, number: u32, head: &str, now: i64) {
    let text = format!("HTTP/1.1 200 OK\r\n{head}Content-Length: 2\r\n\r\nok");
    session.received(number, text.as_bytes(), None, &mut || at(now));
}

fn outcomes(session: &mut Session) -> Vec<Outcome> {
    let finished = std::iter::from_fn(|| session.take_rest());
    finished.map(|message| message.outcome).collect()
}

fn closing(session: &mut Session) -> Option<u32> {
    session.take_close().map(|closing| closing.number)
}

#[test]
fn an_idle_connection_closed_by_the_server_is_replaced_without_an_event() {
    let mut session = idle();
    session.ended(0, at(5 * MS));
    assert_eq!(session.take_notes().count(), 0);
    assert_eq!(session.send(at(10 * MS), &mut || at(10 * MS)), None);
    assert_eq!(session.take_dial(), Some(1));
    session.dial_started(1, at(10 * MS));
    session.connected(1, at(11 * MS), &mut || at(11 * MS));
    assert!(write_all(&mut session, 1) > 0);
    reply(&mut session, 1, "", 12 * MS);
    assert_eq!(session.tally().replies, 1);
}

#[test]
fn a_prepared_message_survives_the_close_of_its_connection() {
    let mut session = idle();
    session.prepare(at(9 * MS));
    assert_eq!(session.to_write(0), None, "it is held back");
    session.connection_failed(0, reset(), at(9 * MS));
    assert_eq!(session.send(at(10 * MS), &mut || at(10 * MS)), None);
    let number = session.take_dial().expect("a new connection");
    session.dial_started(number, at(10 * MS));
    session.connected(number, at(11 * MS), &mut || at(11 * MS));
    let total_bytes = write_all(&mut session, number);
    reply(&mut session, number, "", 12 * MS);
    assert_eq!((session.tally().messages, session.tally().replies), (1, 1));
    session.prepare(at(19 * MS));
    assert_eq!(session.send(at(20 * MS), &mut || at(20 * MS)), Some(number));
    assert_eq!(
        write_all(&mut session, number),
        total_bytes,
        "one request, not two"
    );
}

#[test]
fn a_connection_with_connection_close_carries_no_more_messages() {
    let mut session = idle();
    assert_eq!(session.send(at(10 * MS), &mut || at(10 * MS)), Some(0));
    write_all(&mut session, 0);
    reply(&mut session, 0, "Connection: close\r\n", 12 * MS);
    session.prepare(at(19 * MS));
    assert_eq!(
        session.send(at(20 * MS), &mut || at(20 * MS)),
        None,
        "not over the one that closes"
    );
    assert_eq!(
        (closing(&mut session), session.take_dial()),
        (Some(0), Some(1))
    );
    session.closed(0);
    session.connection_failed(1, refused(), at(21 * MS));
    assert_eq!(outcomes(&mut session), [Outcome::Reply, Outcome::Failed]);
}

#[test]
fn unsent_messages_fail_and_partly_sent_messages_are_lost() {
    let mut session = Session::new(&spec("tcp://h:9", 3, Span::from_millis(10)), None);
    session.warm_up(at(0));
    session.take_dial();
    session.connected(0, at(0), &mut || at(0));
    let mut granted = Vec::new();
    neph_wire::frame::HelloReply {
        status: neph_wire::frame::Status::Granted,
        reply_size: 100,
        max_request: 1_000,
    }
    .encode(&mut granted);
    write_all(&mut session, 0);
    session.received(0, &granted, None, &mut || at(MS));
    session.begin(at(10 * MS));
    for n in 1..=3 {
        assert_eq!(
            session.send(at(n * 10 * MS), &mut || at(n * 10 * MS)),
            Some(0)
        );
        if n == 1 {
            write_all(&mut session, 0);
        }
    }
    session.wrote(0, 1);
    session.connection_failed(0, reset(), at(40 * MS));
    let tally = *session.tally();
    assert_eq!((tally.lost, tally.failed, tally.messages), (2, 1, 3));
    let ends = outcomes(&mut session);
    assert_eq!(ends, [Outcome::Lost, Outcome::Lost, Outcome::Failed]);
    assert!(
        session
            .next_deadline()
            .is_some_and(|retry_at| retry_at > at(40 * MS)),
        "dials again"
    );
}

#[test]
fn a_connection_with_an_unanswered_request_is_closed() {
    let mut session = idle();
    session.send(at(10 * MS), &mut || at(10 * MS));
    write_all(&mut session, 0);
    session.at_time(at(10 * MS + 2_000 * MS));
    assert_eq!(session.tally().lost, 1);
    assert_eq!(closing(&mut session), None, "a late reply is still welcome");
    session.at_time(at(10 * MS + 4_000 * MS));
    assert_eq!(closing(&mut session), Some(0));
}

#[test]
fn message_encoding_time_is_no_kernel_queue_time() {
    let mut spec = spec("http://h:9", 1, Span::from_millis(10));
    spec.connection_use = crate::spec::ConnectionUse::PerMessage;
    let mut session = Session::new(&spec, None);
    session.begin(at(0));
    assert_eq!(session.send(at(0), &mut || at(0)), None);
    let number = session.take_dial().expect("a connection for the message");
    session.dial_started(number, at(0));
    let mut reading = MS;
    session.connected(number, at(MS), &mut || {
        reading += 5;
        at(reading)
    });
    assert!(write_all(&mut session, number) > 0);
    reply(&mut session, number, "", 2 * MS);
    let message = session.take_rest().expect("replied to");
    let ledger = message.ledger().expect("complete enough");
    assert_eq!(ledger.stage(Stage::Connect), Some(Span::from_millis(1)));
    assert!(ledger.stage(Stage::Compose) > Some(Span::ZERO));
}
