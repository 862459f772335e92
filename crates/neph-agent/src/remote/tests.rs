//! Tests of an agent with a controller, and with a false controller.

mod hostile;
mod lease;
mod unreadable;

use std::path::Path;

use neph_model::{AgentName, Order, OrderId, Span, Wall};
use neph_sys::clock;
use neph_text::Source;

use super::{AdmissionControl, AgentClockOffset, Grant, Granted, Moment, Signer, ToAgent};
use crate::policy::Policy;

/// A key and its certificate.
pub(super) struct SigningKey {
    pub(super) signer: Signer,
    pub(super) certificate: String,
}

impl SigningKey {
    pub(super) fn new() -> Self {
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = rcgen::CertificateParams::default().self_signed(&key);
        Self {
            certificate: certificate.expect("a certificate").pem(),
            signer: Signer::from_pem(&key.serialize_pem()).expect("a key"),
        }
    }

    pub(super) fn grant(&self, granted: &Granted) -> Grant {
        self.signer.sign(granted).expect("signed")
    }
}

pub(super) fn name(text: &str) -> AgentName {
    text.parse().expect("a name")
}

pub(super) fn now() -> Wall {
    Wall::from_unix_nanos(clock::wall().0)
}

pub(super) fn granted(order: Order, lease: Span) -> Granted {
    Granted {
        agent: name("ams"),
        id: OrderId::new(),
        until: now() + lease,
        order,
    }
}

pub(super) fn begin(key: &SigningKey, granted: &Granted) -> ToAgent {
    ToAgent::Begin {
        id: granted.id,
        grant: Box::new(key.grant(granted)),
    }
}

/// Admission control of agent ams in this folder.
pub(super) fn open_admission(folder: &Path, key: &SigningKey, policy: &str) -> AdmissionControl {
    let policy = Policy::parse(&Source::new("agent.toml", policy));
    let policy = policy.unwrap_or_else(|problems| panic!("{problems:?}"));
    let control = AdmissionControl::open(folder, name("ams"), &key.certificate, policy, now());
    let mut control = control.expect("admission control");
    let clock_offset = AgentClockOffset {
        offset: Span::ZERO,
        bound: Span::from_millis(1),
    };
    control.set_clock_offset(clock_offset, Moment::now());
    control
}
