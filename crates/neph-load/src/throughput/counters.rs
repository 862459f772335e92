//! The kernel's counters of a TCP connection, and their increase within an interval.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;

use neph_model::TcpField;
use neph_sys::tcp;
use neph_wire::throughput::TcpCounters;

/// All fields at one moment; 0 for a field that this kernel lacks.
#[derive(Clone, Debug)]
pub(super) struct Counters(Vec<u8>);

impl Counters {
    /// Reads the kernel's counters.
    pub(super) fn read(stream: &TcpStream) -> io::Result<Self> {
        Ok(Self(tcp::info(stream.as_fd())?.bytes().to_vec()))
    }

    fn of(&self, name: &str) -> u64 {
        let field = TcpField::of_kernel(name);
        field.and_then(|field| field.read(&self.0)).unwrap_or(0)
    }
}

/// Differences of counters, and current values of gauges.
pub(super) fn difference(before: &Counters, now: &Counters) -> TcpCounters {
    let more = |name| now.of(name).saturating_sub(before.of(name));
    let word = |name| u32::try_from(now.of(name)).unwrap_or(u32::MAX);
    TcpCounters {
        acked_bytes: more("bytes_acked"),
        segments: more("data_segs_out"),
        retransmissions: more("total_retrans"),
        cwnd_segments: word("snd_cwnd"),
        mss_bytes: word("snd_mss"),
        srtt_us: word("rtt"),
        min_rtt_us: word("min_rtt"),
        busy_us: more("busy_time"),
        rwnd_limited_us: more("rwnd_limited"),
        sndbuf_limited_us: more("sndbuf_limited"),
    }
}
