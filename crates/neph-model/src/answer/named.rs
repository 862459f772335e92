//! Answers whose name does not contain a number of their protocol.
//!
//! Owns their names and codes.

use super::numbered::numbered;
use super::{Answer, IcmpKind, LocalFault};
use crate::SynAnswer;

/// A row of the table: an answer, its code and its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerRow {
    pub(super) answer: Answer,
    /// What journals store: below 100, where no number of a protocol is.
    pub(super) code: u16,
    pub(super) name: &'static str,
}

/// The table, and the row of each answer: without its row a new answer does not compile.
macro_rules! rows {
    ($($kind:ident $(($which:path))?, $code:literal, $name:literal;)*) => {
        pub(super) const FIXED_ANSWERS: &[AnswerRow] = &[$(AnswerRow {
            answer: Answer::$kind $(($which))?,
            code: $code,
            name: $name,
        }),*];

        /// The row of an answer; none for those that contain a number.
        pub(super) const fn row(answer: Answer) -> Option<AnswerRow> {
            match answer {
                $(Answer::$kind $(($which))? => Some(AnswerRow {
                    answer,
                    code: $code,
                    name: $name,
                }),)*
                numbered!() => None,
            }
        }
    };
}

// A code is never used again. A new group begins at the next ten that is free.
rows! {
    Syn(SynAnswer::SynAck), 1, "syn-ack";
    Syn(SynAnswer::Rst), 2, "rst";
    Truncated, 3, "truncated";
    Closed, 4, "closed";
    Reset, 5, "reset";
    TlsFailed, 6, "tls-failed";
    Icmp(IcmpKind::NetUnreachable), 10, "icmp-net-unreachable";
    Icmp(IcmpKind::HostUnreachable), 11, "icmp-host-unreachable";
    Icmp(IcmpKind::ProtocolUnreachable), 12, "icmp-protocol-unreachable";
    Icmp(IcmpKind::PortUnreachable), 13, "icmp-port-unreachable";
    Icmp(IcmpKind::Prohibited), 14, "icmp-prohibited";
    Icmp(IcmpKind::TooBig), 15, "icmp-packet-too-big";
    Icmp(IcmpKind::TimeExceeded), 16, "icmp-time-exceeded";
    Local(LocalFault::NoPort), 20, "local-no-port";
    Local(LocalFault::NoDescriptor), 21, "local-no-file-descriptor";
    Local(LocalFault::NoBuffer), 22, "local-no-buffer";
    Local(LocalFault::NoMemory), 23, "local-no-memory";
    Local(LocalFault::Forbidden), 24, "local-forbidden";
    Local(LocalFault::NoRoute), 25, "local-no-route";
    Local(LocalFault::TooLarge), 26, "local-too-large";
    Local(LocalFault::SendTooLate), 27, "local-late";
    Local(LocalFault::RateCap), 28, "local-rate-cap";
}
