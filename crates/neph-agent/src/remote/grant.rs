//! An order that a controller signed, and the agent's check of the signature.
//!
//! Owns the signed bytes. A bus may belong to a third party. The key of the authority, which the
//! agent got with its invitation, proves that an order is from the controller.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use neph_model::{AgentName, Order, OrderId, Wall};
use rcgen::{KeyPair, SigningKey};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use schemars::JsonSchema;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Precedes the bytes that are signed: a signature for another purpose is not valid for an order.
const PURPOSE: &[u8] = b"neph order 2\n";

/// An order for one agent, and until when it may run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Granted {
    /// The agent.
    pub agent: AgentName,
    /// Id of the order.
    pub id: OrderId,
    /// End of the permission, on the controller's clock: the order does not begin later, and ends
    /// then.
    #[serde(rename = "until_unix_ns")]
    pub until: Wall,
    /// The order.
    pub order: Order,
}

/// A [`Granted`] with its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The granted order as JSON: these bytes are signed.
    granted: String,
    /// Signature: ECDSA with P-256 and SHA-256, ASN.1, base64.
    signature: String,
}

/// The summary of an order in a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderBrief {
    /// The kind of order, as its JSON names it.
    pub kind: String,
    /// How many experiments it has; 1 for another order.
    pub parts: usize,
}

/// The only key of an order, and how much is under it.
#[derive(Deserialize)]
struct OrderShape {
    order: BTreeMap<String, Parts>,
}

struct Parts(usize);

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct PartsVisitor;
        impl<'de> Visitor<'de> for PartsVisitor {
            type Value = Parts;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an order")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Parts, A::Error> {
                let mut parts = 0;
                while sequence.next_element::<IgnoredAny>()?.is_some() {
                    parts += 1;
                }
                Ok(Parts(parts))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Parts, A::Error> {
                while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Parts(1))
            }
        }
        from.deserialize_any(PartsVisitor)
    }
}

impl Grant {
    /// The summary of the order; the signature is not checked.
    pub fn brief(&self) -> Option<OrderBrief> {
        let shape: OrderShape = serde_json::from_str(&self.granted).ok()?;
        let (kind, Parts(parts)) = shape.order.into_iter().next()?;
        Some(OrderBrief { kind, parts })
    }
}

/// A key that cannot sign, or an order that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot sign an order: {0}")]
pub struct SignError(String);

/// Signs orders with the key of the authority.
pub struct Signer(Option<KeyPair>);

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer")
    }
}

impl Signer {
    /// One with an authority's private key (PEM).
    ///
    /// # Errors
    /// It is none.
    pub fn from_pem(key: &str) -> Result<Self, SignError> {
        KeyPair::from_pem(key)
            .map(|key| Self(Some(key)))
            .map_err(|error| SignError(error.to_string()))
    }

    /// A signer without a key, for an operator: the controller signs the orders
    /// ([`Self::countersign`]).
    pub const fn without_key() -> Self {
        Self(None)
    }

    /// Signs an order without a signature, if it is for this agent and has this id. Its lease ends
    /// at `latest` of the order, or earlier.
    ///
    /// # Errors
    /// The order is another one or invalid, or the key cannot sign.
    pub fn countersign(
        &self,
        grant: &Grant,
        agent: &AgentName,
        id: OrderId,
        latest: &dyn Fn(&Order) -> Wall,
    ) -> Result<Grant, SignError> {
        let mut granted: Granted =
            serde_json::from_str(&grant.granted).map_err(|error| SignError(error.to_string()))?;
        if granted.agent != *agent || granted.id != id {
            return Err(SignError(format!("it is not order {id} of agent {agent}")));
        }
        granted.until = granted.until.min(latest(&granted.order));
        self.sign(&granted)
    }

    /// Signs.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn sign(&self, granted: &Granted) -> Result<Grant, SignError> {
        let text = serde_json::to_string(granted).map_err(|error| SignError(error.to_string()))?;
        let Some(key) = &self.0 else {
            return Ok(Grant {
                signature: String::new(),
                granted: text,
            });
        };
        let signature = key.sign(&[PURPOSE, text.as_bytes()].concat());
        Ok(Grant {
            signature: BASE64_STANDARD
                .encode(signature.map_err(|error| SignError(error.to_string()))?),
            granted: text,
        })
    }
}

/// Verifies signatures of the controller with the certificate of its authority.
#[derive(Clone, Debug)]
pub struct Verifier(CertificateDer<'static>);

impl Verifier {
    /// A verifier for the authority with this certificate (PEM).
    ///
    /// # Errors
    /// It is no certificate; why, in words.
    pub fn of(authority: &str) -> Result<Self, String> {
        let der = CertificateDer::from_pem_slice(authority.as_bytes());
        let der = der.map_err(|error| error.to_string())?;
        webpki::EndEntityCert::try_from(&der).map_err(|error| error.to_string())?;
        Ok(Self(der))
    }

    /// The granted order, if the authority has signed it.
    pub fn open(&self, grant: &Grant) -> Option<Granted> {
        let signature = BASE64_STANDARD.decode(&grant.signature).ok()?;
        let certificate = webpki::EndEntityCert::try_from(&self.0).ok()?;
        let signed_bytes = [PURPOSE, grant.granted.as_bytes()].concat();
        let algorithm = webpki::ring::ECDSA_P256_SHA256;
        certificate
            .verify_signature(algorithm, &signed_bytes, &signature)
            .ok()?;
        serde_json::from_str(&grant.granted).ok()
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{PingOrder, Span};

    use super::*;

    fn now() -> Wall {
        Wall::from_unix_nanos(1_000_000_000_000)
    }

    fn granted(until: Span) -> Granted {
        Granted {
            agent: "ams".parse().expect("a name"),
            id: OrderId::new(),
            until: now() + until,
            order: Order::Pings(PingOrder {
                block: 0,
                pings: Vec::new(),
                until: now(),
                timeout: Span::from_secs(1),
                site: None,
            }),
        }
    }

    #[test]
    fn an_unsigned_order_is_signed_for_its_agent_with_a_bounded_lease() {
        let key = KeyPair::generate().expect("a key");
        let certificate = rcgen::CertificateParams::default().self_signed(&key);
        let authority = certificate.expect("a certificate").pem();
        let verifier = Verifier::of(&authority).expect("a certificate");
        let signer = Signer::from_pem(&key.serialize_pem()).expect("a key");
        let latest = |_: &Order| now() + Span::from_secs(60);
        for (requested_seconds, granted_seconds) in [(30, 30), (60, 60), (100_000, 60)] {
            let requested_grant = granted(Span::from_secs(requested_seconds));
            let unsigned = Signer::without_key()
                .sign(&requested_grant)
                .expect("it needs no key");
            assert_eq!(verifier.open(&unsigned), None, "nobody has signed it");
            let grant = signer.countersign(
                &unsigned,
                &requested_grant.agent,
                requested_grant.id,
                &latest,
            );
            let opened = verifier
                .open(&grant.expect("it is for this agent"))
                .expect("signed");
            assert_eq!(opened.until, now() + Span::from_secs(granted_seconds));
            let other_agent = "lju".parse().expect("a name");
            let refused = signer.countersign(&unsigned, &other_agent, requested_grant.id, &latest);
            refused.expect_err("another agent's");
            let refused =
                signer.countersign(&unsigned, &requested_grant.agent, OrderId::new(), &latest);
            refused.expect_err("another order");
        }
    }
}
