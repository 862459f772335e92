//! Timestamps: the points in a message's life at which a clock is read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Instant, Local, Peer, Span};

/// The name of a timestamp, in the order in which a message passes them. `Acked` is not part of the
/// order: the peer's TCP confirms the request independently of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// The scheduled send time of the message.
    Intended,
    /// When the connection for this message began (with one connection per message only).
    Dialled,
    /// When that connection was established.
    Connected,
    /// When its handshakes above TCP were complete: TLS, WebSocket upgrade, hello of neph.
    Opened,
    /// When the client application handed the request to its kernel.
    AppSend,
    /// When the kernel queued the request's last byte towards the interface (`TX_SCHED`).
    Queued,
    /// When the last byte left for the interface (`TX_SOFTWARE`).
    NicTx,
    /// When the peer's kernel received the request's last byte.
    PeerRx,
    /// When the server application had read it.
    PeerAppRx,
    /// When the server application handed the reply to its kernel.
    PeerAppTx,
    /// When the reply's last byte left the peer's kernel.
    PeerNicTx,
    /// When the client's kernel received the reply's last byte.
    NicRx,
    /// When the client application had read it.
    AppRecv,
    /// When the peer's TCP had acknowledged the request's last byte (`TX_ACK`).
    Acked,
}

/// Timestamps that the peer read, nanoseconds on its own clock. null: not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PeerMarks {
    /// The peer's kernel received the request's last byte.
    pub rx: Option<Instant<Peer>>,
    /// The server application had read the request.
    pub app_rx: Option<Instant<Peer>>,
    /// The server application handed the reply to its kernel.
    pub app_tx: Option<Instant<Peer>>,
    /// The reply's last byte left the peer's kernel.
    pub nic_tx: Option<Instant<Peer>>,
}

/// All timestamps of one message, nanoseconds on the client's clock. null: not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    /// Scheduled send time of the message.
    pub intended: Instant<Local>,
    /// The connection for this message began (with one connection per message only).
    pub dialled: Option<Instant<Local>>,
    /// That connection was established.
    pub connected: Option<Instant<Local>>,
    /// Its handshakes above TCP were complete: TLS, WebSocket upgrade, hello of neph.
    pub opened: Option<Instant<Local>>,
    /// The client application handed the request to its kernel; null if the message was not sent.
    pub app_send: Option<Instant<Local>>,
    /// The kernel queued the request's last byte towards the interface (`TX_SCHED`).
    pub queued: Option<Instant<Local>>,
    /// The request's last byte left for the interface (`TX_SOFTWARE`).
    pub nic_tx: Option<Instant<Local>>,
    /// The peer's TCP acknowledged the request's last byte (`TX_ACK`).
    pub acked: Option<Instant<Local>>,
    /// Timestamps of the peer.
    pub peer: PeerMarks,
    /// The client's kernel received the reply's last byte.
    pub nic_rx: Option<Instant<Local>>,
    /// The client application had read the reply; null without a reply.
    pub app_recv: Option<Instant<Local>>,
}

impl Marks {
    /// A message that is only scheduled so far.
    pub const fn intended_at(intended: Instant<Local>) -> Self {
        Self {
            intended,
            dialled: None,
            connected: None,
            opened: None,
            app_send: None,
            queued: None,
            nic_tx: None,
            acked: None,
            peer: PeerMarks {
                rx: None,
                app_rx: None,
                app_tx: None,
                nic_tx: None,
            },
            nic_rx: None,
            app_recv: None,
        }
    }

    /// Whether the message was only a connection attempt: the established connection is its reply.
    pub fn is_connection_attempt(&self) -> bool {
        let has_connected = self.dialled.is_some() && self.connected.is_some();
        self.app_send.is_none() && has_connected && self.connected == self.app_recv
    }

    /// Time from the departure of the request's last byte to its acknowledgement: the RTT that TCP
    /// measures.
    pub fn tcp_round_trip(&self) -> Option<Span> {
        Some(self.acked? - self.nic_tx?)
    }

    /// Both directions of the network: between the two local kernel timestamps, less the time
    /// between the peer's two. `None` unless all four are known: time at the peer is never part of
    /// it.
    pub fn network_round_trip(&self) -> Option<Span> {
        let round_trip = self.nic_rx? - self.nic_tx?;
        Some(round_trip - (self.peer.nic_tx? - self.peer.rx?))
    }

    /// The network and the peer together: between the two local kernel timestamps, where the peer
    /// gives no timestamps.
    pub fn network_and_peer_round_trip(&self) -> Option<Span> {
        let peer = &self.peer;
        let marks = [peer.rx, peer.app_rx, peer.app_tx, peer.nic_tx];
        let round_trip = self.nic_rx? - self.nic_tx?;
        marks.iter().all(Option::is_none).then_some(round_trip)
    }

    /// A copy without contradictory timestamps. A local one is dropped if it is earlier than the
    /// one before it or later than `app_recv`. The peer's are dropped together if they are not in
    /// order or exceed the round trip.
    #[must_use]
    pub fn without_contradictions(&self) -> Self {
        let mut marks = *self;
        let end = self.app_recv.unwrap_or(Instant::from_nanos(i64::MAX));
        let mut latest = self.intended;
        for mark in [
            &mut marks.dialled,
            &mut marks.connected,
            &mut marks.opened,
            &mut marks.app_send,
            &mut marks.queued,
            &mut marks.nic_tx,
            &mut marks.nic_rx,
        ] {
            *mark = mark.filter(|at| (latest..=end).contains(at));
            latest = mark.unwrap_or(latest);
        }
        if !marks.is_peer_possible() {
            marks.peer = PeerMarks::default();
        }
        marks
    }

    /// Whether the peer's timestamps are in order and within the round trip that was measured here.
    pub fn is_peer_possible(&self) -> bool {
        let peer = &self.peer;
        let marks = [peer.rx, peer.app_rx, peer.app_tx, peer.nic_tx];
        let mut marks = marks.into_iter().flatten();
        let Some(first) = marks.next() else {
            return true;
        };
        let mut last = first;
        for at in marks {
            if at < last {
                return false;
            }
            last = at;
        }
        let Some(end) = self.nic_rx.or(self.app_recv) else {
            return true;
        };
        let left = [
            self.nic_tx,
            self.queued,
            self.app_send,
            self.opened,
            self.connected,
            self.dialled,
        ];
        let left = left.into_iter().flatten().max();
        last - first <= end - left.unwrap_or(self.intended)
    }

    /// The first action for this message: to dial or to send.
    pub fn first_action(&self) -> Option<Instant<Local>> {
        self.dialled.or(self.app_send)
    }
}
