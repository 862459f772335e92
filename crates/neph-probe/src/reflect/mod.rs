//! The reflector: one port for WebSocket, HTTP, the neph framing and STAMP.
//!
//! Owns listening, the caps and the counters. A connection's protocol is in [`answerer`], which does no input
//! or output. There is one thread per connection, so a TLS handshake or a slow peer never delays the
//! timestamps of another.

mod accept;
pub(crate) mod answerer;
pub(crate) mod budget;
pub(crate) mod bulk_turn;
mod caps;
mod connection_slots;
mod counters;
mod listening;
mod network;
mod ports;
mod progress;
mod repeats;
pub(crate) mod reply_timestamps;
mod room;
mod serve;
pub(crate) mod session;
mod sessions;
pub(crate) mod tx_timestamps;
mod udp;

use std::net::SocketAddr;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use neph_model::{Fingerprint, ReflectorCaps, ReflectorIdentity, ReflectorSpec, Span, Stop};
use neph_sys::place::Placement;
use neph_sys::pulse::Pulse;
use neph_sys::stamp::KeepAwake;
use rustls::ServerConfig;

pub use caps::fitting_caps;
pub use counters::Counted;
pub use ports::ANSWERING_PORTS;

use crate::ProbeError;
use crate::discover::reported_identity;
use crate::secret::Secret;
use crate::tls;
use budget::Budgets;
use bulk_turn::BulkGate;
use caps::Division;
use connection_slots::ConnectionSlots;
use counters::Counters;
use listening::Pair;
use room::Room;
use tx_timestamps::PendingTxTimestamps;

/// Data that all threads of a reflector share.
#[derive(Debug)]
struct ReflectorState {
    caps: ReflectorCaps,
    think: Span,
    stamp_key: Option<Secret>,
    answered_ports: Vec<u16>,
    tls: Option<Arc<ServerConfig>>,
    counters: Arc<Counters>,
    budgets: Budgets,
    connection_slots: Arc<ConnectionSlots>,
    stop: Stop,
    bulk: Arc<BulkGate>,
    room: Arc<Room>,
    tx_timestamps: Arc<PendingTxTimestamps>,
    /// Read once: a reply must not wait for two files.
    clock: Arc<str>,
}

/// The certificate that a reflector shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownCertificate {
    /// Its SHA-256 fingerprint.
    pub fingerprint: Fingerprint,
    /// The names that it is valid for, if it was made for this run; none where it came from a file.
    pub names: Vec<String>,
}

/// A reflector that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct Reflector {
    address: SocketAddr,
    certificate: Option<ShownCertificate>,
    shared: Arc<ReflectorState>,
    threads: Vec<JoinHandle<()>>,
    pulses: Vec<Pulse>,
    _awake: KeepAwake,
}

impl Reflector {
    /// Listens here and answers on its own threads.
    ///
    /// # Errors
    /// When the address is in use or not local, or the certificate or the key cannot be used.
    pub fn start(spec: &ReflectorSpec) -> Result<Self, ProbeError> {
        Self::bind(spec)?.answer()
    }

    /// As [`Self::start`], in a place: a lab's site.
    ///
    /// # Errors
    /// As there, and when the place cannot be entered.
    pub fn start_in(spec: &ReflectorSpec, placement: &Placement) -> Result<Self, ProbeError> {
        // All its threads inherit the namespace of this one.
        placement.run(|| Self::start(spec))?
    }

    /// Opens the sockets in the network namespace of the calling thread, reads the secret and the
    /// certificate, and starts no thread. Privileges that only this needs can be dropped before
    /// [`Bound::answer`].
    ///
    /// # Errors
    /// When the address is in use or not local, or the certificate or the key cannot be used.
    pub fn bind(spec: &ReflectorSpec) -> Result<Bound, ProbeError> {
        let caps = fitting_caps(spec.caps);
        let stamp_key = spec.stamp_key.as_ref().map(Secret::read).transpose()?;
        let identity = spec.identity.as_ref();
        let identity = identity.map(|identity| tls::with_listen_names(identity, spec.address));
        let tls = match &identity {
            None => None,
            Some(identity) => Some(tls::server_config(identity, spec.tls_version)?),
        };
        let certificate = tls.as_ref().map(|tls| ShownCertificate {
            fingerprint: tls.fingerprint,
            names: identity.iter().flat_map(made_names).cloned().collect(),
        });
        let (pairs, awake) = listening::listen(spec.address)?;
        let address = pairs
            .first()
            .and_then(|pair| pair.listener.local_addr().ok())
            .unwrap_or(spec.address);
        let shared = Arc::new(ReflectorState {
            caps,
            think: spec.reply_delay,
            stamp_key,
            answered_ports: spec.answered_ports.clone(),
            tls: tls.map(|tls| tls.config),
            counters: Arc::default(),
            budgets: Budgets::new(caps),
            connection_slots: Arc::new(ConnectionSlots::new(caps)),
            stop: Stop::new(),
            bulk: Arc::default(),
            room: Arc::new(caps.room_of_all()),
            tx_timestamps: Arc::default(),
            clock: reported_identity(),
        });
        let open = |pair: Pair| {
            let udp = udp::Answerer::new(pair.datagrams, Arc::clone(&shared))?;
            Ok((pair.listener, udp))
        };
        let sockets = pairs
            .into_iter()
            .map(open)
            .collect::<Result<_, ProbeError>>()?;
        Ok(Bound {
            address,
            certificate,
            shared,
            sockets,
            awake,
        })
    }

    /// The address on which it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate that it shows, where it offers TLS.
    pub const fn certificate(&self) -> Option<&ShownCertificate> {
        self.certificate.as_ref()
    }

    /// The loops that accept connections and answer datagrams. Each beats at least every 100 ms, unless it
    /// waits to answer (`think`).
    pub fn pulses(&self) -> &[Pulse] {
        &self.pulses
    }

    /// Counters of work and refusals so far, by name, in a fixed order.
    pub fn counted(&self) -> Vec<(Counted, u64)> {
        self.shared.counters.all_counts()
    }

    /// Ends it and waits for its threads; open connections are closed within a moment.
    pub fn stop(mut self) -> Vec<(Counted, u64)> {
        self.end();
        self.counted()
    }

    fn end(&mut self) {
        self.shared.stop.set();
        for thread in self.threads.drain(..) {
            // A panic was printed by the thread; nothing needs to be undone.
            let _ = thread.join();
        }
    }
}

/// A reflector whose sockets are open. It answers nothing yet.
#[derive(Debug)]
pub struct Bound {
    address: SocketAddr,
    certificate: Option<ShownCertificate>,
    shared: Arc<ReflectorState>,
    sockets: Vec<(TcpListener, udp::Answerer)>,
    awake: KeepAwake,
}

impl Bound {
    /// Answers on its own threads from now on.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn answer(self) -> Result<Reflector, ProbeError> {
        let mut reflector = Reflector {
            address: self.address,
            certificate: self.certificate,
            shared: self.shared,
            threads: Vec::new(),
            pulses: Vec::new(),
            _awake: self.awake,
        };
        for (listener, udp) in self.sockets {
            let accepting = Arc::clone(&reflector.shared);
            let (accepts, answers) = (Pulse::new("neph-accept"), Pulse::new("neph-stamp"));
            reflector.pulses.extend([accepts.clone(), answers.clone()]);
            let accept = move || accept::accept(&listener, &accepting, &accepts);
            reflector.threads.push(spawn("neph-accept", accept)?);
            let answer = move || udp.run(&answers);
            reflector.threads.push(spawn("neph-stamp", answer)?);
        }
        Ok(reflector)
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        self.end();
    }
}

/// The names of a certificate that is made when the reflector starts.
fn made_names(identity: &ReflectorIdentity) -> &[String] {
    match identity {
        ReflectorIdentity::SelfSigned(names) => names,
        ReflectorIdentity::Files { .. } => &[],
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, ProbeError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(ProbeError::Thread)
}
