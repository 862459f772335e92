//! The specification of one flow. Plain data, decided before anything runs.

use std::net::SocketAddr;
use std::path::PathBuf;

use neph_model::{
    ExpectedStatus, Fingerprint, FlowIndex, FlowRole, Instant, Local, Permit, Span, Target,
    TcpStatsSchedule, TlsVersion,
};
use neph_sys::place::Placement;

use crate::secret::Secret;

/// When messages are sent: number `n` at `start + n * interval`, independent of earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Time between two messages; at least 1 us.
    pub interval: Span,
    /// Number of messages; `None` until stopped.
    pub count: Option<u64>,
    /// Time from the first message on; `None` until `count` is reached. Messages that were due by then and
    /// not sent in time are not sent.
    pub duration: Option<Span>,
}

impl Schedule {
    /// When message `seq` is due, if it is part of the schedule.
    pub fn due(&self, start: Instant<Local>, seq: u64) -> Option<Instant<Local>> {
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

    /// The end of the schedule, even if messages are still due.
    pub fn end(&self, start: Instant<Local>) -> Option<Instant<Local>> {
        self.duration.map(|duration| start + duration)
    }

    /// Number of messages; `None` until stopped.
    pub fn messages(&self) -> Option<u64> {
        let in_time = self.duration.map(|duration| {
            let nanos = |span: Span| u64::try_from(span.nanos()).unwrap_or(0);
            nanos(duration).div_ceil(nanos(self.interval).max(1))
        });
        [self.count, in_time].into_iter().flatten().min()
    }
}

/// How a server's certificate is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// By the public certificate authorities.
    #[default]
    Public,
    /// By the public ones, and by those in this PEM file.
    CaFile(PathBuf),
    /// Only if it is one of these, whatever its issuer, names and validity.
    Pinned(Vec<Fingerprint>),
    /// Any certificate is accepted. Never a default.
    AnyCertificate,
}

/// How messages use connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionUse {
    /// All messages share a lasting connection.
    #[default]
    Lasting,
    /// Each message has a new one: connect and handshake count.
    PerMessage,
}

/// How the measuring thread is scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Real-time where the kernel permits it. Ordinary otherwise, and at a site with a CPU quota: there a
    /// real-time thread would take more.
    #[default]
    Auto,
    /// Ordinary.
    Normal,
}

/// What happens to messages that are overdue by more than [`Overdue::TOLERANCE`], because this host was
/// stopped, starved or too slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overdue {
    /// They are not sent, and are counted as such.
    #[default]
    Skip,
    /// They are all sent at once.
    Send,
}

impl Overdue {
    /// Messages later than this are not sent. Less lateness is caught up, so a short stall costs no message
    /// and shows as response time.
    pub const TOLERANCE: Span = Span::from_secs(1);
}

/// The complete specification of a flow.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Its place within its experiment.
    pub index: FlowIndex,
    /// Its role.
    pub role: FlowRole,
    /// Its name on screen.
    pub name: String,
    /// Its target.
    pub target: Target,
    /// The target's address.
    pub address: SocketAddr,
    /// When messages are sent.
    pub schedule: Schedule,
    /// Request payload in bytes; raised to what the kind needs.
    pub request_size: usize,
    /// Requested reply payload in bytes; raised to what the timestamps need.
    pub response_size: usize,
    /// Source port; `None` leaves it to the kernel.
    pub source_port: Option<u16>,
    /// A message without a reply for this long is lost.
    pub timeout: Span,
    /// The only version of TLS, where the scheme requires TLS; `None`: the best that both sides have.
    pub tls_version: Option<TlsVersion>,
    /// How the certificate is checked.
    pub trust: Trust,
    /// How messages use connections.
    pub connection_use: ConnectionUse,
    /// Congestion control of the local sockets; `None` keeps the system's.
    pub congestion: Option<String>,
    /// Key of authenticated STAMP.
    pub key: Option<Secret>,
    /// How long to spin before a send.
    pub spin: Span,
    /// How to be scheduled.
    pub priority: Priority,
    /// The place (a lab's site) to send from; `None` is the current one.
    pub site: Option<Placement>,
    /// The HTTP statuses of an expected reply.
    pub expected_status: ExpectedStatus,
    /// Most messages per second; SYNs have a cap where none is given.
    pub rate_cap: Option<u32>,
    /// What all users of the permit may send together. Messages beyond it are not sent and counted as such.
    pub permit: Permit,
    /// What happens to messages that were due while this host did not run.
    pub overdue: Overdue,
    /// When the kernel's statistics of the connection are read; `None`: only those that come with timestamps.
    pub tcp_stats: Option<TcpStatsSchedule>,
    /// Whether the peer is a neph reflector, as [`crate::discover()`] found.
    pub reflector: bool,
}

impl FlowSpec {
    /// Whether its messages are connection attempts, without data on the connection.
    pub fn is_attempt(&self) -> bool {
        let kind = self.target.kind();
        kind.is_segment() || (kind.properties().needs_reflector && !self.reflector)
    }

    /// The default loss timeout.
    pub const TIMEOUT: Span = Span::from_secs(5);
    /// The default spin before a send.
    pub const SPIN: Span = Span::from_micros(60);

    /// The default for a target: the smallest messages, one per second until stopped, on one connection to a
    /// server that need not be a neph reflector.
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
