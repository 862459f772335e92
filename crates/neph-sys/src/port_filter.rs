//! Letting only certain ports' TCP segments through to a raw socket, which otherwise gets a copy of
//! every segment that its host receives.
//!
//! Owns `SO_ATTACH_FILTER` with a program of classic BPF (Documentation/networking/filter.rst).

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::io;
use std::mem::size_of;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::stamp::Family;

/// `BPF_LDX | BPF_B | BPF_MSH`: the length of the IPv4 header at `k`; `BPF_LDX | BPF_IMM`: `k`.
const LENGTH_OF_HEADER: u16 = 0xb1;
const LENGTH_IS: u16 = 0x01;
/// `BPF_LD | BPF_H | BPF_IND`: two bytes, counted from that length.
const LOAD_BEHIND: u16 = 0x48;
/// `BPF_JMP | BPF_JGE | BPF_K` and `BPF_JGT`.
const JUMP_IF_LEAST: u16 = 0x35;
const JUMP_IF_ABOVE: u16 = 0x25;
/// `BPF_RET | BPF_K`
const RETURN: u16 = 0x06;
/// Offset of the destination port in a TCP header.
const DESTINATION: u32 = 2;
/// What is kept of a segment: the longest IPv4 header and the longest TCP header.
const KEPT: u32 = 120;
/// Instructions of the program.
const STEPS: u16 = 6;

/// Lets only segments to these local ports through, and of those the headers only.
///
/// # Errors
/// As setsockopt(2): `ENOMEM` where the kernel has no room for the program.
pub fn attach(
    socket: BorrowedFd<'_>,
    family: Family,
    ports: &RangeInclusive<u16>,
) -> io::Result<()> {
    #[expect(clippy::cast_possible_truncation, reason = "size of a small struct")]
    const SIZE: libc::socklen_t = size_of::<libc::sock_fprog>() as libc::socklen_t;
    let mut program = program(family, ports);
    let filter = libc::sock_fprog {
        len: STEPS,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the option reads a sock_fprog and the instructions that it points at, all alive for
    // the call, and their true sizes are passed.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            SIZE,
        )
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A raw IPv4 socket's filter sees the packet from its IP header on, an IPv6 one's from the TCP
/// header on.
fn program(family: Family, ports: &RangeInclusive<u16>) -> [libc::sock_filter; STEPS as usize] {
    let step = |code, k| libc::sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    };
    let header = match family {
        Family::V4 => LENGTH_OF_HEADER,
        Family::V6 => LENGTH_IS,
    };
    [
        step(header, 0),
        step(LOAD_BEHIND, DESTINATION),
        libc::sock_filter {
            jf: 2,
            ..step(JUMP_IF_LEAST, u32::from(*ports.start()))
        },
        libc::sock_filter {
            jt: 1,
            ..step(JUMP_IF_ABOVE, u32::from(*ports.end()))
        },
        step(RETURN, KEPT),
        step(RETURN, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel would, over a packet that begins where its filter sees it.
    fn passes(family: Family, ports: &RangeInclusive<u16>, packet: &[u8]) -> bool {
        let (mut at, mut word, mut header) = (0, 0, 0);
        let program = program(family, ports);
        loop {
            let libc::sock_filter { code, jt, jf, k } = program[at];
            let two = |from: usize| u32::from(u16::from_be_bytes([packet[from], packet[from + 1]]));
            let whether = |is: bool| usize::from(if is { jt } else { jf });
            at += 1;
            match code {
                LENGTH_OF_HEADER => header = usize::from(packet[0] & 0x0f) * 4,
                LENGTH_IS => header = k as usize,
                LOAD_BEHIND => word = two(header + k as usize),
                JUMP_IF_LEAST => at += whether(word >= k),
                JUMP_IF_ABOVE => at += whether(word > k),
                RETURN => return k > 0,
                other => panic!("instruction {other}"),
            }
        }
    }

    #[test]
    fn the_port_filter_passes_only_its_range() {
        for (port, through) in [
            (39_999, false),
            (40_000, true),
            (40_007, true),
            (40_008, false),
        ] {
            let port: u16 = port;
            let mut segment = vec![0; 24];
            segment[2..4].copy_from_slice(&port.to_be_bytes());
            let ports = 40_000..=40_007;
            assert_eq!(passes(Family::V6, &ports, &segment), through, "{port}");
            for header_words in [5, 15] {
                let mut packet = vec![0; header_words * 4];
                packet[0] = 0x40 | u8::try_from(header_words).expect("small");
                packet.extend(&segment);
                assert_eq!(passes(Family::V4, &ports, &packet), through, "{port}");
            }
        }
    }
}
