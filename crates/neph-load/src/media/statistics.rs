//! The statistics of one stream.

use neph_model::{BitRate, Span};

use super::frames::{FrameCounts, Stalls};
use super::jitter::JitterCourse;
use super::quality::Quality;

/// Interarrival jitter of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterStatistics {
    /// Mean of its values after each packet.
    pub mean: Span,
    /// Its largest value.
    pub max: Span,
}

impl JitterStatistics {
    pub(super) fn of(course: Option<&JitterCourse>) -> Option<Self> {
        let course = course?;
        let span = |nanos: u64| Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        Some(Self {
            mean: span(course.mean()?),
            max: span(course.max()),
        })
    }
}

/// The received part of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamStatistics {
    /// The synchronisation source; absent without packets.
    pub ssrc: Option<u32>,
    /// Received packets, without duplicates.
    pub packets: u64,
    /// Their payload in bytes.
    pub bytes: u64,
    /// Packets that are missing in the sequence. Losses after the last packet are unknown.
    pub lost: u64,
    /// Reordered packets: after one with a higher sequence number (RFC 4737).
    pub reordered: u64,
    /// Duplicate packets.
    pub duplicates: u64,
    /// Packets that arrived after their frame was due.
    pub late: u64,
    /// Datagrams that do not belong to the stream.
    pub foreign: u64,
    /// Packets that this host's socket dropped, included in `lost`.
    pub socket_drops: u64,
    /// Time from the first packet to the end.
    pub lasted: Span,
    /// Lowest payload bit rate of a whole second.
    pub rate_min: Option<BitRate>,
    /// Payload bit rate over all whole seconds.
    pub rate_mean: Option<BitRate>,
    /// Highest payload bit rate of a whole second.
    pub rate_max: Option<BitRate>,
    /// Interarrival jitter by RTP timestamps (RFC 3550, section 6.4.1). Includes the sender's
    /// pacing of frames with several packets.
    pub jitter: Option<JitterStatistics>,
    /// Interarrival jitter by transmission times (RFC 5450): that of the network alone. Absent if
    /// the server does not send these.
    pub network_jitter: Option<JitterStatistics>,
    /// Outcomes of frames.
    pub frames: FrameCounts,
    /// Stalls of the picture.
    pub stalls: Stalls,
    /// Estimated quality of the video.
    pub quality: Quality,
}

impl StreamStatistics {
    /// Packets that were sent, according to the sequence numbers.
    pub const fn expected(&self) -> u64 {
        self.packets + self.lost
    }

    /// Lost packets, as a share of all.
    pub fn loss(&self) -> f64 {
        share(self.lost, self.expected())
    }

    /// Packets that were lost or too late for play-out, as a share of all.
    pub fn unplayable(&self) -> f64 {
        share(self.lost + self.late, self.expected())
    }

    /// Bit rate of the sent video, from received and missing packets, kbit/s.
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
fn share(part: u64, total: u64) -> f64 {
    if total == 0 {
        return 0.0;
    }
    part as f64 / total as f64
}
