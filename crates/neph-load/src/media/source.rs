//! Schedules a server's packets: the frames of a trace as RTP packets.
//!
//! A frame is split into the minimum number of packets, of equal size. The first half of the
//! frame's interval is divided into one slot per packet; each packet is due at a random time in its
//! slot.
//!
//! - Not all at once: a burst of a whole frame overflows short queues; no encoder that paces does
//!   that.
//! - In the first half: the rest is for delay variation, so that a frame ends before the next
//!   begins.
//! - At random: streams with equal periods keep their phase at a full queue. Some then lose nearly
//!   all packets, others nearly none (Floyd and Jacobson: Traffic phase effects in packet-switched
//!   gateways, 1991).
//!
//! Each packet has its transmission time offset (RFC 5450), so that a receiver can exclude this
//! pacing from its jitter.

use neph_model::Span;
use neph_wire::rtp::{Header, Packet, offset_element, offset_extension};

use super::trace::{CLOCK_HZ, Trace};

/// The payload type of packets, dynamic (RFC 3551, section 3).
pub(super) const PAYLOAD_TYPE: u8 = 96;
/// Name of the payload format in SDP: [`Position`], then padding.
pub(super) const ENCODING: &str = "X-NEPH-FRAMES";
/// Number of the header extension with the transmission time offset.
pub(super) const OFFSET_ID: u8 = 1;
/// Maximum payload of a packet in bytes: fits into 1500 with its headers and those of tunnels.
pub(super) const LARGEST_PAYLOAD: u32 = 1_400;
/// A frame that is later than this is skipped.
const MAX_LATENESS: Span = Span::from_secs(1);

/// Position of a packet: the first bytes of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Frame number modulo 2^32.
    pub(super) frame: u32,
    /// Packet number in the frame, from 0.
    pub(super) index: u16,
    /// Number of packets of the frame.
    pub(super) count: u16,
}

impl Position {
    /// Bytes on the wire.
    pub(super) const LEN: usize = 8;

    fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&self.frame.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.index.to_be_bytes());
        bytes[6..].copy_from_slice(&self.count.to_be_bytes());
        bytes
    }

    /// Reads it from a payload.
    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let (frame, rest) = payload.split_first_chunk()?;
        let (index, rest) = rest.split_first_chunk()?;
        Some(Self {
            frame: u32::from_be_bytes(*frame),
            index: u16::from_be_bytes(*index),
            count: u16::from_be_bytes(*rest.first_chunk()?),
        })
    }
}

/// Random initial values of a stream, so that streams are not confused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RtpStart {
    /// Sequence number of the first packet.
    pub(super) sequence: u16,
    /// Timestamp of the first frame.
    pub(super) timestamp: u32,
    /// The synchronisation source.
    pub(super) ssrc: u32,
}

/// A stream that is sent.
#[derive(Debug)]
pub(super) struct Source<'t> {
    trace: &'t Trace,
    first: RtpStart,
    frame: u64,
    index: u32,
    /// When the next packet is due.
    due: Span,
    random: Random,
    sent: u64,
    left_out: u64,
    noise: Vec<u8>,
}

/// Marsaglia's xorshift: good enough for different phases and for incompressible padding.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

impl<'t> Source<'t> {
    /// Starts with the first frame.
    pub(super) fn new(trace: &'t Trace, first: RtpStart) -> Self {
        let mut random = Random(u64::from(first.ssrc) | (1 << 40));
        // Incompressible: a tunnel that compresses would change the rate.
        let noise = std::iter::repeat_with(|| random.next().to_be_bytes()[0]);
        let noise = noise.take(LARGEST_PAYLOAD as usize).collect();
        Self {
            trace,
            first,
            frame: 0,
            index: 0,
            due: Span::ZERO,
            random,
            sent: 0,
            left_out: 0,
            noise,
        }
    }

    fn count(&self) -> u32 {
        self.trace.size(self.frame).div_ceil(LARGEST_PAYLOAD).max(1)
    }

    /// When the next packet is due, since the start of the stream.
    pub(super) const fn due(&self) -> Span {
        self.due
    }

    /// Chooses the due time of the next packet.
    fn choose_due(&mut self) {
        let (begin, end) = (self.trace.time(self.frame), self.trace.time(self.frame + 1));
        let slot = (end - begin).nanos() / 2 / i64::from(self.count()).max(1);
        let within = i64::try_from(self.random.next() >> 1).unwrap_or(0) % slot.max(1);
        let slots = Span::from_nanos(slot).times(i64::from(self.index));
        self.due = begin + slots + Span::from_nanos(within);
    }

    /// Skips frames that are too late, so that a delayed server sends no burst.
    pub(super) fn catch_up(&mut self, now: Span) {
        while self.due + MAX_LATENESS < now {
            self.left_out += 1;
            self.frame += 1;
            self.index = 0;
            self.choose_due();
        }
    }

    /// Writes the next packet, sent at `now`, and advances.
    pub(super) fn write(&mut self, now: Span, out: &mut Vec<u8>) {
        let (size, count) = (
            u64::from(self.trace.size(self.frame)),
            u64::from(self.count()),
        );
        let index = u64::from(self.index);
        let length = size * (index + 1) / count - size * index / count;
        let length = usize::try_from(length).unwrap_or(0);
        let element = offset_element(OFFSET_ID, ticks(now - self.trace.time(self.frame)));
        #[expect(clippy::cast_possible_truncation, reason = "RTP's numbers wrap")]
        let (sent, since, frame) = (
            self.sent as u16,
            self.trace.ticks(self.frame) as u32,
            self.frame as u32,
        );
        let header = Header {
            payload_type: PAYLOAD_TYPE,
            is_marked: index + 1 == count,
            sequence: self.first.sequence.wrapping_add(sent),
            timestamp: self.first.timestamp.wrapping_add(since),
            ssrc: self.first.ssrc,
        };
        let packet = Packet {
            header,
            sources: &[],
            extension: Some(offset_extension(&element)),
            payload: &[],
        };
        packet.encode(out);
        let position = Position {
            frame,
            index: u16::try_from(index).unwrap_or(u16::MAX),
            count: u16::try_from(count).unwrap_or(u16::MAX),
        };
        out.extend(position.encode());
        let filler = length.saturating_sub(Position::LEN).min(self.noise.len());
        out.extend(&self.noise[..filler]);
        self.sent += 1;
        self.index += 1;
        if u64::from(self.index) == count {
            self.index = 0;
            self.frame += 1;
        }
        self.choose_due();
    }

    /// Frames that were skipped because they were too late.
    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// A time in ticks of the RTP clock.
fn ticks(span: Span) -> i32 {
    let ticks = i128::from(span.nanos()) * i128::from(CLOCK_HZ) / 1_000_000_000;
    i32::try_from(ticks).unwrap_or(if span < Span::ZERO {
        i32::MIN
    } else {
        i32::MAX
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: RtpStart = RtpStart {
        sequence: 65_535,
        timestamp: u32::MAX,
        ssrc: 7,
    };

    #[test]
    fn a_frame_is_split_evenly_and_sent_in_the_first_half_of_its_interval() {
        let trace = Trace::parse("fps 25\n3000\n8\n").expect("a trace");
        let mut source = Source::new(&trace, FIRST);
        let (mut dues, mut sizes, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..4 {
            let due = source.due();
            bytes.clear();
            source.write(due + Span::from_millis(1), &mut bytes);
            let packet = Packet::decode(&bytes).expect("a packet");
            let position = Position::decode(packet.payload).expect("8 bytes");
            let header = packet.header;
            dues.push(due);
            sizes.push(packet.payload.len());
            let is_last = position.index + 1 == position.count;
            assert_eq!(header.is_marked, is_last);
            // The offset is relative to the timestamp and includes the lateness of 1 ms.
            let since = due - trace.time(u64::from(position.frame)) + Span::from_millis(1);
            let offset = packet.transmission_offset(OFFSET_ID);
            assert_eq!(offset.map(i64::from), Some(since.nanos() * 9 / 100_000));
        }
        let slots = [0, 6_666, 13_333, 40_000].map(Span::from_micros);
        assert_eq!(dues[0], Span::ZERO, "the stream begins at once");
        for (due, slot) in dues.iter().zip(slots) {
            let length = Span::from_micros(if slot < Span::from_millis(40) {
                6_667
            } else {
                20_000
            });
            assert!(*due >= slot && *due < slot + length, "{dues:?}");
        }
        assert_eq!(sizes, [1_000, 1_000, 1_000, 8]);
        let last = Packet::decode(&bytes).expect("a packet").header;
        assert_eq!((last.sequence, last.timestamp), (2, 3_599));
    }

    #[test]
    fn frames_late_by_more_than_a_second_are_left_out() {
        let trace = Trace::parse("fps 25\n100\n").expect("a trace");
        let mut source = Source::new(&trace, FIRST);
        source.catch_up(Span::from_millis(1_000));
        assert_eq!(source.left_out(), 0);
        source.catch_up(Span::from_millis(1_130));
        // The frames at 0, 40 and 80 ms; that at 120 ms is due within the next 20.
        let since = source.due() - Span::from_millis(120);
        assert!(
            since >= Span::ZERO && since < Span::from_millis(20),
            "{since}"
        );
        assert_eq!(source.left_out(), 3);
    }
}
