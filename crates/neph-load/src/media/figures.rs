//! The figures of one stream.

use neph_model::{BitRate, Span};

use super::frames::{FrameCounts, Stalls};
use super::jitter::JitterCourse;
use super::quality::Quality;

/// Interarrival jitter over a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterFigures {
    /// The mean of its value after each packet.
    pub mean: Span,
    /// Its largest value.
    pub max: Span,
}

impl JitterFigures {
    pub(super) fn of(course: Option<&JitterCourse>) -> Option<Self> {
        let course = course?;
        let span = |nanos: u64| Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        Some(Self {
            mean: span(course.mean()?),
            max: span(course.max()),
        })
    }
}

/// What was received of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamFigures {
    /// The synchronisation source; absent where nothing came.
    pub ssrc: Option<u32>,
    /// Packets that came, duplicates not counted.
    pub packets: u64,
    /// Their payload, bytes.
    pub bytes: u64,
    /// Packets that are missing in the sequence. What was lost after the last packet is not known.
    pub lost: u64,
    /// Packets that came after one with a higher number (RFC 4737).
    pub reordered: u64,
    /// Packets that came once more.
    pub duplicates: u64,
    /// Packets that came after their frame was due.
    pub late: u64,
    /// Datagrams that do not belong to the stream.
    pub foreign: u64,
    /// Of the lost packets, those that this host's socket dropped.
    pub socket_drops: u64,
    /// From the first packet to the end.
    pub lasted: Span,
    /// The lowest bit rate of the payload in a whole second.
    pub rate_min: Option<BitRate>,
    /// The bit rate of the payload over all whole seconds.
    pub rate_mean: Option<BitRate>,
    /// The highest bit rate of the payload in a whole second.
    pub rate_max: Option<BitRate>,
    /// Interarrival jitter by RTP timestamps (RFC 3550, section 6.4.1): with the sender's pacing of frames of
    /// several packets.
    pub jitter: Option<JitterFigures>,
    /// Interarrival jitter by the moments of sending (RFC 5450): of the network alone. Absent where the
    /// server does not send these.
    pub network_jitter: Option<JitterFigures>,
    /// What became of frames.
    pub frames: FrameCounts,
    /// How often the picture stood still.
    pub stalls: Stalls,
    /// An estimate of the video's quality.
    pub quality: Quality,
}

impl StreamFigures {
    /// Packets that were sent, as far as their numbers show.
    pub const fn expected(&self) -> u64 {
        self.packets + self.lost
    }

    /// Lost of all, a share.
    pub fn loss(&self) -> f64 {
        share(self.lost, self.expected())
    }

    /// Lost, or too late for play-out, of all: a share.
    pub fn unplayable(&self) -> f64 {
        share(self.lost + self.late, self.expected())
    }

    /// The rate at which the video was sent, from what came and what is missing, kbit/s.
    #[expect(clippy::cast_precision_loss, reason = "a rate for an estimate")]
    pub fn sent_kbit_s(&self) -> f64 {
        let seconds = self.lasted.secs_f64();
        if self.packets == 0 || seconds <= 0.0 {
            return 0.0;
        }
        let scale = self.expected() as f64 / self.packets as f64;
        self.bytes as f64 * scale * 8.0 / 1_000.0 / seconds
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}
