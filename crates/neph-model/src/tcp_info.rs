//! The fields of Linux's `struct tcp_info`: one table for what is read, stored, exported and
//! documented.

use std::fmt;

/// A field of `struct tcp_info`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpField(u8);

/// The position and the meaning of a field.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// As linux/tcp.h calls it, without `tcpi_`.
    name: &'static str,
    /// The unit, as names of series end with it; empty for codes, and where the name contains it.
    unit: &'static str,
    /// The first byte within the structure.
    offset: usize,
    /// Bytes: 1, 2, 4 or 8.
    width: usize,
    /// What it is.
    about: &'static str,
}

const fn row(
    (name, unit): (&'static str, &'static str),
    (offset, width): (usize, usize),
    about: &'static str,
) -> Row {
    Row {
        name,
        unit,
        offset,
        width,
        about,
    }
}

/// The fields in the order of the structure. The bit fields of bytes 6 and 7 (window scales and
/// flags) are one number each. Kernels append fields: what an older one does not give is absent.
const FIELDS: &[Row] = &[
    row(
        ("state", ""),
        (0, 1),
        "state of the connection (1: established)",
    ),
    row(
        ("ca_state", ""),
        (1, 1),
        "state of congestion control. 0 open: no problem. 1 disorder: the first duplicate ACKs or SACKs arrived. 2 CWR: the window shrinks without a loss, for example after an ECN mark. 3 recovery: fast retransmission. 4 loss: a timeout occurred",
    ),
    row(
        ("retransmits", ""),
        (2, 1),
        "number of consecutive retransmission timeouts since the last acknowledgement of new data",
    ),
    row(
        ("probes", ""),
        (3, 1),
        "number of zero-window or keep-alive probes without an answer",
    ),
    row(
        ("backoff", ""),
        (4, 1),
        "number of times that TCP has doubled the present retransmission timeout",
    ),
    row(
        ("options", ""),
        (5, 1),
        "sum of the bits of all options in use. 1: timestamps. 2: SACK. 4: window scaling. 8: ECN. 16: a packet with the ECN mark ECT arrived. 32: data in the SYN was acknowledged",
    ),
    row(
        ("wscale", ""),
        (6, 1),
        "window scale (the factor is 2 to the power of this value): that of the peer in the low 4 bits, that of the client in the high 4 bits",
    ),
    row(
        ("flags", ""),
        (7, 1),
        "bit 0: the application limited the delivery rate. Bits 1 and 2: a number that shows why TCP Fast Open failed",
    ),
    row(("rto", "us"), (8, 4), "retransmission timeout"),
    row(("ato", "us"), (12, 4), "delayed-acknowledgement timeout"),
    row(
        ("snd_mss", "bytes"),
        (16, 4),
        "maximum size of sent segments",
    ),
    row(
        ("rcv_mss", "bytes"),
        (20, 4),
        "estimated size of received segments",
    ),
    row(
        ("unacked", "segments"),
        (24, 4),
        "segments sent and not acknowledged yet. SACK does not reduce this number",
    ),
    row(
        ("sacked", "segments"),
        (28, 4),
        "segments of `tcp_unacked_segments` that the peer has acknowledged by SACK",
    ),
    row(
        ("lost", "segments"),
        (32, 4),
        "segments of `tcp_unacked_segments` that TCP considers lost",
    ),
    row(
        ("retrans", "segments"),
        (36, 4),
        "segments of `tcp_unacked_segments` that TCP has retransmitted and whose retransmission it considers in flight",
    ),
    row(
        ("fackets", "segments"),
        (40, 4),
        "forward acknowledged segments. Always 0 since Linux 4.15",
    ),
    row(
        ("last_data_sent", "ms"),
        (44, 4),
        "time since the last data segment was sent",
    ),
    row(
        ("last_ack_sent", "ms"),
        (48, 4),
        "time since the last acknowledgement was sent. Always 0, because Linux does not set this field",
    ),
    row(
        ("last_data_recv", "ms"),
        (52, 4),
        "time since the last data segment was received",
    ),
    row(
        ("last_ack_recv", "ms"),
        (56, 4),
        "time since the last acknowledgement was received",
    ),
    row(("pmtu", "bytes"), (60, 4), "path MTU"),
    row(
        ("rcv_ssthresh", "bytes"),
        (64, 4),
        "present upper limit of the receive window that the client advertises",
    ),
    row(("rtt", "us"), (68, 4), "smoothed round-trip time"),
    row(
        ("rttvar", "us"),
        (72, 4),
        "smoothed mean deviation of the round-trip time",
    ),
    row(
        ("snd_ssthresh", "segments"),
        (76, 4),
        "slow start threshold. 2147483647: not set yet",
    ),
    row(("snd_cwnd", "segments"), (80, 4), "congestion window"),
    row(
        ("advmss", "bytes"),
        (84, 4),
        "maximum segment size that the client advertises",
    ),
    row(
        ("reordering", "segments"),
        (88, 4),
        "reordering distance that TCP tolerates before it considers a segment lost",
    ),
    row(
        ("rcv_rtt", "us"),
        (92, 4),
        "round-trip time that the client estimates from received data",
    ),
    row(
        ("rcv_space", "bytes"),
        (96, 4),
        "largest number of bytes that the application has read in one round-trip time. Linux uses this number to size the receive buffer",
    ),
    row(
        ("total_retrans", "segments"),
        (100, 4),
        "number of retransmitted segments since the connection began",
    ),
    row(
        ("pacing_rate", "bytes_per_second"),
        (104, 8),
        "pacing rate. 2^64 - 1: no pacing",
    ),
    row(
        ("max_pacing_rate", "bytes_per_second"),
        (112, 8),
        "upper limit of the pacing rate. 2^64 - 1: no limit",
    ),
    row(
        ("bytes_acked", ""),
        (120, 8),
        "bytes that the peer acknowledged since the connection began",
    ),
    row(
        ("bytes_received", ""),
        (128, 8),
        "bytes received in order since the connection began",
    ),
    row(
        ("segs_out", ""),
        (136, 4),
        "number of sent segments since the connection began",
    ),
    row(
        ("segs_in", ""),
        (140, 4),
        "number of received segments since the connection began",
    ),
    row(
        ("notsent", "bytes"),
        (144, 4),
        "bytes that the application wrote and the kernel has not sent yet",
    ),
    row(("min_rtt", "us"), (148, 4), "minimum round-trip time"),
    row(
        ("data_segs_in", ""),
        (152, 4),
        "number of received segments with data since the connection began",
    ),
    row(
        ("data_segs_out", ""),
        (156, 4),
        "number of sent segments with data since the connection began",
    ),
    row(
        ("delivery_rate", "bytes_per_second"),
        (160, 8),
        "most recent rate at which data reached the peer",
    ),
    row(
        ("busy_time", "us"),
        (168, 8),
        "busy time: total time with data that was not sent or not acknowledged yet",
    ),
    row(
        ("rwnd_limited", "us"),
        (176, 8),
        "part of the busy time in which the peer's receive window limited the sending",
    ),
    row(
        ("sndbuf_limited", "us"),
        (184, 8),
        "part of the busy time in which the send buffer limited the sending",
    ),
    row(
        ("delivered", "segments"),
        (192, 4),
        "number of segments that reached the peer, including out-of-order segments",
    ),
    row(
        ("delivered_ce", "segments"),
        (196, 4),
        "segments of `tcp_delivered_segments` that a router marked with ECN because of congestion",
    ),
    row(
        ("bytes_sent", ""),
        (200, 8),
        "bytes of payload sent since the connection began, including retransmissions",
    ),
    row(
        ("bytes_retrans", ""),
        (208, 8),
        "bytes of payload retransmitted since the connection began",
    ),
    row(
        ("dsack_dups", "segments"),
        (216, 4),
        "number of segments that the peer reported as received twice (DSACK)",
    ),
    row(
        ("reord_seen", ""),
        (220, 4),
        "number of times that TCP detected reordering",
    ),
    row(
        ("rcv_ooopack", "segments"),
        (224, 4),
        "number of segments that arrived out of order",
    ),
    row(
        ("snd_wnd", "bytes"),
        (228, 4),
        "receive window that the peer advertises",
    ),
    row(
        ("rcv_wnd", "bytes"),
        (232, 4),
        "receive window that the client advertises",
    ),
    row(
        ("rehash", ""),
        (236, 4),
        "number of times that Linux chose a new flow hash, after a timeout or because of congestion (PLB). Then ECMP routers may choose another path",
    ),
    row(
        ("total_rto", ""),
        (240, 2),
        "number of retransmission timeouts since the connection began",
    ),
    row(
        ("total_rto_recoveries", ""),
        (242, 2),
        "number of recoveries (phases of retransmission) after timeouts",
    ),
    row(
        ("total_rto_time", "ms"),
        (244, 4),
        "total time in recoveries after timeouts",
    ),
];

impl TcpField {
    /// Bytes of the structure that the table covers.
    pub const BYTES: usize = 248;

    /// All, in the order of the structure.
    pub fn all_fields() -> impl Iterator<Item = Self> {
        (0..).zip(FIELDS).map(|(index, _)| Self(index))
    }

    fn row(self) -> &'static Row {
        &FIELDS[usize::from(self.0)]
    }

    /// As linux/tcp.h calls it, without `tcpi_`.
    pub fn kernel_name(self) -> &'static str {
        self.row().name
    }

    /// What it is, for documentation.
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// Its value in `bytes`, the beginning of a `struct tcp_info`; `None` where they end before it.
    pub fn read(self, bytes: &[u8]) -> Option<u64> {
        let Row { offset, width, .. } = *self.row();
        let value = bytes.get(offset..offset + width)?;
        Some(match *value {
            [byte] => byte.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            _ => u64::from_ne_bytes(value.try_into().ok()?),
        })
    }

    /// The field of that name in linux/tcp.h, with or without `tcpi_`. `notsent` is `notsent_bytes`
    /// there.
    pub fn of_kernel(name: &str) -> Option<Self> {
        let name = name.strip_prefix("tcpi_").unwrap_or(name);
        let name = if name == "notsent_bytes" {
            "notsent"
        } else {
            name
        };
        Self::all_fields().find(|field| field.row().name == name)
    }

    /// The field whose series has this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all_fields().find(|field| field.to_string() == name)
    }
}

/// The name with its unit, as `snd_cwnd_segments`.
impl fmt::Display for TcpField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { name, unit, .. } = self.row();
        match *unit {
            "" => f.write_str(name),
            unit => write!(f, "{name}_{unit}"),
        }
    }
}

impl fmt::Debug for TcpField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TcpField({self})")
    }
}

#[cfg(test)]
mod tests;
