//! Answers that contain a number of their protocol.
//!
//! Owns their codes and names, a row for a protocol.

use std::ops::RangeInclusive;

use super::Answer;
use crate::{DnsReply, MqttRefusal};

/// Answers that contain a number of their protocol: a row is a protocol.
pub(super) struct NumberedAnswers {
    /// The codes that journals store for them.
    pub(super) codes: RangeInclusive<u16>,
    pub(super) answer: fn(u16) -> Answer,
    /// The code of an answer of that protocol.
    pub(super) code: fn(Answer) -> Option<u16>,
    pub(super) name: fn(u16) -> String,
    /// The code of the answer of that name.
    pub(super) from_name: fn(&str) -> Option<u16>,
    pub(super) description: fn(u16) -> String,
}

/// The table, and the pattern of its answers: without its row a new answer does not compile.
macro_rules! rows {
    ($($kind:ident => $row:expr;)*) => {
        pub(super) const NUMBERED: &[NumberedAnswers] = &[$($row),*];

        macro_rules! numbered {
            () => { $(Answer::$kind(_))|* };
        }
        pub(super) use numbered;
    };
}

/// The code of the DNS response code 0.
const DNS: u16 = 5000;
/// The code of the CONNACK code 0.
const MQTT: u16 = 6000;

// A new protocol takes a thousand of its own: 7000 is the next that is free.
rows! {
    HttpStatus => NumberedAnswers {
        codes: 100..=999,
        answer: Answer::HttpStatus,
        code: |answer| match answer {
            Answer::HttpStatus(status) => Some(status),
            _ => None,
        },
        name: |status| format!("http-{status}"),
        from_name: |name| name.strip_prefix("http-")?.parse().ok(),
        description: |status| format!("HTTP status {status}"),
    };
    WebSocketClose => NumberedAnswers {
        codes: 1000..=4999,
        answer: Answer::WebSocketClose,
        code: |answer| match answer {
            Answer::WebSocketClose(code) => Some(code),
            _ => None,
        },
        name: |code| format!("ws-close-{code}"),
        from_name: |name| name.strip_prefix("ws-close-")?.parse().ok(),
        description: |code| format!("WebSocket close {code}"),
    };
    Dns => NumberedAnswers {
        codes: DNS..=DNS + DnsReply::NUMBERS - 1,
        answer: |code| Answer::Dns(DnsReply::from_number(code - DNS)),
        code: |answer| match answer {
            Answer::Dns(reply) => Some(DNS + reply.number()),
            _ => None,
        },
        name: |code| format!("dns-{}", DnsReply::from_number(code - DNS).name()),
        from_name: |name| Some(DNS + DnsReply::from_name(name.strip_prefix("dns-")?)?.number()),
        description: |code| format!("DNS {}", DnsReply::from_number(code - DNS).description()),
    };
    Mqtt => NumberedAnswers {
        codes: MQTT..=MQTT + 255,
        answer: |code| Answer::Mqtt(MqttRefusal::from_number(code - MQTT)),
        code: |answer| match answer {
            Answer::Mqtt(refusal) => Some(MQTT + u16::from(refusal.0)),
            _ => None,
        },
        name: |code| format!("mqtt-connack-{}", code - MQTT),
        from_name: |name| {
            let code: u8 = name.strip_prefix("mqtt-connack-")?.parse().ok()?;
            Some(MQTT + u16::from(code))
        },
        description: |code| MqttRefusal::from_number(code - MQTT).description(),
    };
}

impl NumberedAnswers {
    pub(super) fn of(code: u16) -> Option<&'static Self> {
        NUMBERED.iter().find(|row| row.codes.contains(&code))
    }
}
