//! Stages: the time between two adjacent timestamps, and their names on screen.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stage of a message, in order of time.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// `intended` to `dialled` or `app_send`: the lateness of the sender.
    Lateness,
    /// `dialled` to `connected`: the TCP handshake.
    Connect,
    /// `connected` to `opened`: the handshakes above TCP (TLS, WebSocket upgrade).
    Handshake,
    /// New connection to `app_send`: building the request.
    Compose,
    /// `app_send` to `queued`: the system call and, with TCP, the wait for the send window.
    SendWindow,
    /// `queued` to `nic_tx`: queueing discipline and driver of the client host.
    SendQueue,
    /// `nic_tx` to `peer_rx` and `peer_nic_tx` to `nic_rx`: both directions of the network.
    Network,
    /// `peer_rx` to `peer_app_rx`: the peer's kernel, until the server application had read the
    /// request.
    PeerKernel,
    /// `peer_app_rx` to `peer_app_tx`: the server application.
    PeerApp,
    /// `peer_app_tx` to `peer_nic_tx`: the peer's send path.
    PeerSend,
    /// `nic_rx` to `app_recv`: the client's kernel, until the client application had read the
    /// reply.
    OwnKernel,
}

impl Stage {
    /// Every stage, in order of time.
    pub const ALL: [Self; 11] = [
        Self::Lateness,
        Self::Connect,
        Self::Handshake,
        Self::Compose,
        Self::SendWindow,
        Self::SendQueue,
        Self::Network,
        Self::PeerKernel,
        Self::PeerApp,
        Self::PeerSend,
        Self::OwnKernel,
    ];

    /// The name on screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lateness => "schedule lateness",
            Self::Connect => "connect",
            Self::Handshake => "handshake",
            Self::Compose => "compose",
            Self::SendWindow => "send window",
            Self::SendQueue => "send queue",
            Self::Network => "network",
            Self::PeerKernel => "peer kernel",
            Self::PeerApp => "peer application",
            Self::PeerSend => "peer send",
            Self::OwnKernel => "client kernel",
        }
    }

    /// What takes time in this stage, as the end of a sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Lateness => "the time between the planned and the actual send",
            Self::Connect => "the TCP handshake",
            Self::Handshake => "the TLS and WebSocket handshakes",
            Self::Compose => "the building of the request",
            Self::SendWindow => {
                "the system call that sends, including the wait for room in TCP's send window"
            }
            Self::SendQueue => "the queue and the driver of the client host",
            Self::Network => "the path in both directions",
            Self::PeerKernel => {
                "the time in the server's kernel before the application has read the request"
            }
            Self::PeerApp => "the server application",
            Self::PeerSend => {
                "the time in the server's kernel after the application has sent the reply"
            }
            Self::OwnKernel => {
                "the time in the client's kernel before the application has read the reply"
            }
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The stages that one entry of a ledger covers: several where a timestamp between them is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageSet(u16);

impl StageSet {
    /// No stage.
    pub const EMPTY: Self = Self(0);

    /// Just this one.
    pub const fn only(stage: Stage) -> Self {
        Self(stage.bit())
    }
    /// With `stage` too.
    #[must_use]
    pub const fn with(self, stage: Stage) -> Self {
        Self(self.0 | stage.bit())
    }
    /// Whether `stage` is among them.
    pub const fn contains(self, stage: Stage) -> bool {
        self.0 & stage.bit() != 0
    }
    /// Its members, in order of time.
    pub fn iter(self) -> impl Iterator<Item = Stage> {
        Stage::ALL
            .into_iter()
            .filter(move |stage| self.contains(*stage))
    }
    /// The only stage of the set; `None` if there are several, or none.
    pub fn single(self) -> Option<Stage> {
        let mut stages = self.iter();
        stages.next().filter(|_| stages.next().is_none())
    }
    /// Whether a timestamp is missing inside, so that several stages are reported as one.
    pub const fn is_merged(self) -> bool {
        self.0.count_ones() > 1
    }
}

/// `network`, or `network + peer send` where the timestamp between them is absent.
impl fmt::Display for StageSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Stage::name).collect();
        f.pad(&names.join(" + "))
    }
}
