//! What one flow is asked to do. Plain data, decided before anything runs.

use std::net::SocketAddr;
use std::path::PathBuf;

use neph_model::{
    ExpectedStatus, Fingerprint, FlowIndex, FlowRole, Instant, Own, Permit, Span, Target,
    TcpStatsWhen, TlsVersion,
};
use neph_sys::place::Place;

use crate::secret::Secret;

/// When messages go: number `n` at `start + n * interval`, whatever became of those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Time between two messages; at least 1 us.
    pub interval: Span,
    /// How many; `None` until stopped.
    pub count: Option<u64>,
    /// For how long from the first on; `None` until `count` is reached. What was due by then and
    /// could not be sent in time is not sent.
    pub duration: Option<Span>,
}

impl Schedule {
    /// When message `seq` is due, if it is part of the schedule.
    pub fn due(&self, start: Instant<Own>, seq: u64) -> Option<Instant<Own>> {
        if self.count.is_some_and(|count| seq >= count) {
            return None;
        }
        let nth = i64::try_from(seq).unwrap_or(i64::MAX);
        let after = self.interval.times(nth);
        if self.duration.is_some_and(|duration| after >= duration) {
            return None;
        }
        Some(start + after)
    }

    /// When nothing is sent any more, whatever is still due.
    pub fn end(&self, start: Instant<Own>) -> Option<Instant<Own>> {
        self.duration.map(|duration| start + duration)
    }

    /// How many messages it has; `None` until stopped.
    pub fn messages(&self) -> Option<u64> {
        let in_time = self.duration.map(|duration| {
            let nanos = |span: Span| u64::try_from(span.nanos()).unwrap_or(0);
            nanos(duration).div_ceil(nanos(self.interval).max(1))
        });
        [self.count, in_time].into_iter().flatten().min()
    }
}

/// Whether a server's certificate must be believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// By the public certificate authorities.
    #[default]
    Public,
    /// By the public ones, and by those whose certificates this PEM file holds.
    File(PathBuf),
    /// Only if it is one of these, whoever issued it, whatever its names and its validity are.
    Pinned(Vec<Fingerprint>),
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

/// What becomes of messages that are overdue by more than [`Overdue::PATIENCE`], because this host
/// was stopped, starved or too slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overdue {
    /// They are not sent, and count as such.
    #[default]
    Skip,
    /// They are sent at once, all of them.
    Send,
}

impl Overdue {
    /// Messages later than this are not sent. Less is made up for, so that a short stall costs no
    /// message and shows as response time.
    pub const PATIENCE: Span = Span::from_secs(1);
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
    /// The only version of TLS, where the scheme asks for TLS; `None`: the best that both sides have.
    pub tls_version: Option<TlsVersion>,
    /// Whether the certificate must be believed.
    pub trust: Trust,
    /// What becomes of connections.
    pub connection_use: ConnectionUse,
    /// Congestion control of our side's sockets; `None` keeps the system's.
    pub congestion: Option<String>,
    /// Key of authenticated STAMP.
    pub key: Option<Secret>,
    /// How long to spin before a send.
    pub spin: Span,
    /// How to be scheduled.
    pub priority: Priority,
    /// The place (a lab's site) to send from; `None` is where we are.
    pub site: Option<Place>,
    /// Which HTTP statuses are the expected reply.
    pub expected_status: ExpectedStatus,
    /// Messages a second that may leave at most; SYNs have a cap where none is given.
    pub rate_cap: Option<u32>,
    /// What may be sent by all that shares it; beyond it messages are not sent, and count so.
    pub permit: Permit,
    /// What becomes of messages that were due while this host did not run.
    pub overdue: Overdue,
    /// When the kernel's statistics of the connection are read; `None`: only those that come with stamps.
    pub tcp_stats: Option<TcpStatsWhen>,
    /// Whether the peer is our reflector, as [`crate::discover()`] found.
    pub reflector: bool,
}

impl FlowSpec {
    /// Whether its messages are connection attempts: nothing is said on the connection.
    pub fn is_attempt(&self) -> bool {
        let kind = self.target.kind();
        kind.is_segment() || (kind.facts().needs_reflector && !self.reflector)
    }

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
                duration: None,
            },
            request_size: 0,
            response_size: 0,
            source_port: None,
            timeout: Self::TIMEOUT,
            tls_version: None,
            trust: Trust::Public,
            connection_use: ConnectionUse::Lasting,
            congestion: None,
            key: None,
            spin: Span::ZERO,
            priority: Priority::Auto,
            site: None,
            expected_status: ExpectedStatus::default(),
            rate_cap: None,
            permit: Permit::ANYTHING,
            overdue: Overdue::Skip,
            tcp_stats: None,
            reflector: false,
        }
    }
}
