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
        "state of congestion control: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss",
    ),
    row(
        ("retransmits", ""),
        (2, 1),
        "consecutive timeouts without an acknowledgement",
    ),
    row(
        ("probes", ""),
        (3, 1),
        "window or keep-alive probes without an answer",
    ),
    row(
        ("backoff", ""),
        (4, 1),
        "doublings of the retransmission timeout",
    ),
    row(
        ("options", ""),
        (5, 1),
        "bits of negotiated options: 1 timestamps, 2 SACK, 4 window scale, 8 ECN, 16 ECN seen, 32 data in SYN",
    ),
    row(
        ("wscale", ""),
        (6, 1),
        "window scales: the peer's in the low 4 bits, this host's in the high 4 bits",
    ),
    row(
        ("flags", ""),
        (7, 1),
        "bit 0: the delivery rate is limited by the application; bits 1 and 2: why TCP Fast Open failed",
    ),
    row(("rto", "us"), (8, 4), "retransmission timeout"),
    row(("ato", "us"), (12, 4), "delayed-acknowledgement timeout"),
    row(
        ("snd_mss", "bytes"),
        (16, 4),
        "maximum size of the segments that are sent",
    ),
    row(
        ("rcv_mss", "bytes"),
        (20, 4),
        "estimated size of the segments that are received",
    ),
    row(("unacked", "segments"), (24, 4), "segments in flight"),
    row(
        ("sacked", "segments"),
        (28, 4),
        "selectively acknowledged segments",
    ),
    row(("lost", "segments"), (32, 4), "segments presumed lost"),
    row(
        ("retrans", "segments"),
        (36, 4),
        "segments retransmitted and not acknowledged yet",
    ),
    row(
        ("fackets", "segments"),
        (40, 4),
        "forward acknowledged segments; 0 since Linux 4.15",
    ),
    row(
        ("last_data_sent", "ms"),
        (44, 4),
        "time since the last data segment was sent",
    ),
    row(
        ("last_ack_sent", "ms"),
        (48, 4),
        "time since the last acknowledgement was sent; the kernel does not fill it",
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
        "largest receive window that the host advertises",
    ),
    row(("rtt", "us"), (68, 4), "smoothed round-trip time"),
    row(
        ("rttvar", "us"),
        (72, 4),
        "variation of the round-trip time",
    ),
    row(
        ("snd_ssthresh", "segments"),
        (76, 4),
        "slow start threshold; 2147483647 means not yet set",
    ),
    row(("snd_cwnd", "segments"), (80, 4), "congestion window"),
    row(
        ("advmss", "bytes"),
        (84, 4),
        "maximum segment size that the host advertises",
    ),
    row(
        ("reordering", "segments"),
        (88, 4),
        "reordering that is tolerated",
    ),
    row(
        ("rcv_rtt", "us"),
        (92, 4),
        "round-trip time as the receiver estimates it",
    ),
    row(("rcv_space", "bytes"), (96, 4), "receive buffer space"),
    row(
        ("total_retrans", "segments"),
        (100, 4),
        "segments retransmitted since the connection began",
    ),
    row(
        ("pacing_rate", "bytes_per_second"),
        (104, 8),
        "pacing rate; 2^64 - 1 means none",
    ),
    row(
        ("max_pacing_rate", "bytes_per_second"),
        (112, 8),
        "highest pacing rate; 2^64 - 1 means no limit",
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
        "segments sent since the connection began",
    ),
    row(
        ("segs_in", ""),
        (140, 4),
        "segments received since the connection began",
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
        "received segments with data",
    ),
    row(("data_segs_out", ""), (156, 4), "sent segments with data"),
    row(
        ("delivery_rate", "bytes_per_second"),
        (160, 8),
        "most recent delivery rate",
    ),
    row(
        ("busy_time", "us"),
        (168, 8),
        "busy time: time with data in flight or waiting",
    ),
    row(
        ("rwnd_limited", "us"),
        (176, 8),
        "part of the busy time that the peer's receive window limited",
    ),
    row(
        ("sndbuf_limited", "us"),
        (184, 8),
        "part of the busy time that the send buffer limited",
    ),
    row(
        ("delivered", "segments"),
        (192, 4),
        "delivered segments, including out-of-order segments",
    ),
    row(
        ("delivered_ce", "segments"),
        (196, 4),
        "delivered segments with an ECN congestion mark",
    ),
    row(
        ("bytes_sent", ""),
        (200, 8),
        "bytes sent, including retransmissions",
    ),
    row(("bytes_retrans", ""), (208, 8), "bytes retransmitted"),
    row(
        ("dsack_dups", "segments"),
        (216, 4),
        "segments that the peer reported as received twice (DSACK)",
    ),
    row(("reord_seen", ""), (220, 4), "reordering events"),
    row(
        ("rcv_ooopack", "segments"),
        (224, 4),
        "segments received out of order",
    ),
    row(("snd_wnd", "bytes"), (228, 4), "the peer's receive window"),
    row(
        ("rcv_wnd", "bytes"),
        (232, 4),
        "receive window of this host",
    ),
    row(
        ("rehash", ""),
        (236, 4),
        "number of new flow hashes (other paths) that the kernel chose after timeouts",
    ),
    row(
        ("total_rto", ""),
        (240, 2),
        "retransmission timeouts since the connection began",
    ),
    row(
        ("total_rto_recoveries", ""),
        (242, 2),
        "recoveries after timeouts",
    ),
    row(
        ("total_rto_time", "ms"),
        (244, 4),
        "time in recovery after timeouts",
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
mod tests {
    use super::*;

    /// Nothing of the structure is left out and nothing is read twice.
    #[test]
    fn the_fields_cover_the_structure_without_gap_or_overlap() {
        let mut end = 0;
        for Row { offset, width, .. } in FIELDS {
            assert_eq!(*offset, end);
            end += width;
        }
        assert_eq!(end, TcpField::BYTES);
    }

    #[test]
    fn every_field_is_found_by_its_names() {
        for field in TcpField::all_fields() {
            assert_eq!(TcpField::from_name(&field.to_string()), Some(field));
            assert_eq!(TcpField::of_kernel(field.kernel_name()), Some(field));
        }
        assert_eq!(TcpField::from_name("snd_cwnd"), None);
        let window = TcpField::of_kernel("tcpi_snd_cwnd").map(|field| field.to_string());
        assert_eq!(window.as_deref(), Some("snd_cwnd_segments"));
    }

    #[test]
    fn the_page_of_the_store_describes_every_field() {
        let page = include_str!("../../../docs/schema.md");
        for field in TcpField::all_fields() {
            let row = format!("| `tcp_{field}` | {} |", field.about());
            assert!(page.contains(&row), "docs/schema.md lacks {row}");
        }
    }

    #[test]
    fn a_field_that_the_kernel_did_not_give_is_absent() {
        let mut bytes = [0; 100];
        bytes[68..72].copy_from_slice(&43_000_u32.to_ne_bytes());
        let read = |name| TcpField::of_kernel(name).and_then(|field| field.read(&bytes));
        assert_eq!(read("rtt"), Some(43_000));
        assert_eq!(read("total_retrans"), None);
    }
}
