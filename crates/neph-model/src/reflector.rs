//! The configuration of a reflector: of `neph reflect`, or of a site in the lab of a plan.
//!
//! Owns the values and their defaults. Flags are read in neph-campaign (of plans) and neph;
//! neph-probe starts the reflector.

use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BitRate, ByteSize, SecretSource, ServiceModel, Span, TlsVersion};

/// Default port of a reflector, TCP and UDP.
pub const REFLECT_PORT: u16 = 8080;

/// The configuration of a reflector. Paths and environment variables are those of its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReflectorSpec {
    /// Listen address, TCP and UDP; port 0 for a free one. `[::]` is every address of both IP
    /// versions, if the host has IPv6.
    pub address: SocketAddr,
    /// Certificate for TLS, on the same port as plain text; null: no TLS.
    pub identity: Option<ReflectorIdentity>,
    /// The only TLS version that it offers; null: all.
    pub tls_version: Option<TlsVersion>,
    /// Key of authenticated STAMP: other packets are refused. null: open STAMP.
    pub stamp_key: Option<SecretSource>,
    /// Source ports from which STAMP requests are answered although a server may use them.
    pub answered_ports: Vec<u16>,
    /// Artificial delay before each reply, as in a busy server.
    #[serde(rename = "reply_delay_ns", alias = "think_ns")]
    pub reply_delay: Span,
    /// Port of the throughput server at the same address, TCP and UDP; null: none.
    #[serde(default)]
    pub throughput: Option<NonZeroU16>,
    /// Port of the media server (RTSP over TCP) at the same address; null: none.
    #[serde(default)]
    pub media: Option<NonZeroU16>,
    /// An HTTP service of known speed at the same address; null: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceModel>,
    /// Caps on what peers can request.
    pub caps: ReflectorCaps,
}

impl ReflectorSpec {
    /// A reflector at `address` with the default caps: plain text, TLS of any version if it gets an
    /// identity, open STAMP, no delay.
    pub fn at(address: SocketAddr) -> Self {
        Self {
            address,
            identity: None,
            tls_version: None,
            stamp_key: None,
            answered_ports: Vec::new(),
            reply_delay: Span::ZERO,
            throughput: None,
            media: None,
            service: None,
            caps: ReflectorCaps::default(),
        }
    }

    /// The ports at which its servers listen; its own comes first.
    pub fn ports(&self) -> impl Iterator<Item = u16> + use<> {
        let service = self.service.as_ref().map(|service| service.port);
        let servers = [self.throughput, self.media, service].into_iter().flatten();
        std::iter::once(self.address.port()).chain(servers.map(NonZeroU16::get))
    }
}

/// At [`REFLECT_PORT`] of all addresses.
impl Default for ReflectorSpec {
    fn default() -> Self {
        Self::at((Ipv6Addr::UNSPECIFIED, REFLECT_PORT).into())
    }
}

/// The source of a reflector's certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReflectorIdentity {
    /// Generated at the start, valid for these names and addresses. The reflector adds the names
    /// and addresses of its listen address.
    SelfSigned(Vec<String>),
    /// PEM files: certificate chain and private key.
    Files {
        /// Certificate chain.
        certificate: PathBuf,
        /// Private key.
        key: PathBuf,
    },
}

/// Caps on the resources that peers can request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReflectorCaps {
    /// Largest reply payload.
    #[serde(rename = "reply_bytes")]
    pub reply_size: ByteSize,
    /// Largest request payload.
    #[serde(rename = "request_bytes")]
    pub request_size: ByteSize,
    /// Memory for the data of all peers, every copy counted: connections, incomplete or unread
    /// messages, and the state of peers.
    #[serde(rename = "memory_bytes")]
    pub memory: ByteSize,
    /// Messages per second from one peer address; a second's worth may arrive at once. The default
    /// exceeds the densest fleets (50,000 flows a second apart, 512 flows with 200 messages per
    /// second each). The cap protects one core: a reply is no larger than its request, and STAMP
    /// has one thread.
    pub messages_per_second: u32,
    /// Reply payload to one peer address.
    #[serde(rename = "reply_bits_per_second")]
    pub reply_rate: BitRate,
    /// Concurrent connections of all peers.
    pub connections: u32,
    /// Concurrent connections of one peer address, or of one IPv6 /64. A /56 may have 50 % more.
    pub connections_per_peer: u32,
    /// Time without data after which a connection is closed.
    #[serde(rename = "idle_ns")]
    pub idle: Span,
    /// Time within which a connection must complete its opening.
    #[serde(rename = "handshake_ns")]
    pub handshake: Span,
    /// Maximum duration of a bulk transfer.
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
        several.prop_map(
            |(address, (identity, tls_version), stamp, reply_delay, caps)| {
                let (stamp_key, answered_ports) = stamp;
                ReflectorSpec {
                    address: address.into(),
                    identity,
                    tls_version,
                    stamp_key,
                    answered_ports,
                    reply_delay,
                    throughput: None,
                    media: None,
                    service: None,
                    caps,
                }
            },
        )
    }

    proptest::proptest! {
        #[test]
        fn reflector_specs_roundtrip(spec in spec()) {
            let json = serde_json::to_string(&spec).expect("it is data");
            let back: ReflectorSpec = serde_json::from_str(&json).expect(&json);
            proptest::prop_assert_eq!(back, spec);
        }
    }

    #[test]
    fn unknown_reflector_keys_are_refused() {
        let mut json = serde_json::to_value(ReflectorSpec::default()).expect("it is data");
        assert_eq!(json["address"], "[::]:8080");
        json["site"] = "virginia".into();
        assert!(serde_json::from_value::<ReflectorSpec>(json).is_err());
    }
}
