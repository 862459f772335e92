//! A message and an event as JSON. Times are integers of nanoseconds.

use neph_model::{
    Anchor, EventKind, Instant, Ledger, Marks, Message, Own, Peer, Seq, Span, TcpState, Wall,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::Planned;

/// Something that happened to a flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EventDocument {
    /// The flow.
    pub flow: String,
    /// When, Unix time in nanoseconds.
    pub at_unix_ns: Option<Wall>,
    /// What.
    pub event: EventKind,
    /// The same in words, with details.
    pub text: String,
}

/// A message.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MessageDocument {
    /// The flow.
    pub flow: String,
    /// The number of the message in its flow, from 0.
    pub seq: Seq,
    /// `reply`, `error`, `lost` or `failed`.
    pub outcome: &'static str,
    /// What the peer answered, or why it was not sent, by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// When it was to be sent, Unix time in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intended_unix_ns: Option<Wall>,
    /// Its times, where there was a reply.
    #[serde(flatten)]
    pub times: Option<TimesDocument>,
    /// Its marks.
    pub marks: MarksDocument,
    /// The number of the connection that carried it, from 0.
    pub connection: u32,
    /// Duplicate replies.
    pub duplicates: u16,
    /// Whether the reply arrived out of order.
    pub reordered: bool,
    /// TCP's state when it was sent.
    pub tcp_at_send: Option<TcpDocument>,
    /// TCP's state when it was acknowledged.
    pub tcp_at_ack: Option<TcpDocument>,
}

/// The times of a message with a reply.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TimesDocument {
    /// From when it was to be sent to the reply, in nanoseconds.
    pub response_ns: Span,
    /// From when it was sent to the reply, in nanoseconds.
    pub service_ns: Span,
    /// From leaving to its acknowledgement by TCP, in nanoseconds.
    pub tcp_ns: Option<Span>,
    /// Both directions of the network without the peer, in nanoseconds.
    pub network_ns: Option<Span>,
    /// The network and the peer, in nanoseconds.
    pub network_and_peer_ns: Option<Span>,
    /// The stages of the ledger; they add up to the response time.
    pub ledger: Vec<EntryDocument>,
}

/// An entry of a ledger.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EntryDocument {
    /// Its stages: several where a mark between them is missing.
    pub stages: Vec<&'static str>,
    /// How long they took together, in nanoseconds.
    pub ns: Span,
}

/// Points in a message's life, each on its side's monotonic clock in nanoseconds; null where no
/// clock was read.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct MarksDocument {
    /// It was to be sent.
    pub intended_ns: Instant<Own>,
    /// A connection was begun.
    pub dialled_ns: Option<Instant<Own>>,
    /// TCP was connected.
    pub connected_ns: Option<Instant<Own>>,
    /// TLS, or the protocol's opening, was done.
    pub opened_ns: Option<Instant<Own>>,
    /// The program wrote it.
    pub app_send_ns: Option<Instant<Own>>,
    /// The kernel queued its last byte.
    pub queued_ns: Option<Instant<Own>>,
    /// It left for the interface.
    pub nic_tx_ns: Option<Instant<Own>>,
    /// The peer's TCP acknowledged it.
    pub acked_ns: Option<Instant<Own>>,
    /// The peer's kernel received it.
    pub peer_rx_ns: Option<Instant<Peer>>,
    /// The peer's program received it.
    pub peer_app_rx_ns: Option<Instant<Peer>>,
    /// The peer's program wrote the reply.
    pub peer_app_tx_ns: Option<Instant<Peer>>,
    /// The reply left for the peer's interface.
    pub peer_nic_tx_ns: Option<Instant<Peer>>,
    /// The reply arrived.
    pub nic_rx_ns: Option<Instant<Own>>,
    /// The program read the reply.
    pub app_recv_ns: Option<Instant<Own>>,
}

/// TCP's state at a moment.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TcpDocument {
    /// The congestion window in segments.
    pub cwnd_segments: u32,
    /// The slow-start threshold in segments.
    pub ssthresh_segments: u32,
    /// The smoothed round trip in microseconds.
    pub srtt_us: u32,
    /// The lowest round trip in microseconds.
    pub min_rtt_us: u32,
    /// Retransmitted segments of the connection so far.
    pub retransmissions: u32,
    /// Those that the peer had received already (DSACK).
    pub spurious_retransmissions: u32,
    /// The rate at which data was last delivered, in bytes per second.
    pub delivery_rate_bytes_per_second: u64,
}

/// Whose message it is, and both clocks as they were then.
#[derive(Clone, Copy, Debug)]
pub struct MessageOf<'p> {
    /// The flow.
    pub planned: &'p Planned,
    /// Both clocks.
    pub anchor: Option<Anchor<Own>>,
}

impl MessageDocument {
    /// Of a message.
    pub fn of(whose: MessageOf<'_>, message: &Message) -> Self {
        let intended = |anchor: Anchor<Own>| anchor.to_wall(message.marks.intended);
        let marks = &message.marks;
        Self {
            flow: whose.planned.spec.name.clone(),
            seq: message.seq,
            outcome: message.outcome.name(),
            answer: message.answer.map(|answer| answer.name().into_owned()),
            intended_unix_ns: whose.anchor.map(intended),
            times: message
                .ledger()
                .map(|ledger| TimesDocument::of(&ledger, marks)),
            marks: marks.into(),
            connection: message.connection,
            duplicates: message.duplicates,
            reordered: message.reordered,
            tcp_at_send: message.tcp_at_send.map(TcpDocument::from),
            tcp_at_ack: message.tcp_at_ack.map(TcpDocument::from),
        }
    }
}

impl TimesDocument {
    fn of(ledger: &Ledger, marks: &Marks) -> Self {
        let entries = ledger.entries().iter().map(|entry| EntryDocument {
            stages: entry.stages.iter().map(neph_model::Stage::name).collect(),
            ns: entry.time(),
        });
        Self {
            response_ns: ledger.response_time(),
            service_ns: ledger.service_time(),
            tcp_ns: marks.tcp_round_trip(),
            network_ns: marks.network_round_trip(),
            network_and_peer_ns: marks.network_and_peer_round_trip(),
            ledger: entries.collect(),
        }
    }
}

impl From<&Marks> for MarksDocument {
    fn from(marks: &Marks) -> Self {
        Self {
            intended_ns: marks.intended,
            dialled_ns: marks.dialled,
            connected_ns: marks.connected,
            opened_ns: marks.opened,
            app_send_ns: marks.app_send,
            queued_ns: marks.queued,
            nic_tx_ns: marks.nic_tx,
            acked_ns: marks.acked,
            peer_rx_ns: marks.peer.rx,
            peer_app_rx_ns: marks.peer.app_rx,
            peer_app_tx_ns: marks.peer.app_tx,
            peer_nic_tx_ns: marks.peer.nic_tx,
            nic_rx_ns: marks.nic_rx,
            app_recv_ns: marks.app_recv,
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
