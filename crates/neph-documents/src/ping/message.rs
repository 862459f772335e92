//! A message and an event as JSON. Times are integer nanoseconds.

use neph_model::{
    Anchor, EventKind, Instant, Ledger, Local, Marks, Message, Peer, Seq, Span, TcpState, Wall,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::PlannedFlow;

/// An event of a flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EventDocument {
    /// Name of the flow.
    pub flow: String,
    /// Time of the event; null if not known.
    pub at_unix_ns: Option<Wall>,
    /// Kind of event.
    pub event: EventKind,
    /// Description with details.
    pub text: String,
}

/// A message.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MessageDocument {
    /// Name of the flow.
    pub flow: String,
    /// Sequence number of the message in its flow, from 0.
    pub seq: Seq,
    /// Outcome: `reply`, `error`, `lost` or `failed`.
    pub outcome: &'static str,
    /// Name of the answer, or of the reason that there is none; null if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Scheduled send time; null if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intended_unix_ns: Option<Wall>,
    /// Durations; absent without a reply.
    #[serde(flatten)]
    pub times: Option<TimesDocument>,
    /// Timestamps.
    pub timestamps: MarksDocument,
    /// Number of the connection that carried it, from 0.
    pub connection: u32,
    /// Duplicate replies.
    pub duplicates: u16,
    /// Whether the reply arrived after the reply to a later message.
    pub reordered: bool,
    /// TCP state when the request's last byte departed; null if not read.
    pub tcp_at_send: Option<TcpDocument>,
    /// TCP state when the request's last byte was acknowledged; null if not read.
    pub tcp_at_ack: Option<TcpDocument>,
}

/// The durations of a message with a reply.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TimesDocument {
    /// Response time: from the scheduled send time to the reply.
    pub response_ns: Span,
    /// Service time: from dialling or sending to the reply.
    pub service_ns: Span,
    /// TCP RTT: from the departure of the request to its acknowledgement; null if not known.
    pub tcp_ns: Option<Span>,
    /// Network RTT: both directions, without the time at the peer; null without the peer's
    /// timestamps.
    pub network_ns: Option<Span>,
    /// RTT of network and peer together; null if the peer gives timestamps, or if not known.
    pub network_and_peer_ns: Option<Span>,
    /// Entries of the ledger; they add up to the response time.
    pub ledger: Vec<EntryDocument>,
}

/// An entry of the ledger.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EntryDocument {
    /// Stages of the entry: several if a timestamp between them is missing.
    pub stages: Vec<&'static str>,
    /// Time of these stages together, nanoseconds.
    pub ns: Span,
}

/// The timestamps of a message, on the monotonic clock of the client or of the peer. null: not
/// read.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct MarksDocument {
    /// Scheduled send time.
    pub intended_ns: Instant<Local>,
    /// The connection began.
    pub dialled_ns: Option<Instant<Local>>,
    /// TCP was connected.
    pub connected_ns: Option<Instant<Local>>,
    /// The handshakes above TCP were complete.
    pub opened_ns: Option<Instant<Local>>,
    /// The client application handed the request to its kernel.
    pub app_send_ns: Option<Instant<Local>>,
    /// The kernel queued the request's last byte.
    pub queued_ns: Option<Instant<Local>>,
    /// The request's last byte left for the interface.
    pub nic_tx_ns: Option<Instant<Local>>,
    /// The peer's TCP acknowledged the request's last byte.
    pub acked_ns: Option<Instant<Local>>,
    /// The peer's kernel received the request's last byte.
    pub peer_rx_ns: Option<Instant<Peer>>,
    /// The server application had read the request.
    pub peer_app_rx_ns: Option<Instant<Peer>>,
    /// The server application handed the reply to its kernel.
    pub peer_app_tx_ns: Option<Instant<Peer>>,
    /// The reply's last byte left the peer's kernel.
    pub peer_nic_tx_ns: Option<Instant<Peer>>,
    /// The client's kernel received the reply's last byte.
    pub nic_rx_ns: Option<Instant<Local>>,
    /// The client application had read the reply.
    pub app_recv_ns: Option<Instant<Local>>,
}

/// The TCP state at one moment.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TcpDocument {
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Slow start threshold; 4294967295 and 2147483647: not set.
    pub ssthresh_segments: u32,
    /// Smoothed round-trip time.
    pub srtt_us: u32,
    /// Minimum round-trip time.
    pub min_rtt_us: u32,
    /// Segments retransmitted since the connection began.
    pub retransmissions: u32,
    /// Retransmitted segments that the peer had received already (DSACK).
    pub spurious_retransmissions: u32,
    /// Most recent delivery rate.
    pub delivery_rate_bytes_per_second: u64,
}

/// The flow of a message, and a reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub struct MessageContext<'p> {
    /// The flow.
    pub planned: &'p PlannedFlow,
    /// A reading of both clocks.
    pub anchor: Option<Anchor<Local>>,
}

impl MessageDocument {
    /// The document of a message.
    pub fn of(context: MessageContext<'_>, message: &Message) -> Self {
        let intended = |anchor: Anchor<Local>| anchor.to_wall(message.marks.intended);
        let timestamps = &message.marks;
        Self {
            flow: context.planned.spec.name.clone(),
            seq: message.seq,
            outcome: message.outcome.name(),
            answer: message.answer.map(|answer| answer.name().into_owned()),
            intended_unix_ns: context.anchor.map(intended),
            times: message
                .ledger()
                .map(|ledger| TimesDocument::of(&ledger, timestamps)),
            timestamps: timestamps.into(),
            connection: message.connection,
            duplicates: message.duplicates,
            reordered: message.reordered,
            tcp_at_send: message.tcp_at_send.map(TcpDocument::from),
            tcp_at_ack: message.tcp_at_ack.map(TcpDocument::from),
        }
    }
}

impl TimesDocument {
    fn of(ledger: &Ledger, timestamps: &Marks) -> Self {
        let entries = ledger.entries().iter().map(|entry| EntryDocument {
            stages: entry.stages.iter().map(neph_model::Stage::name).collect(),
            ns: entry.time(),
        });
        Self {
            response_ns: ledger.response_time(),
            service_ns: ledger.service_time(),
            tcp_ns: timestamps.tcp_round_trip(),
            network_ns: timestamps.network_round_trip(),
            network_and_peer_ns: timestamps.network_and_peer_round_trip(),
            ledger: entries.collect(),
        }
    }
}

impl From<&Marks> for MarksDocument {
    fn from(timestamps: &Marks) -> Self {
        Self {
            intended_ns: timestamps.intended,
            dialled_ns: timestamps.dialled,
            connected_ns: timestamps.connected,
            opened_ns: timestamps.opened,
            app_send_ns: timestamps.app_send,
            queued_ns: timestamps.queued,
            nic_tx_ns: timestamps.nic_tx,
            acked_ns: timestamps.acked,
            peer_rx_ns: timestamps.peer.rx,
            peer_app_rx_ns: timestamps.peer.app_rx,
            peer_app_tx_ns: timestamps.peer.app_tx,
            peer_nic_tx_ns: timestamps.peer.nic_tx,
            nic_rx_ns: timestamps.nic_rx,
            app_recv_ns: timestamps.app_recv,
        }
    }
}

impl From<TcpState> for TcpDocument {
    fn from(state: TcpState) -> Self {
        Self {
            cwnd_segments: state.cwnd,
            ssthresh_segments: state.ssthresh,
            srtt_us: state.srtt_us,
            min_rtt_us: state.min_rtt_us,
            retransmissions: state.retransmissions,
            spurious_retransmissions: state.spurious_retransmissions(),
            delivery_rate_bytes_per_second: state.delivery_rate,
        }
    }
}
