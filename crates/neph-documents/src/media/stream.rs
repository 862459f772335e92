//! The figures of one stream as a row.

use neph_load::media::StreamMeasured;
use neph_model::{BitRate, Span};

use crate::cell::OrDash;

crate::rows! {
    /// What was received of one stream.
    pub struct StreamRow {
        /// Its number, from 1.
        stream: u32 => right "STREAM",
        /// The encoding that the server names; null where it names none.
        encoding: Option<String>,
        /// The lowest bit rate of RTP payload in a whole second; null where there is no whole second.
        rate_min_bit_s: Option<BitRate> => right "MIN" by |row| kbit(row.rate_min_bit_s),
        /// The bit rate of RTP payload over all whole seconds; null where there is none.
        rate_mean_bit_s: Option<BitRate> => right "MEAN" by |row| kbit(row.rate_mean_bit_s),
        /// The highest bit rate of RTP payload in a whole second; null where there is none.
        rate_max_bit_s: Option<BitRate> => right "MAX kbit/s" by |row| kbit(row.rate_max_bit_s),
        /// Packets that came, duplicates not counted.
        packets: u64 => right "PACKETS",
        /// Payload of RTP that came, in bytes.
        payload_bytes: u64,
        /// From the first packet to the end, in nanoseconds.
        lasted_ns: Span,
        /// Packets that are missing in the sequence.
        lost: u64,
        /// These of all that were sent, in percent.
        loss_percent: f64 => right "LOSS" by |row| format!("{:.2} %", row.loss_percent),
        /// Packets that came after one with a higher number (RFC 4737).
        reordered: u64 => right "REORDERED",
        /// Packets that came once more.
        duplicates: u64 => right "DUPLICATES",
        /// Packets that came after their frame was due.
        late_packets: u64,
        /// Datagrams that do not belong to the stream.
        foreign: u64,
        /// Of the lost packets, those that the client's socket dropped.
        socket_drops: u64,
        /// The mean of interarrival jitter by RTP timestamps after each packet, in nanoseconds (RFC 3550);
        /// null of less than two packets.
        jitter_mean_ns: Option<Span> => right "JITTER",
        /// Its largest value, in nanoseconds.
        jitter_max_ns: Option<Span>,
        /// The mean of interarrival jitter by the moments of sending, in nanoseconds (RFC 5450): of the
        /// network, without the pacing of frames; null where the server does not send these.
        network_jitter_mean_ns: Option<Span> => right "NETWORK JITTER",
        /// Its largest value, in nanoseconds.
        network_jitter_max_ns: Option<Span>,
        /// Frames that were due.
        frames: u64 => right "FRAMES",
        /// Of these, complete in time.
        frames_in_time: u64,
        /// Of these, complete later than they were due.
        frames_late: u64 => right "LATE",
        /// Of these, with some of their packets only.
        frames_incomplete: u64 => right "INCOMPLETE",
        /// Of these, without any packet.
        frames_missing: u64 => right "MISSING",
        /// How often the picture stood still for three frame intervals or more and for 150 ms more than one.
        stalls: u64 => right "STALLS",
        /// These together, in nanoseconds.
        stalled_ns: Span => right "STALLED",
        /// The longest of them, in nanoseconds.
        stall_longest_ns: Span,
        /// Estimated video quality, 1 to 5 (ITU-T G.1070, H.264 VGA); null outside of its range.
        quality_mos: Option<f64> => right "MOS" by |row| {
            row.quality_mos.or_dash(|score| format!("{score:.1}"))
        },
        /// Why there is no estimate; null where there is one.
        quality_missing_reason: Option<&'static str>,
        /// Why the stream broke off; null where it did not.
        fault: Option<String>,
    }
}

fn kbit(rate: Option<BitRate>) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    rate.or_dash(|rate| format!("{:.0}", rate.bits_per_second() as f64 / 1e3))
}

impl StreamRow {
    /// The row of a stream, with its number from 1.
    pub fn new(number: u32, stream: &StreamMeasured) -> Self {
        let figures = &stream.figures;
        let (frames, stalls) = (&figures.frames, &figures.stalls);
        let thousandths = |value: f64| (value * 1e3).round() / 1e3;
        Self {
            stream: number,
            encoding: stream.encoding.clone(),
            rate_min_bit_s: figures.rate_min,
            rate_mean_bit_s: figures.rate_mean,
            rate_max_bit_s: figures.rate_max,
            packets: figures.packets,
            payload_bytes: figures.bytes,
            lasted_ns: figures.lasted,
            lost: figures.lost,
            loss_percent: thousandths(figures.loss() * 100.0),
            reordered: figures.reordered,
            duplicates: figures.duplicates,
            late_packets: figures.late,
            foreign: figures.foreign,
            socket_drops: figures.socket_drops,
            jitter_mean_ns: figures.jitter.map(|jitter| jitter.mean),
            jitter_max_ns: figures.jitter.map(|jitter| jitter.max),
            network_jitter_mean_ns: figures.network_jitter.map(|jitter| jitter.mean),
            network_jitter_max_ns: figures.network_jitter.map(|jitter| jitter.max),
            frames: frames.all(),
            frames_in_time: frames.in_time,
            frames_late: frames.late,
            frames_incomplete: frames.incomplete,
            frames_missing: frames.missing,
            stalls: stalls.count,
            stalled_ns: stalls.total,
            stall_longest_ns: stalls.longest,
            quality_mos: figures.quality.score().map(thousandths),
            quality_missing_reason: figures.quality.absence(),
            fault: stream.fault.clone(),
        }
    }
}
