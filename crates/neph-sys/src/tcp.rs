//! What the kernel reports about a TCP connection, and the choice of its congestion control.
//!
//! Owns `TCP_INFO`, `TCP_CONGESTION` and the statistics that come with a send timestamp
//! (`SCM_TIMESTAMPING_OPT_STATS`, attributes `TCP_NLA_*` of linux/tcp.h).

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]
#![expect(clippy::cast_possible_truncation, reason = "sizes of small structs")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A connection's state at one moment. 0 where the kernel did not report a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpStats {
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow start threshold, segments.
    pub ssthresh: u32,
    /// Smoothed round-trip time, microseconds.
    pub srtt_us: u32,
    /// Least round-trip time, microseconds.
    pub min_rtt_us: u32,
    /// Segments retransmitted since the connection began.
    pub retransmissions: u32,
    /// Segments that the peer reported as received twice (DSACK) since the connection began.
    pub dsack_duplicates: u32,
    /// Delivery rate, bytes per second.
    pub delivery_rate: u64,
    /// Bytes that the peer acknowledged since the connection began ([`stats`] only).
    pub bytes_acked: u64,
    /// Bytes sent since the connection began, without those of retransmissions ([`stats`] only).
    pub bytes_sent: u64,
}

/// `struct tcp_info` of linux/tcp.h up to `tcpi_total_rto_time`, read by offset: libc's ends before
/// the counters of bytes. An older kernel fills less, and the rest stays 0.
const TCP_INFO_LEN: usize = 248;

const NLA_TOTAL_RETRANS: u16 = 5;
const NLA_DELIVERY_RATE: u16 = 7;
const NLA_SND_CWND: u16 = 8;
const NLA_MIN_RTT: u16 = 10;
const NLA_SND_SSTHRESH: u16 = 15;
const NLA_DSACK_DUPS: u16 = 20;
const NLA_SRTT: u16 = 22;

/// Reads the netlink attributes of a send timestamp: length u16, type u16, value, padded to 4 bytes.
pub(crate) fn from_netlink(mut data: &[u8]) -> TcpStats {
    let mut stats = TcpStats::default();
    while let Some((kind, value, rest)) = next_attribute(data) {
        let word = || value.try_into().map_or(0, u32::from_ne_bytes);
        let long = || value.try_into().map_or(0, u64::from_ne_bytes);
        match kind {
            NLA_TOTAL_RETRANS => stats.retransmissions = clamp(long()),
            NLA_DELIVERY_RATE => stats.delivery_rate = long(),
            NLA_SND_CWND => stats.cwnd = word(),
            NLA_MIN_RTT => stats.min_rtt_us = word(),
            NLA_SND_SSTHRESH => stats.ssthresh = word(),
            NLA_DSACK_DUPS => stats.dsack_duplicates = word(),
            NLA_SRTT => stats.srtt_us = word(),
            _ => {}
        }
        data = rest;
    }
    stats
}

fn clamp(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn next_attribute(data: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let len = usize::from(u16::from_ne_bytes(data.get(..2)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(data.get(2..4)?.try_into().ok()?);
    let value = data.get(4..len)?;
    let rest = data.get(len.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, value, rest))
}

/// A `struct tcp_info` as the kernel filled it.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    bytes: [u8; TCP_INFO_LEN],
    len: usize,
}

impl TcpInfo {
    /// Its beginning, as far as the kernel gave it.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }
}

/// Asks for all that the kernel reports of the connection now (0.8 us here).
///
/// # Errors
/// `EOPNOTSUPP` or `ENOTCONN`-like where the socket is no TCP socket.
pub fn info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut buffer = [0_u8; TCP_INFO_LEN];
    let mut len = buffer.len() as libc::socklen_t;
    // SAFETY: getsockopt writes at most `len` bytes into `reported`, which is that long.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            buffer.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    let len = len as usize;
    Ok(TcpInfo { bytes: buffer, len })
}

/// Asks for the connection's state now (0.8 us here).
///
/// # Errors
/// Those of [`info`].
pub fn stats(socket: BorrowedFd<'_>) -> io::Result<TcpStats> {
    let bytes_value = info(socket)?.bytes;
    let word = |at: usize| {
        u32::from_ne_bytes([
            bytes_value[at],
            bytes_value[at + 1],
            bytes_value[at + 2],
            bytes_value[at + 3],
        ])
    };
    let long = |at: usize| {
        let bytes = bytes_value[at..].first_chunk().copied();
        bytes.map_or(0, u64::from_ne_bytes)
    };
    Ok(TcpStats {
        cwnd: word(80),
        ssthresh: word(76),
        srtt_us: word(68),
        min_rtt_us: word(148),
        retransmissions: word(100),
        dsack_duplicates: word(216),
        delivery_rate: long(160),
        bytes_acked: long(120),
        bytes_sent: long(200).saturating_sub(long(208)),
    })
}

/// Chooses the congestion control of this socket. In a network namespace of its own this is the
/// only way to one that the namespace's default does not allow.
///
/// # Errors
/// `ENOENT` for an algorithm the kernel does not have, `EPERM` for one it reserves to root.
pub fn set_congestion_control(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // A route can lock its algorithm (`congctl lock`, as the lab's routes do): then every choice
    // is refused, even of that very algorithm (`EPERM`, seen here).
    if congestion_control(socket).is_ok_and(|current| current == name) {
        return Ok(());
    }
    // SAFETY: setsockopt reads name.len() bytes of `name`.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            libc::socklen_t::try_from(name.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        )
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The congestion control of this socket, by name.
///
/// # Errors
/// Where the socket is no TCP socket.
pub fn congestion_control(socket: BorrowedFd<'_>) -> io::Result<String> {
    let mut name = [0_u8; 16];
    let mut len = name.len() as libc::socklen_t;
    // SAFETY: getsockopt writes at most `len` bytes into `name`, which is that long.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    let end = name
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    #[test]
    fn the_congestion_control_is_set_and_tcp_info_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connect");
        set_congestion_control(stream.as_fd(), "reno").expect("every kernel has reno");
        assert_eq!(
            congestion_control(stream.as_fd()).expect("reported"),
            "reno"
        );
        let before = stats(stream.as_fd()).expect("reported");
        assert!(before.cwnd > 0);
        let (mut server, _) = listener.accept().expect("accept");
        std::io::Write::write_all(&mut &stream, &[7; 5000]).expect("write");
        std::io::Read::read_exact(&mut server, &mut [0; 5000]).expect("read");
        // A delayed acknowledgement takes up to 40 ms; a write back carries it at once.
        std::io::Write::write_all(&mut server, b"x").expect("write");
        std::io::Read::read_exact(&mut &stream, &mut [0]).expect("read");
        let after = stats(stream.as_fd()).expect("reported");
        // Linux 4.1 gives 136 bytes at least; each kernel gives as many as it knows.
        let tcp_info = info(stream.as_fd()).expect("reported");
        assert!((136..=TCP_INFO_LEN).contains(&tcp_info.bytes().len()));
        assert_eq!(after.bytes_acked - before.bytes_acked, 5000);
        assert!(after.srtt_us > 0 && after.min_rtt_us > 0);
        assert!(set_congestion_control(stream.as_fd(), "nonesuch").is_err());
    }

    #[test]
    fn retransmissions_and_the_duplicates_among_them_are_read() {
        let mut data = Vec::new();
        data.extend(12_u16.to_ne_bytes());
        data.extend(NLA_TOTAL_RETRANS.to_ne_bytes());
        data.extend(7_u64.to_ne_bytes());
        data.extend(8_u16.to_ne_bytes());
        data.extend(NLA_DSACK_DUPS.to_ne_bytes());
        data.extend(5_u32.to_ne_bytes());
        let stats = from_netlink(&data);
        assert_eq!((stats.retransmissions, stats.dsack_duplicates), (7, 5));
    }

    /// The kernel keeps eight times the value, and divides it by eight (`tcp_get_timestamping_opt_stats`).
    #[test]
    fn the_smoothed_rtt_is_read_in_microseconds() {
        let mut data = Vec::new();
        for (kind, value) in [(NLA_MIN_RTT, 20_135_u32), (NLA_SRTT, 20_190)] {
            data.extend(8_u16.to_ne_bytes());
            data.extend(kind.to_ne_bytes());
            data.extend(value.to_ne_bytes());
        }
        let stats = from_netlink(&data);
        assert_eq!((stats.min_rtt_us, stats.srtt_us), (20_135, 20_190));
    }

    #[test]
    fn a_truncated_attribute_ends_the_parsing() {
        let mut data = Vec::new();
        data.extend(8_u16.to_ne_bytes());
        data.extend(NLA_SND_CWND.to_ne_bytes());
        data.extend(17_u32.to_ne_bytes());
        data.extend([200, 0, 9]);
        assert_eq!(from_netlink(&data).cwnd, 17);
        for len in 0..data.len() {
            from_netlink(&data[..len]);
        }
    }
}
