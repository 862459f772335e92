//! `neph stress`: the load that was generated.

use neph_agent::{CpuResult, UdpResult};
use neph_load::{Carried, LoadSecond, rate_of};
use neph_model::{BitRate, ByteSize, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cell::Cell;

crate::rows! {
    /// CPU load of one thread.
    pub struct CpuRow {
        /// CPU to which the thread was pinned; null if the kernel chose.
        cpu: Option<usize> => left "CPU" by |row| {
            row.cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.cell())
        },
        /// Target: share of the time to work.
        target_percent: f64 => right "TARGET" by |row| format!("{:.0} %", row.target_percent),
        /// Achieved share of the time.
        achieved_percent: f64 => right "BUSY" by |row| format!("{:.1} %", row.achieved_percent),
        /// Duration.
        lasted_ns: Span => right "LASTED",
        /// Hashes computed per second.
        hashes_per_second: f64 => right "HASHES/S" by |row| format!("{:.0}", row.hashes_per_second),
    }
}

impl CpuRow {
    /// A row for each thread.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub fn all(result: &CpuResult) -> Vec<Self> {
        let rows = result.threads.iter().map(|thread| Self {
            cpu: thread.cpu,
            target_percent: result.share.in_percent(),
            achieved_percent: thread.percent(),
            lasted_ns: thread.lasted,
            hashes_per_second: thread.hashes as f64 * 1e9 / thread.lasted.nanos().max(1) as f64,
        });
        rows.collect()
    }
}

/// The payload rates of a load in one second.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadSecondRow {
    /// End of the second, since the start of the load.
    at_ns: Span,
    /// Rate sent, without retransmissions.
    sent_bit_s: BitRate,
    /// Rate received.
    received_bit_s: BitRate,
}

impl LoadSecondRow {
    fn all(seconds: &[LoadSecond]) -> Vec<Self> {
        let rows = seconds.iter().map(|second| Self {
            at_ns: second.at,
            sent_bit_s: second.sent,
            received_bit_s: second.received,
        });
        rows.collect()
    }
}

crate::rows! {
    /// A TCP connection of a background load.
    pub struct FlowRow {
        /// Number of the connection, from 1.
        flow: u64 => right "FLOW",
        /// Limit of its rate; null if there is none.
        limit_bit_s: Option<BitRate> => right "LIMIT" by |row| {
            row.limit_bit_s.map_or_else(|| "max".to_owned(), |limit| limit.cell())
        },
        /// Bytes sent.
        sent_bytes: ByteSize => right "SENT",
        /// Bytes that the peer received.
        received_bytes: ByteSize => right "RECEIVED",
        /// Bytes that the peer sent back.
        reverse_bytes: ByteSize => right "REVERSE",
        /// Requests with a reply.
        answered: u64 => right "ANSWERED",
        /// Retransmitted segments.
        retransmissions: u32 => right "RETRANSMITTED",
        /// Retransmitted segments that the peer had received already.
        spurious_retransmissions: u32 => right "SPURIOUS",
        /// Duration.
        lasted_ns: Span => right "LASTED",
        /// Rate that the peer received.
        received_bit_s: BitRate => right "RECEIVED/S",
        /// Rate that the peer sent back.
        reverse_bit_s: BitRate => right "REVERSE/S",
        /// Rates in each whole second.
        seconds: Vec<LoadSecondRow>,
        /// Why it was refused or broke; null otherwise.
        fault: Option<String>,
    }
}

impl FlowRow {
    /// A row for each connection; `limit` is that of all together.
    pub fn all(flows: &[Carried], limit: Option<BitRate>) -> Vec<Self> {
        let flow_limit = limit.map(|limit| BitRate(limit.bits_per_second() / flows.len() as u64));
        let rows = (1..).zip(flows).map(|(number, flow)| Self {
            flow: number,
            limit_bit_s: flow_limit,
            sent_bytes: ByteSize(flow.sent),
            received_bytes: ByteSize(flow.received),
            reverse_bytes: ByteSize(flow.back),
            answered: flow.answered,
            retransmissions: flow.retransmissions,
            spurious_retransmissions: flow.spurious,
            lasted_ns: flow.lasted,
            received_bit_s: rate_of(flow.received_in_time, flow.lasted),
            reverse_bit_s: rate_of(flow.back_in_time, flow.lasted),
            seconds: LoadSecondRow::all(&flow.seconds),
            fault: flow.broken.clone(),
        });
        rows.collect()
    }
}

crate::rows! {
    /// A UDP stream of a background load.
    pub struct StreamRow {
        /// Target rate.
        target_bit_s: BitRate => right "ASKED",
        /// Frames that were due.
        frames: u64 => right "FRAMES",
        /// Frames that were skipped because the sender was late.
        frames_skipped: u64 => right "SKIPPED",
        /// Packets sent.
        sent_packets: u64 => right "SENT",
        /// Bytes of payload sent.
        sent_bytes: ByteSize => right "BYTES",
        /// Packets that the kernel refused to send.
        refused_packets: u64 => right "NOT SENT",
        /// Packets that the reflector received.
        received_packets: u64 => right "RECEIVED",
        /// Packets that the reflector sent back.
        reverse_packets: u64 => right "REVERSE",
        /// Duration.
        lasted_ns: Span => right "LASTED",
        /// Rate sent.
        sent_bit_s: BitRate => right "SENT/S",
        /// Rate that the reflector sent back.
        reverse_bit_s: BitRate => right "REVERSE/S",
        /// Rates in each whole second.
        seconds: Vec<LoadSecondRow>,
        /// Why it missed its target; null otherwise.
        fault: Option<String>,
    }
}

impl From<&UdpResult> for StreamRow {
    fn from(result: &UdpResult) -> Self {
        let counters = &result.counters;
        Self {
            target_bit_s: result.rate,
            frames: counters.frames,
            frames_skipped: counters.left_out(),
            sent_packets: counters.packets,
            sent_bytes: ByteSize(counters.bytes),
            refused_packets: counters.refused,
            received_packets: counters.received_bytes,
            reverse_packets: counters.back,
            lasted_ns: counters.lasted,
            sent_bit_s: rate_of(counters.bytes, counters.lasted),
            reverse_bit_s: rate_of(counters.reverse_bytes, counters.lasted),
            seconds: LoadSecondRow::all(&counters.seconds),
            fault: result.fault.clone(),
        }
    }
}
