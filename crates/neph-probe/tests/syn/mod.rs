//! SYN pings between two namespaces: what they measure, and what they leave behind at the target,
//! as the target's own kernel tells it.

mod fleets;
mod pair;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use neph_model::{Message, Span, Tally, Target};
use neph_probe::{FlowSpec, Priority, Schedule};
use neph_sys::deadline::wait_until;

use crate::loopback::measure;
use crate::support::{eventually, has, is_root, skip};
use pair::{Pair, Side};

const PORT: u16 = 8080;

fn syn(pair: &Pair, host: &str, (interval, count): (Span, u64)) -> FlowSpec {
    let target = Target::parse(&format!("syn://{host}:{PORT}")).expect("a good target");
    let ip = host.trim_matches(['[', ']']).parse().expect("an address");
    FlowSpec {
        schedule: Schedule {
            interval,
            count: Some(count),
            duration: None,
        },
        timeout: Span::from_secs(2),
        spin: FlowSpec::SPIN,
        priority: Priority::Normal,
        site: Some(pair.placement(Side::Ours)),
        ..FlowSpec::plain(target, SocketAddr::new(ip, PORT))
    }
}

/// What a run did to its target.
struct TargetState {
    messages: Vec<Message>,
    tally: Tally,
    /// The most half-open connections that were ever seen at once.
    most_half_open: usize,
    /// Half-open connections that a RST ended.
    broken_off: u64,
}

/// Runs against a listener that never accepts, and watches what its kernel holds meanwhile.
fn run_watched(pair: &Pair, spec: FlowSpec) -> TargetState {
    let count = spec.schedule.count;
    let _listener = pair.listen(PORT);
    let before = pair.attempts_failed(Side::Theirs);
    let max_half_open = AtomicUsize::new(0);
    let (messages, tally) = std::thread::scope(|scope| {
        let run = scope.spawn(|| measure(spec));
        let is_over = wait_until(std::time::Duration::from_mins(2), || {
            let (half_open, established) = pair.connections(PORT);
            assert_eq!(established, 0, "a handshake was completed");
            max_half_open.fetch_max(half_open, Ordering::Relaxed);
            run.is_finished()
        });
        assert!(is_over, "the flow ends");
        run.join().expect("the flow ran")
    });
    eventually("no half-open connection is left", || {
        pair.connections(PORT) == (0, 0)
    });
    assert_eq!(Some(tally.messages), count);
    TargetState {
        messages,
        tally,
        most_half_open: max_half_open.into_inner(),
        broken_off: pair.attempts_failed(Side::Theirs) - before,
    }
}

#[test]
fn a_thousand_syns_from_one_port_are_all_answered_and_leave_nothing_half_open() {
    let Some(pair) = Pair::new("thousand") else {
        return;
    };
    let mut spec = syn(&pair, "10.98.0.2", (Span::from_millis(1), 1000));
    spec.rate_cap = Some(1000);
    spec.source_port = Some(23_456);
    let left = run_watched(&pair, spec);
    assert_eq!(left.tally.replies, 1000, "{:?}", left.tally);
    assert_eq!(left.tally.duplicates, 0, "no SYN-ACK was sent again");
    assert_eq!(left.broken_off, 1000, "each SYN was taken back");
    assert!(left.most_half_open <= 2, "{} at once", left.most_half_open);
    let stamped =
        |message: &&Message| message.marks.nic_tx.is_some() && message.marks.nic_rx.is_some();
    assert_eq!(left.messages.iter().filter(stamped).count(), 1000);
}

#[test]
fn ipv6_is_the_same() {
    let Some(pair) = Pair::new("six") else {
        return;
    };
    let left = run_watched(
        &pair,
        syn(&pair, "[fd00:98::2]", (Span::from_millis(5), 200)),
    );
    assert_eq!((left.tally.replies, left.tally.duplicates), (200, 0));
    assert_eq!(left.broken_off, 200);
    assert!(left.messages.iter().all(|m| m.marks.nic_rx.is_some()));
}

#[test]
fn a_closed_port_answers_too() {
    let Some(pair) = Pair::new("closed") else {
        return;
    };
    for host in ["10.98.0.2", "[fd00:98::2]"] {
        let (messages, tally) = measure(syn(&pair, host, (Span::from_millis(5), 50)));
        assert_eq!((tally.replies, tally.duplicates), (50, 0), "{host}");
        assert!(
            messages
                .iter()
                .all(|m| m.marks.network_and_peer_round_trip().is_some())
        );
    }
}

#[test]
fn a_firewall_that_holds_up_the_kernels_rst_leaves_nothing_half_open_either() {
    let Some(pair) = Pair::new("fire") else {
        return;
    };
    if !has("nft", "--version") {
        return skip("SYN behind a firewall", "nft is missing");
    }
    pair.nft(
        Side::Ours,
        "table inet t { chain out { type filter hook output priority 0; \
         tcp flags & rst == rst meta skuid 0 counter accept; \
         tcp flags & rst == rst counter drop; }; }",
    );
    let left = run_watched(&pair, syn(&pair, "10.98.0.2", (Span::from_millis(10), 20)));
    assert_eq!((left.tally.replies, left.broken_off), (20, 20));
    let rules = pair.nft(Side::Ours, "list ruleset");
    let dropped = rules
        .lines()
        .any(|line| line.contains("counter packets 20") && line.contains("drop"));
    assert!(dropped, "the kernel's own were dropped: {rules}");
}

#[test]
fn a_connection_that_the_target_still_holds_costs_a_syn_and_no_more() {
    let Some(pair) = Pair::new("stale") else {
        return;
    };
    // A connection whose our half is gone without a word, as after a restart of this host.
    let listener = pair.listen(PORT);
    pair.orphan(PORT, 23_457);
    assert_eq!(pair.connections(PORT), (0, 1));
    let mut spec = syn(&pair, "10.98.0.2", (Span::from_millis(20), 50));
    spec.source_port = Some(23_457);
    spec.timeout = Span::from_millis(500);
    let (messages, tally) = measure(spec);
    // The first SYN draws a challenge ACK, which is nobody's answer; our kernel's RST for it ends
    // the old connection.
    assert_eq!((tally.replies, tally.lost), (49, 1), "{tally:?}");
    assert!(messages[0].marks.nic_rx.is_none());
    eventually("the old connection is gone", || {
        pair.connections(PORT) == (0, 0)
    });
    drop(listener);
}

#[test]
fn a_source_port_in_use_is_refused_with_the_remedy() {
    let Some(pair) = Pair::new("taken") else {
        return;
    };
    let _taken = pair.listen_at(Side::Ours, 23_458);
    let mut spec = syn(&pair, "10.98.0.2", (Span::from_millis(5), 3));
    spec.source_port = Some(23_458);
    let flow = neph_probe::Flow::start(spec, neph_model::Stop::new()).expect("a thread");
    let message = flow.join().expect_err("the port is taken").to_string();
    assert!(
        message.contains("take source port 23458") && message.contains("choose another"),
        "{message}"
    );
}

#[test]
fn without_privilege_plain_connects_are_answered_and_broken_off() {
    if is_root() {
        // Rights are dropped by the whole process only; `neph`'s own tests start one without.
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let open = listener.local_addr().expect("bound");
    let url = format!("syn://{open}");
    let (messages, tally) = measure(crate::loopback::flow(&url, 10));
    assert_eq!(tally.replies, 10);
    assert!(
        messages
            .iter()
            .all(|message| message.marks.connected.is_some())
    );
    drop(listener);
    let (_, tally) = measure(crate::loopback::flow(&url, 10));
    assert_eq!(tally.replies, 10, "a refusal is an answer");
}
