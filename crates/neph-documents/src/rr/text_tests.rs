use neph_load::Durations;
use neph_load::rr::{RrCounts, RrSpec};
use neph_model::Wall;
use neph_wire::throughput::{RrTestRequest, VERSION};

use super::*;

fn build_measured(kind: RrKind, times: u64, lost: u64) -> RrMeasured {
    let mut rtts = Durations::default();
    for index in 1..=times {
        rtts.add(index * 1_000);
    }
    RrMeasured {
        address: ([192, 0, 2, 7], 7420).into(),
        spec: RrSpec {
            ask: RrTestRequest {
                version: VERSION,
                kind,
                streams: 1,
                duration_ns: 1_000_000_000,
                request_bytes: 16,
                reply_bytes: 16,
                dscp: None,
            },
            timeout: Span::from_millis(20),
            busy_poll: false,
        },
        started: Wall::from_unix_nanos(0),
        lasted: Span::from_secs(1),
        rate: 250.0,
        rtts,
        counts: RrCounts {
            transactions: times,
            lost,
            lost_wait: Span::from_millis(20).times(i64::try_from(lost).expect("few")),
            late: 1,
            duplicates: 2,
            foreign: 0,
        },
        requests_at_server: Some(times + 1),
        client: Usage::default(),
        server: Usage::default(),
        is_stopped: false,
        fault: None,
    }
}

#[test]
fn losses_have_a_direction_and_quantiles_a_minimum_of_samples() {
    let text = summary(&build_measured(RrKind::UdpRr, 250, 4));
    for part in [
        "\nUDP_RR: 250 transactions/s over 1 stream, 250 transactions in 1.000 s",
        "p50 127.0 us, p90 229.0 us, p99 -, p99.9 -, max 250.0 us",
        "; p99 needs 299, p99.9 needs 2995 transactions\n",
        "  4 lost (1.575 %): 3 requests, 1 reply; waited 20.00 ms for each, 80.00 ms together (timeout 20.00 ms)",
        "; 1 late, 2 duplicated\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_quantile_that_lost_transactions_decide_is_lost() {
    let text = summary(&build_measured(RrKind::UdpRr, 290, 10));
    assert!(text.contains("p99 lost, p99.9 -"), "{text}");
}

#[test]
fn tcp_has_no_losses_and_a_connection_has_no_late_reply() {
    let text = summary(&build_measured(RrKind::TcpRr, 10, 0));
    assert!(!text.contains("lost"), "{text}");
    let text = summary(&build_measured(RrKind::TcpCrr, 10, 0));
    assert!(text.contains("  0 lost (0 %)\n"), "{text}");
}

#[test]
fn a_summary_without_transactions_has_no_figures() {
    let text = summary(&build_measured(RrKind::UdpRr, 0, 0));
    assert!(text.contains("RTT min -, mean -, sd -, p50 -"), "{text}");
    assert!(text.contains("; - CPU per transaction"), "{text}");
}
