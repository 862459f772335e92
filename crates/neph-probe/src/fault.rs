//! The meaning of a failed system call for a message: a fault of this host, or an answer of the network.
//!
//! Owns the mapping from errno to an answer. Does not own the wording ([`neph_model::Answer`]), nor the fault
//! of this host that an errno names ([`LocalFault::of`]).

use std::io;

use neph_model::{Answer, IcmpKind, LocalFault, SynAnswer, failed_call};

use crate::codec::ConnectionEnd;

/// errno values of Linux that `io::ErrorKind` does not name, or not on stable Rust.
mod errno {
    pub(super) const EACCES: i32 = 13;
    pub(super) const EMSGSIZE: i32 = 90;
    pub(super) const ENETUNREACH: i32 = 101;
    pub(super) const ECONNRESET: i32 = 104;
    pub(super) const ECONNREFUSED: i32 = 111;
    pub(super) const EHOSTUNREACH: i32 = 113;
    pub(super) const EPIPE: i32 = 32;
}

/// Whether a socket's time limit was over.
pub(crate) fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
    )
}

/// When the error became known, which shows its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorTime {
    /// As the result of the call itself.
    AtOnce,
    /// Later, as the socket's pending error: a packet must have come back.
    Later,
}

/// The meaning of the error for the affected messages.
pub(crate) fn answer_of(error: &io::Error, error_time: ErrorTime) -> Option<Answer> {
    let icmp = |kind| Some(Answer::Icmp(kind));
    match (error.raw_os_error()?, error_time) {
        (errno::ECONNREFUSED, _) => Some(Answer::Syn(SynAnswer::Rst)),
        (errno::ECONNRESET | errno::EPIPE, _) => Some(Answer::Reset),
        (errno::EHOSTUNREACH, _) => icmp(IcmpKind::HostUnreachable),
        (errno::ENETUNREACH, ErrorTime::Later) => icmp(IcmpKind::NetUnreachable),
        (errno::EACCES, ErrorTime::Later) => icmp(IcmpKind::Prohibited),
        (errno::EMSGSIZE, ErrorTime::Later) => icmp(IcmpKind::TooBig),
        _ => LocalFault::of(error).map(Answer::Local),
    }
}

/// The same for a datagram: instead of a RST, its peer sends an ICMP error.
pub(crate) fn answer_of_datagram(error: &io::Error, error_time: ErrorTime) -> Option<Answer> {
    match answer_of(error, error_time) {
        Some(Answer::Syn(SynAnswer::Rst)) => Some(Answer::Icmp(IcmpKind::PortUnreachable)),
        other => other,
    }
}

/// The error as a sentence. A fault of this host is named as one, with a remedy.
pub(crate) fn sentence(doing: &str, error: &io::Error, answer: Option<Answer>) -> String {
    let fault = match answer {
        Some(Answer::Local(fault)) => Some(fault),
        _ => None,
    };
    failed_call(doing, error, fault)
}

/// The error alone in words, without the operation.
pub(crate) fn error_text(error: &io::Error) -> String {
    let answer = answer_of(error, ErrorTime::AtOnce);
    let message = sentence("", error, answer);
    message.trim_start_matches(": ").to_owned()
}

/// The end of a connection whose socket failed while `doing` something.
pub(crate) fn to_connection_end(
    doing: &str,
    error: &io::Error,
    error_time: ErrorTime,
) -> ConnectionEnd {
    let answer = answer_of(error, error_time);
    ConnectionEnd::new(sentence(doing, error, answer), answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPERM: i32 = 1;
    const ENOMEM: i32 = 12;
    const EMFILE: i32 = 24;
    const EADDRNOTAVAIL: i32 = 99;
    const ENOBUFS: i32 = 105;

    #[test]
    fn local_faults_have_a_remedy_and_refusals_come_from_the_peer() {
        let message_of = |errno| {
            let error = io::Error::from_raw_os_error(errno);
            let end = to_connection_end("connect to 192.0.2.1:80", &error, ErrorTime::AtOnce);
            (end.answer, end.reason)
        };
        for (errno, fault, word) in [
            (EADDRNOTAVAIL, LocalFault::NoPort, "ip_local_port_range"),
            (EMFILE, LocalFault::NoDescriptor, "ulimit -n"),
            (ENOBUFS, LocalFault::NoBuffer, "wmem_max"),
            (ENOMEM, LocalFault::NoMemory, "tcp_mem"),
            (EPERM, LocalFault::Forbidden, "nft list ruleset"),
            (errno::ENETUNREACH, LocalFault::NoRoute, "ip route get"),
            (errno::EMSGSIZE, LocalFault::TooLarge, "MTU"),
        ] {
            let (answer, why) = message_of(errno);
            assert_eq!(answer, Some(Answer::Local(fault)));
            assert!(why.contains("this host") && why.contains(word), "{why}");
        }
        let (answer, why) = message_of(errno::ECONNREFUSED);
        assert_eq!(answer, Some(Answer::Syn(SynAnswer::Rst)));
        assert_eq!(why, "connect to 192.0.2.1:80: Connection refused");
    }

    #[test]
    fn icmp_errors_are_no_local_faults() {
        let error = io::Error::from_raw_os_error(errno::ENETUNREACH);
        let at = |error_time| answer_of(&error, error_time);
        assert_eq!(
            at(ErrorTime::AtOnce),
            Some(Answer::Local(LocalFault::NoRoute))
        );
        assert_eq!(
            at(ErrorTime::Later),
            Some(Answer::Icmp(IcmpKind::NetUnreachable))
        );
        let refused = io::Error::from_raw_os_error(errno::ECONNREFUSED);
        let of_udp = answer_of_datagram(&refused, ErrorTime::Later);
        assert_eq!(of_udp, Some(Answer::Icmp(IcmpKind::PortUnreachable)));
    }
}
