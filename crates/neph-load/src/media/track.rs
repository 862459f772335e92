//! Counts the packets that a client received of one stream, without I/O.

use neph_model::Span;
use neph_wire::rtcp::ReceiverReport;
use neph_wire::rtp::{Packet, SequenceExtender, TimestampExtender};
use neph_wire::rtsp::{Media, RtpInfo};

use super::frames::{Frames, Piece};
use super::jitter::JitterCourse;
use super::measured::MediaRequest;
use super::quality::{Quality, VideoQuality};
use super::second::StreamSecond;
use super::source::{ENCODING, Position};
use super::statistics::{JitterStatistics, StreamStatistics};
use super::trace::CLOCK_HZ;
use crate::throughput::sequence::{Arrival, Sequence};
use crate::transfer::rate_of;

const SECOND: Span = Span::from_secs(1);
/// Seconds begin this much before the first packet arrived, so that a frame at a whole second is
/// always in the same second.
const LEAD: Span = Span::from_millis(10);
/// The server's number of its first packet is accepted if the first received one is at most this
/// much higher.
const TRUSTED: i64 = 1_000;
/// Maximum number of seconds of a stream; longer measurements are refused.
const MAX_SECONDS: usize = 90_000;

/// Parameters for receiving a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackSpec {
    payload_type: u8,
    clock_hz: u32,
    interval: Option<i64>,
    offset_extension_id: Option<u8>,
    has_positions: bool,
    buffer: Span,
    length: Span,
}

impl TrackSpec {
    /// From the server's description and the client's parameters.
    pub(super) fn new(media: &Media, media_request: &MediaRequest) -> Self {
        let clock_hz = media.clock_hz.unwrap_or(CLOCK_HZ);
        let rate = media.frames_per_1000_s.filter(|rate| *rate > 0);
        let encoding = media.encoding.as_deref().unwrap_or_default();
        Self {
            payload_type: media.payload_type,
            clock_hz,
            interval: rate.map(|rate| i64::from(clock_hz) * 1_000 / i64::from(rate)),
            offset_extension_id: media.offset_extension_id,
            has_positions: encoding.eq_ignore_ascii_case(ENCODING),
            buffer: media_request.buffer,
            length: media_request.duration,
        }
    }
}

/// A stream during reception. Times are since the client's start.
#[derive(Debug)]
pub(super) struct Track {
    spec: TrackSpec,
    ssrc: Option<u32>,
    /// Arrival time of the first packet.
    origin: Option<Span>,
    announced: Option<u16>,
    numbers: SequenceExtender,
    base: i64,
    sequence: Sequence,
    timestamps: TimestampExtender,
    first_ticks: i64,
    jitter: JitterCourse,
    network: Option<JitterCourse>,
    frames: Frames,
    seconds: Vec<StreamSecond>,
    totals: StreamSecond,
    foreign: u64,
    reported: Reported,
}

/// Counters at the last receiver report.
#[derive(Clone, Copy, Debug, Default)]
struct Reported {
    lost: u64,
    packets: u64,
}

impl Track {
    pub(super) fn new(spec: TrackSpec, ssrc: Option<u32>) -> Self {
        Self {
            spec,
            ssrc,
            origin: None,
            announced: None,
            numbers: SequenceExtender::default(),
            base: 0,
            sequence: Sequence::default(),
            timestamps: TimestampExtender::default(),
            first_ticks: 0,
            jitter: JitterCourse::default(),
            network: None,
            frames: Frames::new(spec.clock_hz, spec.interval, spec.buffer),
            seconds: Vec::new(),
            totals: StreamSecond::default(),
            foreign: 0,
            reported: Reported::default(),
        }
    }

    /// Sets the first packet of the stream, as the server names it.
    pub(super) fn announce(&mut self, info: &RtpInfo) {
        self.announced = info.sequence;
    }

    /// Arrival time of the first packet.
    pub(super) const fn origin(&self) -> Option<Span> {
        self.origin
    }

    /// Processes a datagram.
    pub(super) fn arrive(&mut self, datagram: &[u8], at: Span) {
        let packet = Packet::decode(datagram).ok();
        let packet = packet.filter(|packet| packet.header.payload_type == self.spec.payload_type);
        let Some(packet) = packet else {
            self.foreign += 1;
            return;
        };
        let header = packet.header;
        if *self.ssrc.get_or_insert(header.ssrc) != header.ssrc {
            self.foreign += 1;
            return;
        }
        let origin = self.begin(&packet, at);
        if at >= origin + self.spec.length {
            // A stream that began before the others ends a little later.
            return;
        }
        let number = self.numbers.extend(header.sequence) - self.base;
        let Ok(counted) = u64::try_from(number) else {
            // Sent before the stream's first packet.
            self.foreign += 1;
            return;
        };
        let arrival = self.sequence.arrive(counted);
        let taken = self.sequence.take();
        let ticks = self.timestamps.extend(header.timestamp) - self.first_ticks;
        let mut arrived_second = StreamSecond {
            missing: taken.missing,
            filled: taken.filled,
            reordered: taken.reordered,
            duplicates: taken.duplicates,
            ..StreamSecond::default()
        };
        if arrival != Arrival::Duplicate {
            self.time(&packet, ticks, at);
            arrived_second.packets = 1;
            arrived_second.bytes = packet.payload.len() as u64;
            let piece = self.piece(&packet, ticks, at);
            let is_late = self.frames.arrive(Piece { number, ..piece });
            arrived_second.late = u64::from(is_late);
        }
        self.totals.add(&arrived_second);
        if let Some(second) = self.second(at) {
            second.add(&arrived_second);
        }
    }

    /// Arrival time of the first packet, which `packet` may be.
    fn begin(&mut self, packet: &Packet<'_>, at: Span) -> Span {
        if let Some(origin) = self.origin {
            return origin;
        }
        self.origin = Some(at);
        self.first_ticks = self.timestamps.extend(packet.header.timestamp);
        let mut announced = SequenceExtender::default();
        let first = i64::from(packet.header.sequence);
        self.base = first;
        if let Some(server_port) = self.announced {
            let base = announced.extend(server_port);
            let before = announced.extend(packet.header.sequence) - base;
            if (0..=TRUSTED).contains(&before) {
                self.numbers = announced;
                self.base = base;
            }
        }
        at
    }

    fn time(&mut self, packet: &Packet<'_>, ticks: i64, at: Span) {
        let nanos = |ticks: i64| {
            let nanos = i128::from(ticks) * 1_000_000_000 / i128::from(self.spec.clock_hz);
            i64::try_from(nanos).unwrap_or(i64::MAX / 4)
        };
        self.jitter.arrive(at.nanos().saturating_sub(nanos(ticks)));
        let offset = self.spec.offset_extension_id;
        let offset = offset.and_then(|id| packet.transmission_offset(id));
        if let Some(offset) = offset {
            let sent = nanos(ticks.saturating_add(i64::from(offset)));
            let network = self.network.get_or_insert_default();
            network.arrive(at.nanos().saturating_sub(sent));
        }
    }

    fn piece(&self, packet: &Packet<'_>, ticks: i64, at: Span) -> Piece {
        let position = Position::decode(packet.payload).filter(|_| self.spec.has_positions);
        Piece {
            ticks,
            number: 0,
            is_last: packet.header.is_marked,
            is_first: position.map(|position| position.index == 0),
            at,
        }
    }

    /// The second that contains `at`, with the current jitter.
    fn second(&mut self, at: Span) -> Option<&mut StreamSecond> {
        let since = at - (self.origin? - LEAD);
        let index = usize::try_from(since.nanos() / SECOND.nanos()).ok();
        let index = index.filter(|index| *index < MAX_SECONDS)?;
        if self.seconds.len() <= index {
            self.seconds.resize_with(index + 1, StreamSecond::default);
        }
        let (jitter, network) = (
            self.jitter.nanos(),
            self.network.map(|jitter_course| jitter_course.nanos()),
        );
        let second = self.seconds.get_mut(index)?;
        second.jitter_ns = jitter;
        second.network_jitter_ns = network;
        Some(second)
    }

    /// The next receiver report; absent before the first packet.
    pub(super) fn report(&mut self) -> Option<ReceiverReport> {
        let (source, _) = (self.ssrc?, self.origin?);
        let lost = self.totals.missing.saturating_sub(self.totals.filled);
        let packets = self.totals.packets;
        let highest = self.numbers.highest().unwrap_or(0);
        let before = std::mem::replace(&mut self.reported, Reported { lost, packets });
        let lately = lost.saturating_sub(before.lost);
        let expected = (lately + packets.saturating_sub(before.packets)).max(1);
        let ticks =
            u128::from(self.jitter.nanos()) * u128::from(self.spec.clock_hz) / 1_000_000_000;
        Some(ReceiverReport {
            receiver: !source,
            source,
            fraction_lost: u8::try_from(lately * 256 / expected).unwrap_or(u8::MAX),
            lost: i32::try_from(lost).unwrap_or(i32::MAX),
            // RTCP has the lower 32 bits.
            highest: u32::try_from(highest.rem_euclid(1 << 32)).unwrap_or(0),
            jitter: u32::try_from(ticks).unwrap_or(u32::MAX),
        })
    }

    /// Judges frames whose waiting time is over.
    pub(super) fn advance_to(&mut self, now: Span) {
        self.frames.judge_until(now);
    }

    /// End of the second with this number.
    pub(super) fn second_ends(&self, index: u32) -> Option<Span> {
        Some(self.origin? - LEAD + SECOND.times(i64::from(index) + 1))
    }

    /// The second with this number; empty if no packet arrived in it.
    pub(super) fn second_of(&self, index: u32) -> StreamSecond {
        let index_of = usize::try_from(index).ok();
        let second = index_of.and_then(|index| self.seconds.get(index));
        second.copied().unwrap_or_default()
    }

    /// Ends the measurement: returns the figures and removes incomplete seconds.
    pub(super) fn finish(&mut self, end: Span, drops: u64) -> StreamStatistics {
        self.frames.finish(end);
        let origin = self.origin.unwrap_or(end);
        let second_count = (end - (origin - LEAD)).nanos() / SECOND.nanos();
        let second_count = usize::try_from(second_count).unwrap_or(0).min(MAX_SECONDS);
        if self.origin.is_some() {
            self.seconds
                .resize_with(second_count, StreamSecond::default);
        }
        let rates = self.seconds.iter().map(StreamSecond::rate);
        let lasted = end - origin;
        let bytes: u64 = self.seconds.iter().map(|second| second.bytes).sum();
        let seconds = i64::try_from(self.seconds.len()).unwrap_or(i64::MAX);
        let totals = &self.totals;
        let mut statistics = StreamStatistics {
            ssrc: self.ssrc,
            packets: totals.packets,
            bytes: totals.bytes,
            lost: totals.missing.saturating_sub(totals.filled),
            reordered: totals.reordered,
            duplicates: totals.duplicates,
            late: totals.late,
            foreign: self.foreign,
            socket_drops: drops,
            lasted,
            rate_min: rates.clone().min(),
            rate_mean: (seconds > 0).then(|| rate_of(bytes, SECOND.times(seconds))),
            rate_max: rates.max(),
            jitter: JitterStatistics::of(Some(&self.jitter)),
            network_jitter: JitterStatistics::of(self.network.as_ref()),
            frames: self.frames.counts(),
            stalls: self.frames.stalls(),
            quality: Quality::Nothing,
        };
        let input = VideoQuality {
            kbit_s: statistics.sent_kbit_s(),
            frames_s: self.frames.rate().unwrap_or(0.0),
            loss: statistics.unplayable(),
        };
        statistics.quality = input.estimate();
        statistics
    }

    /// The seconds; only whole ones after [`Track::finish`].
    pub(super) fn seconds(&self) -> &[StreamSecond] {
        &self.seconds
    }
}

#[cfg(test)]
#[path = "track_tests.rs"]
mod tests;
