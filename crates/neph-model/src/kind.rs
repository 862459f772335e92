//! The kinds of probe, and the properties of each.
//!
//! Owns the table of kinds: a row is a kind. Building and reading of messages is in neph-probe.
//! Code queries a property; only the code that carries out a kind checks which one it is.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ByteSize;
use crate::authority::InvalidTargetPart;
use crate::dns_question::DnsQuestion;

/// The question of a DNS target.
const DNS_PATH: PathRule = PathRule::Checked {
    check: DnsQuestion::check,
    example: "/example.org?type=A",
};

/// The longest payload of a WebSocket ping (RFC 6455, section 5.5), which every server returns
/// unchanged.
pub const LONGEST_WS_PING: ByteSize = ByteSize(125);

/// The longest payload of a datagram (RFC 768: 65,535 less the IPv4 and UDP headers).
const LONGEST_DATAGRAM: ByteSize = ByteSize(65_507);

/// What carries the messages of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP connection.
    Connection,
    /// Single TCP segments, without a connection.
    Segment,
    /// UDP datagrams.
    Udp,
    /// ICMP.
    Icmp,
}

/// How large the payload of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSize {
    /// The requested size, but at least this number of bytes, which contain the request's number.
    AtLeast(u64),
    /// The requested size, but at least a STAMP packet (RFC 8762).
    Stamp,
    /// The protocol decides, and no size can be requested; with the reason, in a sentence.
    Fixed(&'static str),
}

/// What a target may have after its port.
#[derive(Clone, Copy, Debug)]
pub enum PathRule {
    /// Nothing.
    None,
    /// Path and query of an HTTP URL.
    Http,
    /// A path and query of a meaning of its own.
    Checked {
        /// What is wrong with it, if anything.
        check: fn(&str) -> Result<(), InvalidTargetPart>,
        /// One that is right.
        example: &'static str,
    },
}

/// Whether neph asks the target with an HTTP HEAD, before a flow begins, if it is a neph reflector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identification {
    /// Not asked: no reflector answers messages of this kind.
    None,
    /// Asked, but third-party servers may not understand the question.
    Optional,
    /// Asked: every server of this kind understands HTTP and answers.
    Required,
}

/// What is known of a kind.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, named where a kind has it"
)]
pub struct KindProperties {
    /// The word for it in plans, output and stores.
    pub name: &'static str,
    /// What carries its messages.
    pub transport: Transport,
    /// How it measures, to complete "TARGET, ...".
    pub method: &'static str,
    /// How large its requests are.
    pub request_size: RequestSize,
    /// The largest payload of a request and of a reply.
    pub most_payload: ByteSize,
    /// The largest request that every server returns unchanged; `None` if servers reply with
    /// something else.
    pub longest_echo: Option<ByteSize>,
    /// What its targets have after the port.
    pub path: PathRule,
    /// Whether neph asks the target first if it is a neph reflector.
    pub identification: Identification,
    /// Whether only a neph reflector answers its messages: at other servers, connection attempts
    /// are measured.
    pub needs_reflector: bool,
    /// Whether client and server exchange an opening of the protocol before the first request.
    pub has_opening: bool,
    /// Whether a request is sent on a connection while an earlier one has no reply yet: not if a
    /// late reply would delay the next.
    pub is_pipelined: bool,
    /// Whether its targets may have a user name and a password.
    pub has_credentials: bool,
    /// Whether a reply has a status of HTTP.
    pub has_status: bool,
    /// Whether the reply's payload contains a reflector's timestamps.
    pub has_marks_in_payload: bool,
    /// Whether a key authenticates its messages.
    pub has_key: bool,
    /// Whether the peer's kernel answers, and no program.
    pub is_answered_by_kernel: bool,
    /// Whether many flows can be carried by one thread: a fleet.
    pub has_fleets: bool,
    /// Whether many of its messages may be taken for an attack, so that their rate has a low cap.
    pub may_look_like_attack: bool,
}

impl KindProperties {
    /// What most kinds on a connection have in common.
    const CONNECTION: Self = Self {
        name: "",
        transport: Transport::Connection,
        method: "",
        request_size: RequestSize::AtLeast(12),
        most_payload: ByteSize(64 << 20),
        longest_echo: None,
        path: PathRule::None,
        identification: Identification::None,
        needs_reflector: false,
        has_opening: false,
        is_pipelined: true,
        has_credentials: false,
        has_status: false,
        has_marks_in_payload: false,
        has_key: false,
        is_answered_by_kernel: false,
        has_fleets: false,
        may_look_like_attack: false,
    };
    /// What datagrams have in common.
    const DATAGRAM: Self = Self {
        transport: Transport::Udp,
        most_payload: LONGEST_DATAGRAM,
        ..Self::CONNECTION
    };
}

macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident = $properties:expr;)*) => {
        /// The kind of probe.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum ProbeKind {
            $($(#[$about])* $kind,)*
        }

        impl ProbeKind {
            /// Every kind, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// What is known of it.
            pub const fn properties(self) -> &'static KindProperties {
                match self {
                    $(Self::$kind => const { &$properties },)*
                }
            }
        }
    };
}

kinds! {
    /// WebSocket messages on one persistent connection.
    Ws = KindProperties {
        name: "ws",
        // Whether the server supports WebSocket is known after the upgrade only.
        method: "measured by WebSocket ping and pong",
        longest_echo: Some(LONGEST_WS_PING),
        path: PathRule::Http,
        identification: Identification::Required,
        has_opening: true,
        has_marks_in_payload: true,
        ..KindProperties::CONNECTION
    };
    /// HTTP requests, on a persistent connection or with one connection each.
    Http = KindProperties {
        name: "http",
        method: "measured by GET",
        path: PathRule::Http,
        identification: Identification::Required,
        is_pipelined: false,
        has_credentials: true,
        has_status: true,
        ..KindProperties::CONNECTION
    };
    /// Length-framed messages on TCP, or connection attempts only.
    Tcp = KindProperties {
        name: "tcp",
        method: "a TCP server: measured by connection attempts",
        identification: Identification::Optional,
        needs_reflector: true,
        has_opening: true,
        has_marks_in_payload: true,
        has_fleets: true,
        ..KindProperties::CONNECTION
    };
    /// STAMP packets (RFC 8762).
    Udp = KindProperties {
        name: "udp",
        method: "measured by STAMP",
        request_size: RequestSize::Stamp,
        longest_echo: Some(LONGEST_DATAGRAM),
        identification: Identification::Optional,
        has_key: true,
        has_fleets: true,
        ..KindProperties::DATAGRAM
    };
    /// ICMP echo.
    Icmp = KindProperties {
        name: "icmp",
        transport: Transport::Icmp,
        method: "ICMP echo",
        longest_echo: Some(LONGEST_DATAGRAM),
        is_answered_by_kernel: true,
        ..KindProperties::DATAGRAM
    };
    /// A TCP SYN and the answer to it; no connection results. A SYN has no payload, so that no size
    /// is too large for it.
    Syn = KindProperties {
        name: "syn",
        transport: Transport::Segment,
        method: "TCP SYN, answered by SYN-ACK or RST",
        request_size: RequestSize::Fixed("a SYN carries no payload"),
        is_answered_by_kernel: true,
        has_fleets: true,
        may_look_like_attack: true,
        ..KindProperties::CONNECTION
    };
    /// DNS queries over UDP (RFC 1035).
    Dns = KindProperties {
        name: "dns",
        method: "measured by DNS queries over UDP",
        request_size: RequestSize::Fixed("a DNS query is as long as its question"),
        path: DNS_PATH,
        ..KindProperties::DATAGRAM
    };
    /// DNS queries over TCP (RFC 7766).
    DnsTcp = KindProperties {
        name: "dns-tcp",
        method: "measured by DNS queries over TCP",
        // Servers may take one query after the other, and end connections whenever they like.
        is_pipelined: false,
        request_size: RequestSize::Fixed("a DNS query is as long as its question"),
        path: DNS_PATH,
        ..KindProperties::CONNECTION
    };
    /// MQTT 3.1.1: PINGREQ and PINGRESP on a connection that CONNECT opens.
    Mqtt = KindProperties {
        name: "mqtt",
        method: "measured by MQTT PINGREQ and PINGRESP",
        request_size: RequestSize::Fixed("an MQTT PINGREQ has 2 bytes"),
        has_opening: true,
        // A PINGRESP carries no number.
        is_pipelined: false,
        has_credentials: true,
        ..KindProperties::CONNECTION
    };
}

impl ProbeKind {
    /// The name in plans, output and stores.
    pub const fn name(self) -> &'static str {
        self.properties().name
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut kinds = Self::ALL.iter().copied();
        kinds.find(|kind| kind.name() == name)
    }

    /// The IP protocol that carries it, as text.
    pub const fn protocol(self) -> &'static str {
        match self.properties().transport {
            Transport::Connection | Transport::Segment => "TCP",
            Transport::Udp => "UDP",
            Transport::Icmp => "ICMP",
        }
    }

    /// Whether its messages run on a TCP connection. Others' replies are as long as their requests,
    /// for any requested size (RFC 8762, section 4.2.1; RFC 792).
    pub const fn uses_connection(self) -> bool {
        matches!(self.properties().transport, Transport::Connection)
    }

    /// Whether each message is a datagram of UDP or ICMP.
    pub const fn is_datagram(self) -> bool {
        matches!(
            self.properties().transport,
            Transport::Udp | Transport::Icmp
        )
    }

    /// Whether it is an ICMP echo, as it runs alongside other kinds.
    pub const fn is_echo(self) -> bool {
        matches!(self.properties().transport, Transport::Icmp)
    }

    /// Whether each message is a single TCP segment.
    pub const fn is_segment(self) -> bool {
        matches!(self.properties().transport, Transport::Segment)
    }

    /// Whether the size of its requests can be chosen.
    pub const fn has_request_size(self) -> bool {
        !matches!(self.properties().request_size, RequestSize::Fixed(_))
    }

    /// Whether the size of its replies can be chosen, apart from that of its requests.
    pub const fn has_reply_size(self) -> bool {
        self.uses_connection() && self.has_request_size()
    }

    /// Whether neph asks the target first if it is a neph reflector.
    pub const fn is_identified(self) -> bool {
        !matches!(self.properties().identification, Identification::None)
    }

    /// Whether its peers have ports.
    pub const fn has_ports(self) -> bool {
        !matches!(self.properties().transport, Transport::Icmp)
    }
}

impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_parsed_from_its_name() {
        for kind in ProbeKind::ALL {
            assert_eq!(ProbeKind::from_name(kind.name()), Some(*kind));
            let serialised = serde_json::to_value(kind).expect("a word");
            assert_eq!(kind.name(), serialised, "stores and JSON have one name");
            assert!(!kind.properties().method.is_empty(), "{kind}");
        }
        assert_eq!(ProbeKind::from_name("line"), None);
    }
}
