//! The results of one stream as a row.

use neph_load::media::StreamMeasured;
use neph_model::{BitRate, Span};

use crate::cell::OrDash;

crate::rows! {
    /// The results of one stream.
    pub struct StreamRow {
        /// Number of the stream, from 1.
        stream: u32 => right "STREAM",
        /// Encoding that the server names; null if it names none.
        encoding: Option<String>,
        /// Lowest rate of RTP payload in a whole second; null without a whole second.
        rate_min_bit_s: Option<BitRate> => right "MIN" by |row| kbit(row.rate_min_bit_s),
        /// Rate of RTP payload over all whole seconds; null without a whole second.
        rate_mean_bit_s: Option<BitRate> => right "MEAN" by |row| kbit(row.rate_mean_bit_s),
        /// Highest rate of RTP payload in a whole second; null without a whole second.
        rate_max_bit_s: Option<BitRate> => right "MAX kbit/s" by |row| kbit(row.rate_max_bit_s),
        /// Packets received, without duplicates.
        packets: u64 => right "PACKETS",
        /// RTP payload received.
        payload_bytes: u64,
        /// Duration since the first packet.
        lasted_ns: Span,
        /// Packets missing in the sequence.
        lost: u64,
        /// Packets missing, percent of all that were sent.
        loss_percent: f64 => right "LOSS" by |row| format!("{:.2} %", row.loss_percent),
        /// Packets that arrived after one with a higher sequence number (RFC 4737).
        reordered: u64 => right "REORDERED",
        /// Duplicate packets.
        duplicates: u64 => right "DUPLICATES",
        /// Packets that arrived after their frame was due.
        late_packets: u64,
        /// Datagrams that do not belong to the stream.
        unrelated_datagrams: u64,
        /// Lost packets that the client's socket dropped.
        socket_drops: u64,
        /// Mean interarrival jitter by RTP timestamps, over all packets (RFC 3550); null with fewer
        /// than two packets.
        jitter_mean_ns: Option<Span> => right "JITTER",
        /// Largest interarrival jitter by RTP timestamps; null with fewer than two packets.
        jitter_max_ns: Option<Span>,
        /// Mean interarrival jitter by send times (RFC 5450): that of the network, without the
        /// pacing of frames. null if the server does not report send times.
        network_jitter_mean_ns: Option<Span> => right "NETWORK JITTER",
        /// Largest interarrival jitter by send times; null if the server does not report send
        /// times.
        network_jitter_max_ns: Option<Span>,
        /// Frames that were due.
        frames: u64 => right "FRAMES",
        /// Frames that were complete in time.
        frames_in_time: u64,
        /// Frames that were complete, but too late.
        frames_late: u64 => right "LATE",
        /// Frames of which only some packets arrived.
        frames_incomplete: u64 => right "INCOMPLETE",
        /// Frames of which no packet arrived.
        frames_missing: u64 => right "MISSING",
        /// Number of stalls: the picture did not change for three frame intervals or more, and for
        /// at least 150 ms more than one.
        stalls: u64 => right "STALLS",
        /// Total duration of stalls.
        stalled_ns: Span => right "STALLED",
        /// Duration of the longest stall.
        stall_longest_ns: Span,
        /// Estimated video quality, 1 to 5 (ITU-T G.1070, H.264 VGA); null outside the range of the
        /// model.
        quality_mos: Option<f64> => right "MOS" by |row| {
            row.quality_mos.or_dash(|score| format!("{score:.1}"))
        },
        /// Why there is no estimate; null if there is one.
        quality_missing_reason: Option<&'static str>,
        /// Why the stream broke; null otherwise.
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
        let figures = &stream.statistics;
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
            unrelated_datagrams: figures.foreign,
            socket_drops: figures.socket_drops,
            jitter_mean_ns: figures.jitter.map(|jitter| jitter.mean),
            jitter_max_ns: figures.jitter.map(|jitter| jitter.max),
            network_jitter_mean_ns: figures.network_jitter.map(|jitter| jitter.mean),
            network_jitter_max_ns: figures.network_jitter.map(|jitter| jitter.max),
            frames: frames.total(),
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
