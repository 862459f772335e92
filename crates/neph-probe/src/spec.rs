//! What one flow is asked to do. Plain data, decided before anything runs.

use std::net::SocketAddr;
use std::path::PathBuf;

use neph_model::{FlowIndex, FlowRole, Instant, Own, Span};
use neph_sys::place::Place;

use crate::target::Target;

/// When messages go: number `n` at `start + n * interval`, whatever became of those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Time between two messages; at least 1 us.
    pub interval: Span,
    /// How many; `None` until stopped.
    pub count: Option<u64>,
}

impl Schedule {
    /// When message `seq` is due, if it is part of the schedule.
    pub fn due(&self, start: Instant<Own>, seq: u64) -> Option<Instant<Own>> {
        if self.count.is_some_and(|count| seq >= count) {
            return None;
        }
        let nth = i64::try_from(seq).unwrap_or(i64::MAX);
        Some(start + self.interval.times(nth))
    }
}

/// Which TLS versions may be negotiated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// The best that both sides have.
    #[default]
    Any,
    /// TLS 1.2 only.
    V12,
    /// TLS 1.3 only.
    V13,
}

/// Whether a server's certificate must be believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// By the public certificate authorities.
    #[default]
    Public,
    /// By the public ones, and by those whose certificates this PEM file holds.
    File(PathBuf),
    /// Not at all: any certificate will do. Never a default.
    Anything,
}

/// What becomes of connections between messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionUse {
    /// They last.
    #[default]
    Lasting,
    /// Each message has one of its own: connect and handshake count.
    PerMessage,
}

/// How the measuring thread asks to be scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Real-time where the kernel permits it, ordinary otherwise, and at a site that has a share
    /// of CPU time only: there it would take more.
    #[default]
    Auto,
    /// Ordinary.
    Normal,
}

/// One flow's whole task.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Its place within its experiment.
    pub index: FlowIndex,
    /// Why it is there.
    pub role: FlowRole,
    /// Its name on screen.
    pub name: String,
    /// What it is aimed at.
    pub target: Target,
    /// Where that is.
    pub address: SocketAddr,
    /// When messages go.
    pub schedule: Schedule,
    /// Request payload, bytes; raised to what the kind needs.
    pub request_size: usize,
    /// Reply payload asked for, bytes; raised to what the marks need.
    pub response_size: usize,
    /// Our port; `None` leaves it to the kernel.
    pub source_port: Option<u16>,
    /// A message without a reply for this long is lost.
    pub timeout: Span,
    /// TLS versions, where the scheme asks for TLS.
    pub tls_version: TlsVersion,
    /// Whether the certificate must be believed.
    pub trust: Trust,
    /// What becomes of connections.
    pub connection_use: ConnectionUse,
    /// Congestion control of our side's sockets; `None` keeps the system's.
    pub congestion: Option<String>,
    /// Key of authenticated STAMP.
    pub key: Option<Vec<u8>>,
    /// How long to spin before a send.
    pub spin: Span,
    /// How to be scheduled.
    pub priority: Priority,
    /// The place (a lab's site) to send from; `None` is where we are.
    pub site: Option<Place>,
    /// Whether the peer is our reflector, as [`crate::discover()`] found.
    pub reflector: bool,
}

impl FlowSpec {
    /// The default loss timeout.
    pub const TIMEOUT: Span = Span::from_secs(5);
    /// The default spin before a send.
    pub const SPIN: Span = Span::from_micros(60);

    /// The default towards a target: the smallest messages, one a second until stopped, on one
    /// connection to a server that need not be ours.
    pub fn plain(target: Target, address: SocketAddr) -> Self {
        Self {
            index: FlowIndex(0),
            role: FlowRole::Main,
            name: target.kind().name().to_owned(),
            target,
            address,
            schedule: Schedule {
                interval: Span::from_secs(1),
                count: None,
            },
            request_size: 0,
            response_size: 0,
            source_port: None,
            timeout: Self::TIMEOUT,
            tls_version: TlsVersion::Any,
            trust: Trust::Public,
            connection_use: ConnectionUse::Lasting,
            congestion: None,
            key: None,
            spin: Span::ZERO,
            priority: Priority::Auto,
            site: None,
            reflector: false,
        }
    }
}
