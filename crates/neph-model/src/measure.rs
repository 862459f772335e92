//! What an experiment measures at its endpoint: single messages, or a transfer instead.
//!
//! Owns the list of measures, and their text (`text`). The transfers are in neph-load.

mod text;

use crate::{BitRate, Span};

pub use text::ParseMeasureError;

/// Default port of the media server (RTSP over TCP).
pub const MEDIA_PORT: u16 = 8554;

/// Default port of the throughput server, TCP and UDP.
pub const THROUGHPUT_PORT: u16 = 7420;

/// What an experiment measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Single messages, each with its times.
    #[default]
    Messages,
    /// The rate of a bulk transfer.
    Throughput(ThroughputMeasure),
    /// Requests and replies in turn, as fast as they go.
    Transactions(TransactionMeasure),
    /// Video streams that begin together.
    Media(MediaMeasure),
}

/// Video streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaMeasure {
    /// How many at each site, 1 to 64.
    pub clients: u16,
}

/// A test of requests and replies in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionMeasure {
    /// What a transaction is.
    pub kind: TransactionKind,
    /// Streams, 1 to 64, each with one transaction outstanding.
    pub streams: u16,
}

/// What a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionKind {
    /// A datagram each way.
    Udp,
    /// A request and a reply on a connection that stays open.
    Tcp,
    /// A connection that is opened, carries a request and a reply, and is closed.
    Connection,
}

/// A throughput test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThroughputMeasure {
    /// What carries the data.
    pub transport: TransferTransport,
    /// Which side sends.
    pub direction: TransferDirection,
    /// Streams for each direction, 1 to 64.
    pub streams: u16,
    /// Payload rate of all streams of a direction together; `None` for no limit.
    pub rate: Option<BitRate>,
}

/// What carries a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferTransport {
    /// Connections.
    Tcp,
    /// Datagrams of one size.
    Udp,
}

/// Who sends in a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransferDirection {
    /// The site that measures.
    #[default]
    Up,
    /// The endpoint.
    Down,
    /// Both at the same time, each on streams of its own.
    Both,
}

impl MediaMeasure {
    /// A stream of neph's own trace has about so much.
    pub const NOMINAL: BitRate = BitRate(1_000_000);
}

impl ThroughputMeasure {
    /// Streams of a direction, at most.
    pub const MAX_STREAMS: u16 = 64;
    /// The lowest rate.
    pub const MIN_RATE: BitRate = BitRate(1_000);

    /// The rate that the measuring site sends and that it requests from its endpoint, in bits per
    /// second; `None` for no limit.
    pub fn target_rate(&self) -> Option<BitRate> {
        let is_both = self.direction == TransferDirection::Both;
        let times = if is_both { 2 } else { 1 };
        let rate = self.rate?.bits_per_second();
        Some(BitRate(rate.saturating_mul(times)))
    }
}

impl Measure {
    /// The quantities of a transfer are known once in this time, and its length is a multiple of
    /// it.
    pub const SECOND: Span = Span::from_secs(1);

    /// Whether it takes the place of single messages.
    pub const fn is_transfer(&self) -> bool {
        !matches!(self, Self::Messages)
    }

    /// The rate that both ends send, as far as requested and known, in bits per second; `None` if
    /// the path decides.
    pub fn target_rate(&self) -> Option<BitRate> {
        match self {
            Self::Messages | Self::Transactions(_) => None,
            Self::Throughput(test) => test.target_rate(),
            Self::Media(MediaMeasure { clients }) => {
                Some(BitRate(u64::from(*clients) * MediaMeasure::NOMINAL.0))
            }
        }
    }

    /// Whether it fills links, and so disturbs latency measurements on them.
    pub const fn fills_links(&self) -> bool {
        matches!(self, Self::Throughput(_) | Self::Media(_))
    }

    /// The throughput test, if it is one.
    pub const fn throughput(&self) -> Option<&ThroughputMeasure> {
        match self {
            Self::Throughput(test) => Some(test),
            Self::Messages | Self::Transactions(_) | Self::Media(_) => None,
        }
    }
}
