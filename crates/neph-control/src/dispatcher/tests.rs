//! When the controller sends a message again, and when it gives up an agent.

use neph_agent::remote::{FileLength, Hello, PROTOCOL, ResultFile};
use neph_model::{ByteSize, CaptureOrder, Captured, OrderResult};

use super::*;

fn capture() -> Order {
    Order::Capture(CaptureOrder {
        duration: Some(Span::from_secs(60)),
        limit: Some(ByteSize(1 << 20)),
        ..CaptureOrder::of("eth0".to_owned(), 96, ByteSize(2 << 20))
    })
}

fn captured() -> OrderState {
    OrderState::Ended(Box::new(Ended {
        prepared: None,
        result: Ok(OrderResult::Captured(Captured {
            kernel: "k".to_owned(),
            packets: 3,
            lost: 0,
            listened: None,
            fault: None,
            clock: Vec::new(),
        })),
        files: vec![FileLength {
            file: ResultFile::Capture,
            bytes: 3,
        }],
    }))
}

/// A dispatcher in a folder, with a capture submitted to an agent.
fn with_capture() -> (tempfile::TempDir, Dispatcher, AgentName, OrderId) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut dispatcher = Dispatcher::open(folder.path(), Signer::without_key()).expect("a folder");
    let agent: AgentName = "ams".parse().expect("a name");
    let id = dispatcher
        .submit(agent.clone(), capture())
        .expect("it is kept");
    (folder, dispatcher, agent, id)
}

/// Messages that are due.
fn due(dispatcher: &mut Dispatcher, now: Span, wall: Wall) -> Result<Vec<ToAgent>, InboxError> {
    let mut messages = Vec::new();
    dispatcher.send_due(now, wall, |_, message| messages.push(message))?;
    Ok(messages)
}

#[test]
fn a_cancelled_order_may_fetch_files_for_long_but_not_be_silent() {
    let (_folder, mut dispatcher, agent, id) = with_capture();
    let wall = Wall::from_unix_nanos(1_000_000_000_000_000_000);
    let at = Span::from_secs;
    let state = |state| FromAgent::State { id, state };
    due(&mut dispatcher, at(0), wall).expect("sent");
    let running = OrderState::Running { prepared: None };
    dispatcher
        .process_message(&agent, state(running))
        .expect("it runs");
    dispatcher.cancel(id);
    due(&mut dispatcher, at(10), wall).expect("cancelled");
    dispatcher
        .process_message(&agent, state(captured()))
        .expect("it has ended");
    for from in 0..2 {
        let now = at(30 + 20 * from);
        due(&mut dispatcher, now, wall).expect("asked for");
        assert_eq!(dispatcher.overdue_agent(now), None, "after part {from}");
        let part = Part {
            id,
            file: 0,
            from: from.unsigned_abs(),
            bytes: vec![7],
        };
        let done = dispatcher
            .process_message(&agent, FromAgent::Part(part))
            .expect("taken");
        assert!(done.is_empty(), "{done:?}");
    }
    due(&mut dispatcher, at(60), wall).expect("asked for");
    due(&mut dispatcher, at(91), wall).expect("asked for again");
    assert_eq!(dispatcher.overdue_agent(at(91)), Some(&agent));
}

#[test]
fn an_unanswered_order_is_repeated_with_backoff_and_immediately_after_reconnect() {
    let (_folder, mut dispatcher, agent, _) = with_capture();
    let wall = Wall::from_unix_nanos(1_000_000_000_000_000_000);
    let is_sent = |dispatcher: &mut Dispatcher, second: &i64| {
        let messages = due(dispatcher, Span::from_secs(*second), wall);
        !messages.expect("the disk works").is_empty()
    };
    let sent: Vec<i64> = (0..60)
        .filter(|second| is_sent(&mut dispatcher, second))
        .collect();
    assert_eq!(sent, [0, 2, 6, 14, 30, 46]);
    let hello = FromAgent::Hello(Hello {
        protocol: PROTOCOL,
        version: "1".to_owned(),
        holds: Vec::new(),
        results: 0,
        policy: BTreeMap::new(),
        labels: neph_model::Labels::default(),
    });
    dispatcher.process_message(&agent, hello).expect("taken");
    let sent: Vec<i64> = (60..64)
        .filter(|second| is_sent(&mut dispatcher, second))
        .collect();
    assert_eq!(sent, [60, 62]);
}

#[test]
fn an_order_cancelled_before_its_answer_is_cancelled_as_soon_as_it_runs() {
    let (_folder, mut dispatcher, agent, id) = with_capture();
    let (now, wall) = (
        Span::from_secs(1),
        Wall::from_unix_nanos(1_000_000_000_000_000_000),
    );
    due(&mut dispatcher, Span::ZERO, wall).expect("sent");
    dispatcher.cancel(id);
    due(&mut dispatcher, now, wall).expect("sent again");
    let state = OrderState::Running { prepared: None };
    dispatcher
        .process_message(&agent, FromAgent::State { id, state })
        .expect("it runs");
    let messages = due(&mut dispatcher, now, wall).expect("cancelled");
    let is_cancel = |message: &ToAgent| matches!(message, ToAgent::Cancel { .. });
    assert!(messages.iter().any(is_cancel), "{messages:?}");
}
