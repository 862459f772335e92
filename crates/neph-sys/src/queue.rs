//! Whether an interface holds packets back before they leave.
//!
//! Owns the netlink request for its queueing discipline. Capture points before and behind the queue
//! have different timestamps for the same packet.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::ring::interface_index;

/// `RTM_GETLINK` of `linux/rtnetlink.h` and what it is answered by, `IFLA_QDISC`, and where a message's own
/// header, the link's and its attributes are.
const GET_LINK: u16 = 18;
const NEW_LINK: u16 = 16;
const QDISC: u16 = 6;
const HEADER: usize = 16;
const ATTRIBUTES_AT: usize = 32;

/// The name of the interface's queueing discipline, as `ip link` shows it: `noqueue` where packets leave
/// as they are sent.
///
/// # Errors
/// There is no such interface in the calling thread's network namespace.
pub fn discipline(interface: &str) -> io::Result<String> {
    let index =
        interface_index(interface).ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
    let mut request = [0_u8; ATTRIBUTES_AT];
    request[0..4].copy_from_slice(&32_u32.to_ne_bytes());
    request[4..6].copy_from_slice(&GET_LINK.to_ne_bytes());
    request[6..8].copy_from_slice(&1_u16.to_ne_bytes());
    request[HEADER + 4..HEADER + 8].copy_from_slice(&index.to_ne_bytes());
    let mut answer = vec![0; 1 << 16];
    let length = ask(&request, &mut answer)?;
    find(&answer[..length.min(answer.len())])
        .ok_or_else(|| io::Error::other("the kernel does not report its queueing discipline"))
}

fn ask(request: &[u8], answer: &mut [u8]) -> io::Result<usize> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes integers only.
    let raw = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor and it has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: the request lives for the call and its length is passed.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            request.as_ptr().cast(),
            request.len(),
            0,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the answer lives for the call, is borrowed to be written, and its length is passed. The
    // kernel has answered before `send` returned.
    let received = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            answer.as_mut_ptr().cast(),
            answer.len(),
            libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// The discipline in the answer.
fn find(answer: &[u8]) -> Option<String> {
    let half = |at: usize| Some(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    // An error has other fields there: the interface is away by now.
    if half(4)? != NEW_LINK {
        return None;
    }
    let mut at = ATTRIBUTES_AT;
    loop {
        let length = usize::from(half(at)?);
        if half(at + 2)? == QDISC {
            let name = answer.get(at + 4..at + length)?;
            let name = name.strip_suffix(b"\0").unwrap_or(name);
            return String::from_utf8(name.to_vec()).ok();
        }
        // Attributes begin at multiples of four.
        at += length.max(4).next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_link_answer_contains_a_queue_discipline() {
        let answer = |kind: u16| {
            let mut answer = vec![0; ATTRIBUTES_AT];
            answer[4..6].copy_from_slice(&kind.to_ne_bytes());
            for half in [5_u16, 1] {
                answer.extend(half.to_ne_bytes());
            }
            answer.extend([7, 0, 0, 0]);
            for half in [11_u16, QDISC] {
                answer.extend(half.to_ne_bytes());
            }
            answer.extend(b"noqueue");
            answer
        };
        assert_eq!(find(&answer(NEW_LINK)).as_deref(), Some("noqueue"));
        assert_eq!(find(&answer(2)), None);
        let truncated = answer(NEW_LINK);
        assert_eq!(find(&truncated[..truncated.len() - 1]), None);
    }

    #[test]
    fn loopback_has_noqueue_and_a_missing_interface_is_an_error() {
        assert_eq!(discipline("lo").expect("lo"), "noqueue");
        let missing = discipline("nephnone").expect_err("not there");
        assert_eq!(missing.raw_os_error(), Some(libc::ENODEV));
    }
}
