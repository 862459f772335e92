use std::net::SocketAddr;

use neph_model::{
    AllowedTargets, Budgets, Message, Permit, ReflectorIdentity, ReflectorSpec, Span, Stage, Stop,
    Tally, Target,
};
use neph_probe::{
    ConnectionUse, DiscoveryOptions, Flow, FlowSpec, Priority, Reflector, Report, Resolve,
    Schedule, Trust, discover,
};

fn spec(think: Span) -> ReflectorSpec {
    ReflectorSpec {
        identity: Some(ReflectorIdentity::SelfSigned(vec!["localhost".to_owned()])),
        reply_delay: think,
        ..ReflectorSpec::at(SocketAddr::from(([127, 0, 0, 1], 0)))
    }
}

pub(crate) fn reflector(think: Span) -> Reflector {
    Reflector::start(&spec(think)).expect("loopback has a free port")
}

pub(crate) fn flow(url: &str, count: u64) -> FlowSpec {
    let target = Target::parse(url).expect("a good target");
    let address = target.addresses(None).expect("an address")[0];
    let options = DiscoveryOptions {
        tls_version: None,
        trust: Trust::AnyCertificate,
        patience: Span::from_secs(2),
        site: None,
    };
    let discovery = discover(&target, address, &options).expect("no namespace to enter");
    FlowSpec {
        schedule: Schedule {
            interval: Span::from_millis(5),
            count: Some(count),
            duration: None,
        },
        request_size: 200,
        response_size: 100,
        timeout: Span::from_secs(2),
        trust: Trust::AnyCertificate,
        spin: FlowSpec::SPIN,
        priority: Priority::Normal,
        reflector: discovery.reflector,
        ..FlowSpec::plain(target, address)
    }
}

/// A flow that waits half a second for each reply.
pub(crate) fn short_flow(url: &str, count: u64) -> FlowSpec {
    FlowSpec {
        timeout: Span::from_millis(500),
        ..flow(url, count)
    }
}

pub(crate) fn measure(spec: FlowSpec) -> (Vec<Message>, Tally) {
    let flow = Flow::start(spec, Stop::new()).expect("a thread");
    let mut messages = Vec::new();
    let mut tally = Tally::default();
    for report in flow.reports() {
        match report {
            Report::Message(message) => messages.push(message),
            Report::Ended(ended) => tally = ended,
            Report::Event { .. }
            | Report::Reply(_)
            | Report::Opened { .. }
            | Report::Tcp { .. }
            | Report::Anchor(_) => {}
        }
    }
    flow.join().expect("the flow ran");
    (messages, tally)
}

fn assert_sums(messages: &[Message]) {
    for message in messages {
        let ledger = message.ledger().expect("replied to");
        let sum: Span = ledger.entries().iter().map(neph_model::Entry::time).sum();
        assert_eq!(sum, ledger.response_time());
    }
}

#[test]
fn every_lasting_kind_reports_every_stage() {
    let reflector = reflector(Span::ZERO);
    let port = reflector.address().port();
    for scheme in ["ws", "wss", "tcp", "udp", "http", "https"] {
        let (messages, tally) = measure(flow(&format!("{scheme}://127.0.0.1:{port}/"), 30));
        assert_eq!((tally.messages, tally.replies), (30, 30), "{scheme}");
        assert_sums(&messages);
        let complete = messages
            .iter()
            .filter(|m| {
                m.ledger()
                    .is_some_and(|l| l.stage(Stage::Network).is_some())
            })
            .count();
        // On a busy host two replies are read at once, and the first has no receive stamp of its
        // own; every other mark is there whatever the load.
        assert!(complete >= 5, "{scheme}: {complete} of 30 are complete");
        for message in &messages {
            let marks = &message.marks;
            let has_timestamps = [marks.nic_tx.is_some(), marks.peer.app_rx.is_some()];
            assert_eq!(has_timestamps, [true; 2], "{scheme}: {marks:?}");
        }
    }
}

#[test]
fn a_connection_per_message_reports_connect_and_handshake() {
    let reflector = reflector(Span::ZERO);
    let port = reflector.address().port();
    for (scheme, secure) in [("http", false), ("https", true), ("ws", true)] {
        let mut spec = flow(&format!("{scheme}://127.0.0.1:{port}/"), 10);
        spec.connection_use = ConnectionUse::PerMessage;
        let (messages, tally) = measure(spec);
        assert_eq!(tally.replies, 10, "{scheme}");
        assert_sums(&messages);
        for message in &messages {
            let ledger = message.ledger().expect("replied to");
            assert!(ledger.stage(Stage::Connect).is_some(), "{scheme}");
            assert_eq!(ledger.stage(Stage::Handshake).is_some(), secure, "{scheme}");
        }
        // The kernel's stamp of a departure can come when the connection is over: then it is absent.
        let peer_send = |message: &Message| message.ledger()?.stage(Stage::PeerSend);
        assert!(
            messages.iter().any(|message| peer_send(message).is_some()),
            "{scheme}"
        );
    }
}

#[test]
fn the_servers_waiting_is_the_peer_applications() {
    let think = Span::from_millis(20);
    let reflector = reflector(think);
    let port = reflector.address().port();
    let mut spec = flow(&format!("ws://127.0.0.1:{port}"), 10);
    spec.schedule.interval = Span::from_millis(40);
    let (messages, _) = measure(spec);
    let waits = messages.iter().map(|message| {
        let ledger = message.ledger().expect("replied to");
        ledger.stage(Stage::PeerApp).expect("told")
    });
    let min_wait = waits.min().expect("ten messages");
    assert!(min_wait >= think, "{min_wait}");
    assert!(min_wait < think + Span::from_millis(5), "{min_wait}");
}

/// A schedule that no machine can keep falls behind for ever: replies are read and messages told
/// all the same, in order.
#[test]
fn an_impossible_schedule_still_reads_replies_and_reports() {
    let reflector = reflector(Span::ZERO);
    let port = reflector.address().port();
    for scheme in ["ws", "udp"] {
        let mut spec = flow(&format!("{scheme}://127.0.0.1:{port}"), 1);
        spec.schedule = Schedule {
            interval: Span::from_micros(1),
            count: None,
            duration: None,
        };
        let stop = Stop::new();
        let flow = Flow::start(spec, stop.clone()).expect("a thread");
        let (mut message_count, mut replies, mut tally) = (0_u64, 0_u64, Tally::default());
        let mut next = 0;
        for report in flow.reports() {
            match report {
                Report::Message(message) => {
                    // What is out when the flow is stopped has no outcome, and is left out.
                    assert!(message.seq.0 == next || stop.is_set() && message.seq.0 > next);
                    next = message.seq.0 + 1;
                    message_count += 1;
                    replies += u64::from(message.ledger().is_some());
                    // Of UDP many may be lost, where a busy machine lets the reflector wait.
                    if replies == 1_000 || message_count == 1_000_000 {
                        stop.set();
                    }
                }
                Report::Ended(ended) => tally = ended,
                Report::Event { .. }
                | Report::Reply(_)
                | Report::Opened { .. }
                | Report::Tcp { .. }
                | Report::Anchor(_) => {}
            }
        }
        flow.join().expect("the flow ran");
        assert_eq!(
            (message_count, replies),
            (tally.messages, tally.replies),
            "{scheme}"
        );
        assert!(replies >= 1_000, "{scheme}: {tally:?}");
    }
}

/// A site with several addresses: a prober hears only the one that it asked.
#[test]
fn a_wildcard_reflector_answers_from_the_queried_address() {
    for wildcard in ["0.0.0.0:0", "[::]:0"] {
        let mut spec = spec(Span::ZERO);
        spec.address = wildcard.parse().expect("an address");
        let Ok(reflector) = Reflector::start(&spec) else {
            assert_eq!(wildcard, "[::]:0", "IPv6 alone may be missing");
            continue;
        };
        let port = reflector.address().port();
        let (_, tally) = measure(flow(&format!("udp://127.0.0.2:{port}"), 5));
        assert_eq!((tally.messages, tally.replies), (5, 5), "{wildcard}");
    }
}

/// Two flows of each kind at 200 messages a second, under one permit of 100, and then one of few bytes.
#[test]
fn flows_of_every_kind_keep_to_the_permit_that_they_share() {
    let reflector = reflector(Span::ZERO);
    let address = reflector.address();
    let targets = AllowedTargets::default();
    for scheme in ["ws", "wss", "http", "tcp", "udp"] {
        let url = format!("{scheme}://{address}");
        let budgets = Budgets {
            messages: Some(100),
            ..Budgets::default()
        };
        let permit = Permit::new(targets.clone(), budgets, 0);
        let flows = [0, 1].map(|_| {
            let permit = permit.clone();
            let spec = FlowSpec {
                permit,
                ..flow(&url, 200)
            };
            std::thread::spawn(move || measure(spec).1)
        });
        let sent = flows.map(|join_handle| join_handle.join().expect("no panic"));
        let replies: u64 = sent.iter().map(|tally| tally.replies).sum();
        let sent_messages: u64 = sent.iter().map(|tally| tally.messages).sum();
        // A second of it, a burst, and a little for a machine that is late.
        assert!(
            (60..=125).contains(&replies),
            "{scheme}: {replies} of {sent_messages}"
        );
        assert_eq!(
            sent_messages, 400,
            "{scheme}: those that were not sent count"
        );

        let budgets = Budgets {
            day_bytes: Some(20_000),
            ..Budgets::default()
        };
        let permit = Permit::new(targets.clone(), budgets, 0);
        let spec = FlowSpec {
            permit: permit.clone(),
            ..flow(&url, 200)
        };
        let (_, tally) = measure(spec);
        assert!(permit.is_spent(), "{scheme}: {}", permit.spent_today());
        // What was under way when the budget ended comes on top.
        assert!(
            permit.spent_today() < 24_000,
            "{scheme}: {}",
            permit.spent_today()
        );
        assert!(tally.failed > 100, "{scheme}: {tally:?}");
    }
}
