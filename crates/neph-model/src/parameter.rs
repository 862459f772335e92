//! The parameters of a scenario: their names, and the value of each.
//!
//! Owns the table, the types and the text of a value. What a plan may write for a parameter, and
//! which endpoints have it, is in neph-campaign.

use std::fmt;
use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU32};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parameter_value::ParameterValue;
use crate::{
    ExpectedStatus, IpVersion, Kilometres, Known, Lifetime, Measure, Pins, Span, Stress,
    TcpStatsSchedule, TlsVersion, Unknown,
};

macro_rules! parameters {
    ($($(#[$about:meta])* $variant:ident, $field:ident = $text:literal: $kind:ty;)*) => {
        /// The name of a parameter, ordered by text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(into = "&'static str", try_from = "String")]
        pub enum ParameterName {
            $($(#[$about])* $variant,)*
        }

        impl ParameterName {
            /// Every one, in their order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in plans and stores.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        /// A parameter with its value.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Parameter {
            $($(#[$about])* $variant($kind),)*
        }

        impl Parameter {
            /// Which parameter it is a value of.
            pub const fn name(&self) -> ParameterName {
                match self {
                    $(Self::$variant(_) => ParameterName::$variant,)*
                }
            }

            /// The value's text, as scenarios are stored and shown; [`Self::read`] reads it.
            pub fn text(&self) -> String {
                match self {
                    $(Self::$variant(value) => value.text(),)*
                }
            }

            /// Reads what [`Self::text`] wrote.
            ///
            /// # Errors
            /// The text is no value of that parameter.
            pub fn read(name: ParameterName, text: &str) -> Result<Self, ParseParameterError> {
                let value = match name {
                    $(ParameterName::$variant => {
                        <$kind as ParameterValue>::read(text).map(Self::$variant)
                    })*
                };
                value.ok_or_else(|| ParseParameterError::Value { name, text: text.to_owned() })
            }

            $(
                $(#[$about])*
                pub const fn $field(&self) -> Option<&$kind> {
                    match self {
                        Self::$variant(value) => Some(value),
                        _ => None,
                    }
                }
            )*
        }

        impl crate::Parameters {
            $(
                $(#[$about])*
                pub fn $field(&self) -> Option<&$kind> {
                    self.get(ParameterName::$variant)?.$field()
                }
            )*
        }
    };
}

parameters! {
    /// In a report: the address of the endpoint, if experiments found several.
    Address, address = "address": IpAddr;
    /// A file (PEM) with certificate authorities that are trusted in addition to the public ones.
    CaFile, ca_file = "ca_file": String;
    /// The circuit: site and endpoint, with one name for all networks.
    Circuit, circuit = "circuit": String;
    /// The sender's TCP congestion control, by the kernel's name.
    CongestionControl, congestion = "congestion": String;
    /// Distance of the endpoint on the map.
    Distance, distance = "distance_km": Kilometres;
    /// The HTTP statuses that count as a reply.
    ExpectStatus, expect_status = "expect_status": ExpectedStatus;
    /// Number of concurrent flows of a fleet.
    Flows, flows = "flows": NonZeroU32;
    /// Whether HTTP redirects are followed before each experiment.
    FollowRedirects, follow = "follow": bool;
    /// The lab site that measures.
    Site, site = "from": String;
    /// The program that wrote the files of an imported campaign.
    Imported, imported = "imported": String;
    /// Whether the server's certificate is not verified.
    Insecure, insecure = "insecure": bool;
    /// The IP version that is used, for hosts with addresses of both.
    IpVersion, ip_version = "ip_version": IpVersion;
    /// A file with the key of authenticated STAMP.
    KeyFile, key_file = "key_file": String;
    /// The transfer that is measured instead of messages.
    Measure, measure = "measure": Measure;
    /// The port of the endpoint's media server.
    MediaPort, media_port = "media_port": NonZeroU16;
    /// The network over which the endpoint is reached: the underlay, or an overlay.
    Network, network = "network": String;
    /// Whether each message has its own connection.
    NewConnection, new_connection = "new_connection": bool;
    /// The fingerprints of the only accepted certificates.
    Pin, pin = "pin": Pins;
    /// Maximum number of SYNs per second of a fleet.
    RateCap, rate_cap = "rate_cap": NonZeroU32;
    /// Lifetime of a fleet's flow.
    FlowLifetime, lifetime = "renewal": Lifetime;
    /// In an import: the request size is unknown.
    RequestSize, request_size = "request_size": Unknown;
    /// The reply size as text, if a plan has several; in an import: unknown.
    ResponseSize, response_size = "response_size": String;
    /// The season in which it is measured.
    Season, season = "season": String;
    /// The local port of the flow, or the first of a fleet's.
    SourcePort, source_port = "source_port": NonZeroU16;
    /// The time that the sender busy-waits before a send.
    Spin, spin = "spin": Span;
    /// The background load at lab sites.
    Stress, stress = "stress": Stress;
    /// When all TCP statistics of the kernel are read.
    TcpStats, tcp_stats = "tcp_stats": TcpStatsSchedule;
    /// The port of the endpoint's throughput server.
    ThroughputPort, throughput_port = "throughput_port": NonZeroU16;
    /// Time after which a message counts as lost.
    Timeout, timeout = "timeout": Span;
    /// The only TLS version that is offered; in an import: unknown.
    Tls, tls = "tls": Known<TlsVersion>;
}

/// A text that names no parameter, or is no value of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseParameterError {
    /// There is no parameter of that name.
    #[error("'{0}' is no parameter of a scenario")]
    Name(String),
    /// The parameter has no such value.
    #[error("'{text}' is no value of the parameter {name}")]
    Value {
        /// The parameter.
        name: ParameterName,
        /// The text of its value.
        text: String,
    },
}

impl Parameter {
    /// What it fixes: its text, of a load without the load's name. Two scenarios that fix the same
    /// are one.
    pub fn fixed(&self) -> String {
        match self {
            Self::Stress(stress) => stress.unnamed().to_owned(),
            other => other.text(),
        }
    }
}

impl ParameterName {
    /// The parameter of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn from_name(text: &str) -> Result<Self, ParseParameterError> {
        let mut names = Self::ALL.iter().copied();
        names
            .find(|name| name.as_str() == text)
            .ok_or_else(|| ParseParameterError::Name(text.to_owned()))
    }
}

impl fmt::Display for ParameterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<ParameterName> for &'static str {
    fn from(name: ParameterName) -> Self {
        name.as_str()
    }
}

impl TryFrom<String> for ParameterName {
    type Error = ParseParameterError;

    fn try_from(text: String) -> Result<Self, ParseParameterError> {
        Self::from_name(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_sorted_by_name() {
        assert!(
            ParameterName::ALL
                .windows(2)
                .all(|pair| pair[0].as_str() < pair[1].as_str() && pair[0] < pair[1])
        );
    }

    #[test]
    fn parameter_values_roundtrip() {
        for (name, text) in [
            ("address", "192.0.2.1"),
            ("ca_file", "mine.pem"),
            ("circuit", "ams-lju"),
            ("congestion", "bbr"),
            ("distance_km", "6.5"),
            ("expect_status", "2xx,304"),
            ("flows", "512"),
            ("follow", "true"),
            ("from", "continent"),
            ("imported", "latency-tester"),
            ("insecure", "false"),
            ("ip_version", "6"),
            ("key_file", "stamp.key"),
            ("measure", "udp throughput down 100Mbit/s"),
            ("media_port", "8555"),
            ("network", "flannel"),
            ("new_connection", "true"),
            ("rate_cap", "300"),
            ("renewal", "30 s"),
            ("request_size", "unknown"),
            ("response_size", "64 B"),
            ("season", "high"),
            ("source_port", "40000"),
            ("spin", "60.0 us"),
            ("stress", "busy = vm1 98%"),
            ("tcp_stats", "100.00 ms"),
            ("tcp_stats", "message"),
            ("throughput_port", "7421"),
            ("timeout", "5.000 s"),
            ("tls", "1.3"),
            ("tls", "unknown"),
        ] {
            let name = ParameterName::from_name(name).expect(name);
            let read = Parameter::read(name, text).expect(text);
            assert_eq!((read.name(), read.text()), (name, text.to_owned()));
        }
    }

    #[test]
    fn invalid_parameter_values_are_refused_with_their_name() {
        for (name, text) in [
            (ParameterName::Flows, "0"),
            (ParameterName::Tls, "1.1"),
            (ParameterName::SourcePort, "70000"),
            (ParameterName::Timeout, "5"),
            (ParameterName::Distance, "-1"),
            (ParameterName::Stress, "vm1"),
        ] {
            let message = Parameter::read(name, text).expect_err(text).to_string();
            assert!(
                message.contains(name.as_str()) && message.contains(text),
                "{message}"
            );
        }
        assert!(ParameterName::from_name("sni").is_err());
    }
}
