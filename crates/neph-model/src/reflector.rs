//! What a reflector is asked to be, wherever it runs: by `neph reflect`, by a plan for a site of its lab.
//!
//! Owns the values and their defaults. Flags that ask for one are read in neph-campaign (of plans) and neph;
//! neph-probe starts it.

use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BitRate, ByteSize, SecretSource, Span, TlsVersion};

/// Where a reflector listens unless another port is asked for, TCP and UDP.
pub const REFLECT_PORT: u16 = 8080;

/// A reflector to start. Paths and variables are those of the host that it runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReflectorSpec {
    /// Where it listens, TCP and UDP; port 0 takes a free one. `[::]` is every address of both
    /// versions, as far as the host has IPv6.
    pub address: SocketAddr,
    /// The certificate with which it offers TLS, on the same port as plain text; no TLS if absent.
    pub identity: Option<ReflectorIdentity>,
    /// The only version of TLS that it offers; all if absent.
    pub tls_version: Option<TlsVersion>,
    /// Key of authenticated STAMP; with it, other packets are refused.
    pub stamp_key: Option<SecretSource>,
    /// Source ports from which STAMP requests are answered although a server may have them.
    pub answered_ports: Vec<u16>,
    /// How long it waits before each reply, as a busy server would.
    #[serde(rename = "think_ns")]
    pub think: Span,
    /// Where throughput tests are served beside, TCP and UDP, at the same address; none if absent.
    #[serde(default)]
    pub throughput: Option<NonZeroU16>,
    /// Where media streams are served beside (RTSP over TCP), at the same address; none if absent.
    #[serde(default)]
    pub media: Option<NonZeroU16>,
    /// What it bears from its peers.
    pub caps: ReflectorCaps,
}

impl ReflectorSpec {
    /// A reflector at `address`: plain text and TLS of any version if it gets an identity, open STAMP,
    /// no waiting, the default caps.
    pub fn at(address: SocketAddr) -> Self {
        Self {
            address,
            identity: None,
            tls_version: None,
            stamp_key: None,
            answered_ports: Vec::new(),
            think: Span::ZERO,
            throughput: None,
            media: None,
            caps: ReflectorCaps::default(),
        }
    }
}

/// At [`REFLECT_PORT`] of all addresses.
impl Default for ReflectorSpec {
    fn default() -> Self {
        Self::at((Ipv6Addr::UNSPECIFIED, REFLECT_PORT).into())
    }
}

/// Where a reflector's certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReflectorIdentity {
    /// Made when it starts, valid for these names and addresses. The reflector adds those by which it
    /// is reached where it listens.
    SelfSigned(Vec<String>),
    /// PEM files: certificate chain and private key.
    Files {
        /// The chain.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
}

/// Caps on everything that a peer could ask too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReflectorCaps {
    /// Largest reply payload that is granted.
    #[serde(rename = "reply_bytes")]
    pub reply_size: ByteSize,
    /// Largest request payload that is read.
    #[serde(rename = "request_bytes")]
    pub request_size: ByteSize,
    /// Memory for all that peers make the reflector hold, every copy counted: connections, messages that
    /// are not whole or not read yet, and what is remembered of peers.
    #[serde(rename = "memory_bytes")]
    pub memory: ByteSize,
    /// Messages a second from one peer address; a second's worth may come at once. By default more
    /// than the densest fleets ask for (50,000 flows a second apart, 512 with 200 messages a second
    /// each), so that a moment's delay refuses none. A reply is no larger than its request, so what
    /// the cap saves is a core's time, and STAMP has one thread.
    pub messages_per_second: u32,
    /// Reply payload to one peer address.
    #[serde(rename = "reply_bits_per_second")]
    pub reply_rate: BitRate,
    /// Connections at the same time, of all peers.
    pub connections: u32,
    /// Connections at the same time, of one peer address or of one /64 of IPv6. A /56 gets half as much
    /// more.
    pub connections_per_peer: u32,
    /// A connection that sends nothing for this long is closed.
    #[serde(rename = "idle_ns")]
    pub idle: Span,
    /// A connection that has not opened its protocol by then is closed.
    #[serde(rename = "handshake_ns")]
    pub handshake: Span,
    /// Longest bulk transfer.
    #[serde(rename = "bulk_ns")]
    pub bulk: Span,
}

impl Default for ReflectorCaps {
    fn default() -> Self {
        Self {
            reply_size: ByteSize(16 << 20),
            request_size: ByteSize(64 << 20),
            memory: ByteSize(512 << 20),
            messages_per_second: 120_000,
            reply_rate: BitRate(1_000_000_000),
            connections: 1024,
            connections_per_peer: 512,
            idle: Span::from_secs(300),
            handshake: Span::from_secs(10),
            bulk: Span::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_oneof};

    use super::*;

    fn span() -> impl Strategy<Value = Span> {
        any::<i64>().prop_map(Span::from_nanos)
    }

    fn identity() -> impl Strategy<Value = ReflectorIdentity> {
        prop_oneof![
            any::<Vec<String>>().prop_map(ReflectorIdentity::SelfSigned),
            any::<[String; 2]>().prop_map(|[certificate, key]| ReflectorIdentity::Files {
                certificate: certificate.into(),
                key: key.into(),
            }),
        ]
    }

    fn source() -> impl Strategy<Value = SecretSource> {
        prop_oneof![
            any::<String>().prop_map(SecretSource::File),
            any::<String>().prop_map(SecretSource::Variable),
        ]
    }

    fn caps() -> impl Strategy<Value = ReflectorCaps> {
        let several = (
            any::<[u64; 4]>(),
            any::<[u32; 3]>(),
            [span(), span(), span()],
        );
        several.prop_map(|(sizes, counts, [idle, handshake, bulk])| ReflectorCaps {
            reply_size: ByteSize(sizes[0]),
            request_size: ByteSize(sizes[1]),
            memory: ByteSize(sizes[2]),
            messages_per_second: counts[0],
            reply_rate: BitRate(sizes[3]),
            connections: counts[1],
            connections_per_peer: counts[2],
            idle,
            handshake,
            bulk,
        })
    }

    fn spec() -> impl Strategy<Value = ReflectorSpec> {
        let version = prop_oneof![Just(TlsVersion::V12), Just(TlsVersion::V13)];
        let tls = (
            proptest::option::of(identity()),
            proptest::option::of(version),
        );
        let stamp = (proptest::option::of(source()), any::<Vec<u16>>());
        let several = (any::<([u8; 16], u16)>(), tls, stamp, span(), caps());
        several.prop_map(|(address, (identity, tls_version), stamp, think, caps)| {
            let (stamp_key, answered_ports) = stamp;
            ReflectorSpec {
                address: address.into(),
                identity,
                tls_version,
                stamp_key,
                answered_ports,
                think,
                throughput: None,
                media: None,
                caps,
            }
        })
    }

    proptest::proptest! {
        #[test]
        fn a_reflector_reads_back_as_it_was_written(spec in spec()) {
            let json = serde_json::to_string(&spec).expect("it is data");
            let back: ReflectorSpec = serde_json::from_str(&json).expect(&json);
            proptest::prop_assert_eq!(back, spec);
        }
    }

    #[test]
    fn what_no_reflector_has_is_refused() {
        let mut json = serde_json::to_value(ReflectorSpec::default()).expect("it is data");
        assert_eq!(json["address"], "[::]:8080");
        json["site"] = "virginia".into();
        assert!(serde_json::from_value::<ReflectorSpec>(json).is_err());
    }
}
