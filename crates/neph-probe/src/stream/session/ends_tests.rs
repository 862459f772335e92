//! How a peer's end of the stream decides messages, in every state of a connection.

use neph_model::{Answer, EventKind, Message, Outcome, Span, Stage};

use super::*;
use crate::codec::ConnectionEnd;
use crate::sim::{at, spec};

const MS: i64 = 1_000_000;

/// A session with one connection that stands, its first message due at 10 ms.
fn lasting_session(target: &str) -> Session {
    let mut spec = spec(target, 5, Span::from_millis(10));
    spec.reflector = false;
    let mut session = Session::new(&spec, None);
    session.warm_up(at(0));
    let number = session.take_dial().expect("the first connection");
    session.dial_started(number, at(0));
    session.connected(number, at(MS), &mut || at(MS));
    session.begin(at(10 * MS));
    session
}

fn write_all(session: &mut Session, number: u32) -> Vec<u8> {
    let mut written = Vec::new();
    while let Some((bytes, _)) = session.to_write(number) {
        let count = bytes.len();
        written.extend_from_slice(bytes);
        session.wrote(number, count);
    }
    written
}

fn receive(session: &mut Session, number: u32, text: &str, millis: i64) {
    let now = at(millis * MS);
    session.received(number, text.as_bytes(), None, &mut || now);
}

/// Sends the message that is due at this moment; over which connection, if one stands.
fn send(session: &mut Session, millis: i64) -> Option<u32> {
    let now = at(millis * MS);
    let number = session.send(now, &mut || now);
    if let Some(number) = number {
        write_all(session, number);
    }
    number
}

/// Brings up the connection that the session wants.
fn dialled(session: &mut Session, millis: i64) -> u32 {
    let number = session.take_dial().expect("a new connection");
    let now = at(millis * MS);
    session.dial_started(number, now);
    session.connected(number, now, &mut || now);
    write_all(session, number);
    number
}

fn ends(session: &mut Session) -> Vec<(Outcome, Option<Answer>)> {
    take_remaining(session)
        .iter()
        .map(|m| (m.outcome, m.answer))
        .collect()
}

fn take_remaining(session: &mut Session) -> Vec<Message> {
    std::iter::from_fn(|| session.take_rest()).collect()
}

fn kinds(session: &mut Session) -> Vec<EventKind> {
    let events = session.take_notes().filter_map(|note| match note {
        Note::Event(kind, _) => Some(kind),
        Note::Reply(_) => None,
    });
    events.collect()
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_request_on_a_closed_idle_connection_is_retried_on_a_new_one() {
    for reset in [false, true] {
        let mut session = lasting_session("http://h:9");
        assert_eq!(send(&mut session, 10), Some(0));
        receive(&mut session, 0, OK, 12);
        assert_eq!(send(&mut session, 20), Some(0));
        if reset {
            session.connection_failed(
                0,
                ConnectionEnd::new("reset", Some(Answer::Reset)),
                at(21 * MS),
            );
        } else {
            session.ended(0, at(21 * MS));
        }
        let number = dialled(&mut session, 23);
        receive(&mut session, number, OK, 25);
        assert_eq!(kinds(&mut session), [EventKind::RequestRetried]);
        let messages = take_remaining(&mut session);
        assert!(messages.iter().all(|m| m.outcome == Outcome::Reply));
        let ledger = messages[1].ledger().expect("a reply");
        assert_eq!(messages[1].connection, 1);
        assert!(
            ledger.stage(Stage::Connect).is_some(),
            "its ledger has the new connection"
        );
        assert_eq!(
            ledger.response_time(),
            Span::from_millis(5),
            "from when it was due"
        );
    }
}

#[test]
fn a_request_on_a_fresh_closed_connection_is_lost_and_not_retried() {
    let mut session = lasting_session("http://h:9");
    assert_eq!(send(&mut session, 10), Some(0));
    session.ended(0, at(11 * MS));
    assert_eq!(session.take_dial(), None);
    assert_eq!(ends(&mut session), [(Outcome::Lost, Some(Answer::Closed))]);
}

#[test]
fn a_truncated_reply_is_its_own_error_and_a_reply_delimited_by_close_is_complete() {
    let cut = [
        "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nContent-Le",
    ];
    for part in cut {
        let mut session = lasting_session("http://h:9");
        send(&mut session, 10);
        receive(&mut session, 0, part, 11);
        session.ended(0, at(12 * MS));
        assert_eq!(
            ends(&mut session),
            [(Outcome::Error, Some(Answer::Truncated))],
            "{part}"
        );
    }
    let mut session = lasting_session("http://h:9");
    send(&mut session, 10);
    receive(&mut session, 0, "HTTP/1.0 200 OK\r\n\r\nwhole", 11);
    session.ended(0, at(12 * MS));
    assert_eq!(
        ends(&mut session),
        [(Outcome::Reply, Some(Answer::HttpStatus(200)))]
    );
}

#[test]
fn a_status_408_ends_an_idle_connection_and_answers_only_the_first_request() {
    let timeout = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let mut idle = lasting_session("http://h:9");
    send(&mut idle, 10);
    receive(&mut idle, 0, OK, 12);
    receive(&mut idle, 0, timeout, 15);
    assert_eq!(send(&mut idle, 20), None, "a new connection is dialled");
    let number = dialled(&mut idle, 21);
    receive(&mut idle, number, OK, 22);
    assert_eq!(idle.tally().replies, 2);

    let mut crossed = lasting_session("http://h:9");
    send(&mut crossed, 10);
    receive(&mut crossed, 0, OK, 12);
    send(&mut crossed, 20);
    receive(&mut crossed, 0, timeout, 21);
    let number = dialled(&mut crossed, 22);
    receive(&mut crossed, number, OK, 23);
    assert_eq!(crossed.tally().replies, 2, "it crossed the request");

    let mut first = lasting_session("http://h:9");
    send(&mut first, 10);
    receive(&mut first, 0, timeout, 11);
    assert_eq!(
        ends(&mut first),
        [(Outcome::Error, Some(Answer::HttpStatus(408)))]
    );
}

#[test]
fn an_unexpected_http_status_is_an_error_with_its_status() {
    let mut session = lasting_session("http://h:9");
    for (millis, status) in [(10, 200), (20, 503), (30, 302), (40, 204)] {
        assert_eq!(send(&mut session, millis), Some(0));
        let text = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
        receive(&mut session, 0, &text, millis + 2);
    }
    let reported_ends = ends(&mut session);
    let expected = [
        (Outcome::Reply, 200),
        (Outcome::Error, 503),
        (Outcome::Error, 302),
        (Outcome::Reply, 204),
    ];
    assert_eq!(
        reported_ends,
        expected.map(|(end, status)| (end, Some(Answer::HttpStatus(status))))
    );
    let tally = *session.tally();
    assert_eq!((tally.replies, tally.errors, tally.messages), (2, 2, 4));
    assert_eq!(tally.without_response_time(), 2);
}

#[test]
fn a_websocket_close_is_reported_and_reconnects_back_off() {
    let mut session = lasting_session("ws://h:9");
    let request = String::from_utf8(write_all(&mut session, 0)).expect("a head");
    let upgraded = |request: &str| {
        let head = neph_wire::http::parse_request(request.as_bytes());
        let head = head.expect("a request").expect("whole");
        let key = neph_wire::ws::check_request(&head).expect("an upgrade");
        let mut response = Vec::new();
        neph_wire::ws::server_response(key, &mut response);
        String::from_utf8(response).expect("a head")
    };
    receive(&mut session, 0, &upgraded(&request), 5);
    assert_eq!(send(&mut session, 10), Some(0));
    let going_away = [0x88_u8, 2, 0x03, 0xe9];
    session.received(0, &going_away, None, &mut || at(11 * MS));
    let (end, answer) = (Outcome::Error, Some(Answer::WebSocketClose(1001)));
    assert_eq!(ends(&mut session), [(end, answer)]);
    // It upgrades and closes: half a success does not shorten the pause.
    let mut pauses = Vec::new();
    let mut now = at(11 * MS);
    for number in 1..=8 {
        let next_deadline = std::iter::repeat_with(|| session.next_deadline())
            .flatten()
            .next()
            .expect("it dials again");
        pauses.push((next_deadline - now).nanos() / MS);
        now = next_deadline;
        session.at_time(now);
        assert_eq!(session.take_dial(), Some(number));
        session.connected(number, now, &mut || now);
        let request = String::from_utf8(write_all(&mut session, number)).expect("a head");
        session.received(number, upgraded(&request).as_bytes(), None, &mut || now);
        session.received(number, &going_away, None, &mut || now);
    }
    assert_eq!(pauses, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
}

#[test]
fn a_connect_ends_at_establishment_however_late_the_process_reads_it() {
    let mut spec = spec("tcp://h:9", 1, Span::from_millis(10));
    spec.reflector = false;
    let mut session = Session::new(&spec, None);
    session.begin(at(10 * MS));
    session.send(at(10 * MS), &mut || at(10 * MS));
    let number = session.take_dial().expect("a connection");
    session.dial_started(number, at(11 * MS));
    session.connected(number, at(31 * MS), &mut || at(35 * MS));
    let messages = take_remaining(&mut session);
    let ledger = messages[0].ledger().expect("a reply");
    let entries: Vec<(String, Span)> = ledger
        .entries()
        .iter()
        .map(|entry| (entry.stages.to_string(), entry.time()))
        .collect();
    let expected = [("schedule lateness", 1), ("connect", 20)];
    assert_eq!(
        entries,
        expected.map(|(name, millis)| (name.to_owned(), Span::from_millis(millis)))
    );
}
