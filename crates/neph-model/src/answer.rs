//! The answer to a message, or the reason that there is none.
//!
//! Owns the names and codes of answers. Does not own their times (timestamps), nor whether the
//! message counts as replied ([`crate::Outcome`]).

mod named;
mod numbered;

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DnsReply, MqttRefusal, SynAnswer};
use named::FIXED_ANSWERS;
use numbered::{NUMBERED, NumberedAnswers, numbered};

/// The answer to a message as its protocol names it, or the reason that there is none.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "String", try_from = "String")]
pub enum Answer {
    /// The answer to a TCP SYN.
    Syn(SynAnswer),
    /// The status code of an HTTP response (RFC 9110, 15): 100 to 999.
    HttpStatus(u16),
    /// The code of a WebSocket close frame (RFC 6455, 7.4) that arrived instead of a reply: 1000 to
    /// 4999.
    WebSocketClose(u16),
    /// The response code of a DNS response. Any response is a reply.
    Dns(DnsReply),
    /// The code of an MQTT CONNACK that refuses the connection.
    Mqtt(MqttRefusal),
    /// An ICMP error in response to the request.
    Icmp(IcmpKind),
    /// The stream ended or broke before the reply was complete.
    Truncated,
    /// The peer closed the connection before it replied.
    Closed,
    /// The peer reset the connection before it replied.
    Reset,
    /// TLS failed before the request could be sent.
    TlsFailed,
    /// The client host could not send the request.
    Local(LocalFault),
}

/// The kind of an ICMP error; the same names for IPv4 (RFC 792) and IPv6 (RFC 4443).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IcmpKind {
    /// No route to the network.
    NetUnreachable,
    /// The network is reachable, the host is not.
    HostUnreachable,
    /// The host does not support the protocol.
    ProtocolUnreachable,
    /// No process listens at the port.
    PortUnreachable,
    /// A filter prohibits it.
    Prohibited,
    /// The packet is too big for a link and may not be fragmented.
    TooBig,
    /// The hop limit was exceeded.
    TimeExceeded,
}

/// Why the client host could not send a request.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LocalFault {
    /// No local port is free for the target (`EADDRNOTAVAIL`, `EADDRINUSE`).
    NoPort,
    /// No file descriptor is left for the process or the system (`EMFILE`, `ENFILE`).
    NoDescriptor,
    /// A queue or buffer of the kernel is full (`ENOBUFS`).
    NoBuffer,
    /// The kernel has no memory left (`ENOMEM`).
    NoMemory,
    /// The firewall or a policy of the client host refuses it (`EPERM`, `EACCES`).
    Forbidden,
    /// The client host has no route to the target (`ENETUNREACH`, `ENETDOWN`).
    NoRoute,
    /// The datagram is larger than the interface's MTU or the known path MTU (`EMSGSIZE`).
    TooLarge,
    /// The client host was too late to send the request: neph was suspended, or had too little CPU
    /// time.
    #[serde(rename = "late")]
    SendTooLate,
    /// The request would have exceeded the cap on the rate.
    RateCap,
}

impl Answer {
    /// The name in files and output: `syn-ack`, `http-503`, `ws-close-1011`, `truncated`.
    pub fn name(self) -> Cow<'static, str> {
        if let Some(row) = NumberedAnswers::of(self.code()) {
            return (row.name)(self.code()).into();
        }
        named::row(self).map_or("", |row| row.name).into()
    }

    /// The answer of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        for row in NUMBERED {
            if let Some(code) = (row.from_name)(name) {
                return row.codes.contains(&code).then(|| (row.answer)(code));
            }
        }
        let mut rows = FIXED_ANSWERS.iter();
        rows.find(|row| row.name == name).map(|row| row.answer)
    }

    /// The number for it in journals: a status or close code is its own number.
    pub fn code(self) -> u16 {
        let numbered = NUMBERED.iter().find_map(|row| (row.code)(self));
        let code = numbered.or_else(|| Some(named::row(self)?.code));
        debug_assert!(code.is_some(), "{self:?} has no row");
        code.unwrap_or(0)
    }

    /// The answer of that number.
    pub fn from_code(code: u16) -> Option<Self> {
        if let Some(row) = NumberedAnswers::of(code) {
            return Some((row.answer)(code));
        }
        let mut rows = FIXED_ANSWERS.iter();
        rows.find(|row| row.code == code).map(|row| row.answer)
    }

    /// Whether a message whose connection, or path, ended with it is an error: a server or router
    /// answered. Otherwise such a message is lost. Of a reply, the codec decides whether it is an
    /// error. Also whether warnings name it as an unexpected answer: true if a reply with it can be
    /// an error.
    pub const fn is_error(self) -> bool {
        match self {
            Self::HttpStatus(_) | Self::WebSocketClose(_) | Self::Icmp(_) | Self::Truncated => true,
            Self::Dns(_)
            | Self::Mqtt(_)
            | Self::Syn(_)
            | Self::Closed
            | Self::Reset
            | Self::TlsFailed
            | Self::Local(_) => false,
        }
    }

    /// Whether the answer only reports success.
    pub fn is_plain_success(self) -> bool {
        let noerror = DnsReply::from_number(0);
        matches!(self, Self::HttpStatus(200))
            || matches!(self, Self::Dns(reply) if reply == noerror)
    }

    /// What happened, in a few words that complete a sentence of any outcome ("12 not sent: ...",
    /// "no reply: ...").
    pub fn description(self) -> Cow<'static, str> {
        match self {
            Self::Syn(SynAnswer::SynAck) => "SYN-ACK".into(),
            Self::Syn(SynAnswer::Rst) => "RST".into(),
            numbered!() => NumberedAnswers::of(self.code())
                .map_or_else(String::new, |row| (row.description)(self.code()))
                .into(),
            Self::Icmp(kind) => kind.description().into(),
            Self::Truncated => "reply cut off".into(),
            Self::Closed => "connection closed by the peer".into(),
            Self::Reset => "connection reset by the peer".into(),
            Self::TlsFailed => "TLS failed".into(),
            Self::Local(fault) => fault.description().into(),
        }
    }
}

impl IcmpKind {
    const fn description(self) -> &'static str {
        match self {
            Self::NetUnreachable => "ICMP: network unreachable",
            Self::HostUnreachable => "ICMP: host unreachable",
            Self::ProtocolUnreachable => "ICMP: protocol unreachable",
            Self::PortUnreachable => "ICMP: port unreachable",
            Self::Prohibited => "ICMP: prohibited by a filter",
            Self::TooBig => "ICMP: packet too big",
            Self::TimeExceeded => "ICMP: hop limit exceeded",
        }
    }
}

impl LocalFault {
    const fn description(self) -> &'static str {
        match self {
            Self::NoPort => "this host has no free local port",
            Self::NoDescriptor => "this host has no file descriptor left",
            Self::NoBuffer => "this host's send buffer is full",
            Self::NoMemory => "this host's kernel has no memory left",
            Self::Forbidden => "this host's firewall or policy refuses it",
            Self::NoRoute => "this host has no route to the target",
            Self::TooLarge => "the datagram exceeds the MTU that this host knows",
            Self::SendTooLate => "this host was stopped or too slow when they were due",
            Self::RateCap => "the cap on the rate was reached",
        }
    }

    /// What the user can do about it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::NoPort => {
                "widen net.ipv4.ip_local_port_range, send less often, or keep connections open"
            }
            Self::NoDescriptor => "raise the limit with ulimit -n, or use fewer connections",
            Self::NoBuffer => "send less often, or raise net.core.wmem_max and the queue's length",
            Self::NoMemory => "free memory, or raise net.ipv4.tcp_mem",
            Self::Forbidden => {
                "check this host's output rules (nft list ruleset, iptables -L OUTPUT)"
            }
            Self::NoRoute => "check this host's routes (ip route get ADDRESS)",
            Self::TooLarge => "send smaller datagrams, or raise the interface's MTU",
            Self::SendTooLate => "leave the process running, free a CPU core, or send less often",
            Self::RateCap => "send less often, or raise the cap with --rate-cap",
        }
    }
}

impl From<Answer> for String {
    fn from(answer: Answer) -> Self {
        answer.name().into_owned()
    }
}

impl TryFrom<String> for Answer {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::from_name(&name).ok_or_else(|| format!("'{name}' is no answer"))
    }
}

/// Number of times that each answer arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers(BTreeMap<Answer, u64>);

impl Answers {
    /// Counts one.
    pub fn count(&mut self, answer: Option<Answer>) {
        if let Some(answer) = answer {
            *self.0.entry(answer).or_default() += 1;
        }
    }

    /// Each answer with its count, in the order of the enum.
    pub fn iter(&self) -> impl Iterator<Item = (Answer, u64)> {
        self.0.iter().map(|(answer, count)| (*answer, *count))
    }

    /// The most frequent of the answers for which `choose` returns a value, with that value and its
    /// count.
    pub fn most_frequent<T>(&self, choose: impl Fn(Answer) -> Option<T>) -> Option<(T, u64)> {
        let chosen = self
            .iter()
            .filter_map(|(answer, count)| Some((choose(answer)?, count)));
        chosen.max_by_key(|(_, count)| *count)
    }

    /// Number of times that this answer arrived.
    pub fn of(&self, answer: Answer) -> u64 {
        self.0.get(&answer).copied().unwrap_or(0)
    }

    /// Whether no answer arrived.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests;
