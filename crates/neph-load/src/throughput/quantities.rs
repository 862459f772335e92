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
    /// Quantities of the whole test. If it broke off, those of an end without counts are unknown, not 0,
    /// and nothing is known about its limit.
    pub fn quantities(&self) -> Quantities {
        let results = self.results();
        let limits = results.iter().filter(|_| self.fault.is_none());
        Quantities {
            peer: self.address,
            values: results
                .iter()
                .flat_map(|result| self.of_direction(result))
                .collect(),
            limits: limits.map(|result| result.limit.sentence.clone()).collect(),
        }
    }

    fn of_direction(&self, result: &DirectionResult) -> Vec<(Quantity, f64)> {
        let ends = self.ends(result.direction);
        let is_complete = self.fault.is_none();
        let mut values = Vec::new();
        if is_complete || !ends.sender.sent.is_empty() {
            values.extend(of_sender(result));
        }
        if is_complete || !ends.receiver.received.is_empty() {
            values.extend(of_receiver(result));
        }
        values
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers for people")]
fn of_sender(result: &DirectionResult) -> Vec<(Quantity, f64)> {
    let (names, totals) = (names(result.direction), &result.totals);
    let mut values = vec![
        (names.sent, totals.sent.bits_per_second() as f64),
        (names.sender_cpu, totals.sender.thread * 100.0),
    ];
    if let Some(tcp) = &totals.tcp {
        values.push((names.retransmissions, tcp.retransmissions as f64));
        values.push((names.srtt, nanos(tcp.srtt_mean)));
    }
    values
}

#[expect(clippy::cast_precision_loss, reason = "numbers for people")]
fn of_receiver(result: &DirectionResult) -> Vec<(Quantity, f64)> {
    let (names, totals) = (names(result.direction), &result.totals);
    let mut values = vec![
        (names.goodput, totals.goodput.bits_per_second() as f64),
        (names.receiver_cpu, totals.receiver.thread * 100.0),
    ];
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

#[cfg(test)]
mod tests {
    use neph_model::Wall;
    use neph_wire::throughput::{ReceivedInterval, SentInterval};

    use super::*;

    /// An upload of which the sender counted a second.
    fn upload(fault: Option<&str>) -> Measured {
        let test = ThroughputMeasure {
            transport: TransferTransport::Tcp,
            direction: TransferDirection::Up,
            streams: 1,
            rate: None,
        };
        let test_request = build_test_request(&test, Span::from_secs(1), None);
        let address = ([127, 0, 0, 1], 7421).into();
        let mut measured = Measured::begin(address, test_request, Wall::from_unix_nanos(0));
        measured.client.sent.push(SentInterval {
            to_ns: 1_000_000_000,
            bytes: 125_000,
            ..SentInterval::default()
        });
        measured.fault = fault.map(str::to_owned);
        measured
    }

    #[test]
    fn without_counts_of_the_receiver_the_goodput_of_a_broken_test_is_unknown() {
        let broken = upload(Some("the server closed the connection")).quantities();
        assert_eq!(broken.values.get(&Quantity::UpSent), Some(&1e6));
        assert_eq!(broken.values.get(&Quantity::UpGoodput), None);
        assert!(broken.limits.is_empty(), "{:?}", broken.limits);
        let nothing_arrived = upload(None).quantities();
        assert_eq!(nothing_arrived.values.get(&Quantity::UpGoodput), Some(&0.0));
        let mut half = upload(Some("the server closed the connection"));
        half.server.received.push(ReceivedInterval {
            to_ns: 1_000_000_000,
            bytes: 62_500,
            ..ReceivedInterval::default()
        });
        let half = half.quantities();
        assert_eq!(half.values.get(&Quantity::UpGoodput), Some(&5e5));
    }
}
