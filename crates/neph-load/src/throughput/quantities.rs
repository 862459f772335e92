//! Converts a plan's throughput test to parameters, and its result to quantities.
//!
//! Owns the conversion. neph-model defines the quantities.

use neph_model::{
    BitRate, Quantities, Quantity, Span, ThroughputMeasure, TransferDirection, TransferTransport,
};
use neph_wire::throughput::{Direction, Protocol, TestRequest, VERSION};

use super::measured::{DirectionResult, Measured};
use super::second::Second;

/// Payload of a UDP datagram in bytes. With UDP and IPv6 headers it fits into the 1,400 of 1,500
/// bytes that overlays leave, so that an overlay is not measured with fragments.
pub const DATAGRAM: u32 = 1352;

/// The quantities of one direction.
struct Names {
    goodput: Quantity,
    sent: Quantity,
    loss: Quantity,
    jitter: Quantity,
    pdv_p95: Quantity,
    retransmissions: Quantity,
    srtt: Quantity,
    sender_cpu: Quantity,
    receiver_cpu: Quantity,
}

const UP: Names = Names {
    goodput: Quantity::UpGoodput,
    sent: Quantity::UpSent,
    loss: Quantity::UpLoss,
    jitter: Quantity::UpJitter,
    pdv_p95: Quantity::UpPdvP95,
    retransmissions: Quantity::UpRetransmissions,
    srtt: Quantity::UpSrtt,
    sender_cpu: Quantity::UpSenderCpu,
    receiver_cpu: Quantity::UpReceiverCpu,
};

const DOWN: Names = Names {
    goodput: Quantity::DownGoodput,
    sent: Quantity::DownSent,
    loss: Quantity::DownLoss,
    jitter: Quantity::DownJitter,
    pdv_p95: Quantity::DownPdvP95,
    retransmissions: Quantity::DownRetransmissions,
    srtt: Quantity::DownSrtt,
    sender_cpu: Quantity::DownSenderCpu,
    receiver_cpu: Quantity::DownReceiverCpu,
};

const fn names(direction: Direction) -> &'static Names {
    match direction {
        Direction::Up | Direction::Both => &UP,
        Direction::Down => &DOWN,
    }
}

/// The test of a plan with this duration.
pub fn build_test_request(
    test: &ThroughputMeasure,
    duration: Span,
    congestion: Option<String>,
) -> TestRequest {
    TestRequest {
        version: VERSION,
        protocol: match test.transport {
            TransferTransport::Tcp => Protocol::Tcp,
            TransferTransport::Udp => Protocol::Udp,
        },
        direction: match test.direction {
            TransferDirection::Up => Direction::Up,
            TransferDirection::Down => Direction::Down,
            TransferDirection::Both => Direction::Both,
        },
        streams: test.streams,
        duration_ns: u64::try_from(duration.nanos()).unwrap_or(0),
        rate_bit_s: test.rate.map(BitRate::bits_per_second),
        datagram_bytes: DATAGRAM,
        congestion,
        dscp: None,
    }
}

impl Measured {
    /// Quantities of the whole test.
    pub fn quantities(&self) -> Quantities {
        let results = self.results();
        Quantities {
            peer: self.address,
            values: results.iter().flat_map(of_direction).collect(),
            limits: results
                .iter()
                .map(|result| result.limit.sentence.clone())
                .collect(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers for people")]
fn of_direction(result: &DirectionResult) -> Vec<(Quantity, f64)> {
    let (names, totals) = (names(result.direction), &result.totals);
    let mut values = vec![
        (names.goodput, totals.goodput.bits_per_second() as f64),
        (names.sent, totals.sent.bits_per_second() as f64),
        (names.sender_cpu, totals.sender.thread * 100.0),
        (names.receiver_cpu, totals.receiver.thread * 100.0),
    ];
    if let Some(tcp) = &totals.tcp {
        values.push((names.retransmissions, tcp.retransmissions as f64));
        values.push((names.srtt, nanos(tcp.srtt_mean)));
    }
    if let Some(udp) = &totals.udp {
        values.push((names.loss, udp.loss() * 100.0));
        values.push((names.jitter, nanos(udp.jitter)));
        let p95 = udp.variation.pdv_p95_ns.map(|p95| p95 as f64);
        values.extend(p95.map(|p95| (names.pdv_p95, p95)));
    }
    values
}

impl Second {
    /// Quantities of the second.
    #[expect(clippy::cast_precision_loss, reason = "numbers for people")]
    pub fn quantities(&self) -> Vec<(Quantity, f64)> {
        let Some(direction) = self.direction else {
            return Vec::new();
        };
        let names = names(direction);
        let mut values = vec![
            (names.goodput, self.goodput.bits_per_second() as f64),
            (names.sent, self.sent.bits_per_second() as f64),
            (names.sender_cpu, self.sender_thread * 100.0),
            (names.receiver_cpu, self.receiver_thread * 100.0),
        ];
        if let Some(srtt) = self.srtt {
            values.push((names.retransmissions, self.retransmissions as f64));
            values.push((names.srtt, nanos(srtt)));
        }
        if let Some(jitter) = self.jitter {
            let total = self.datagrams.saturating_add(self.lost).max(1);
            values.push((names.loss, self.lost as f64 / total as f64 * 100.0));
            values.push((names.jitter, nanos(jitter)));
        }
        values.extend(self.pdv_p95.map(|p95| (names.pdv_p95, nanos(p95))));
        values
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number for people")]
fn nanos(span: Span) -> f64 {
    span.nanos() as f64
}
