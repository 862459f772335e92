use neph_model::BitRate;

use super::super::source::{RtpStart, Source};
use super::super::trace::Trace;
use super::*;

const FIRST: RtpStart = RtpStart {
    sequence: 65_000,
    timestamp: u32::MAX - 10_000,
    ssrc: 9,
};

fn media_request(duration: Span) -> MediaRequest {
    MediaRequest {
        url: String::new(),
        streams: 1,
        duration,
        buffer: Span::from_millis(200),
        start: None,
    }
}

fn media() -> Media {
    Media {
        payload_type: 96,
        encoding: Some(ENCODING.to_owned()),
        frames_per_1000_s: Some(25_000),
        offset_extension_id: Some(1),
        ..Media::default()
    }
}

/// A datagram and its send time.
struct SentPacket {
    at: Span,
    bytes: Vec<u8>,
}

/// Datagrams that a server sends in this time.
fn generate_packets(trace: &Trace, duration: Span) -> Vec<SentPacket> {
    let mut source = Source::new(trace, FIRST);
    let mut sent_packets = Vec::new();
    while source.due() < duration {
        let (at, mut bytes) = (source.due(), Vec::new());
        source.write(at, &mut bytes);
        sent_packets.push(SentPacket { at, bytes });
    }
    sent_packets
}

/// Results of a client; each packet has this delay, or is lost (absent).
fn run_client(
    packets: &[SentPacket],
    duration: Span,
    mut delay: impl FnMut(usize) -> Option<Span>,
) -> (StreamStatistics, Track) {
    let mut track = Track::new(TrackSpec::new(&media(), &media_request(duration)), None);
    track.announce(&RtpInfo {
        sequence: Some(FIRST.sequence),
        ..RtpInfo::default()
    });
    let numbered = packets.iter().enumerate();
    let mut arrivals: Vec<_> = numbered
        .filter_map(|(number, sent)| Some((sent.at + delay(number)?, sent)))
        .collect();
    arrivals.sort_by_key(|(at, _)| *at);
    let origin = arrivals[0].0;
    for (at, sent) in arrivals {
        track.advance_to(at);
        track.arrive(&sent.bytes, at);
    }
    let statistics = track.finish(origin + duration, 0);
    (statistics, track)
}

const DELAY: Span = Span::from_millis(30);

#[test]
fn an_undisturbed_stream_has_the_rates_of_its_trace_and_no_network_jitter() {
    let animation = Trace::animation().expect("a trace");
    let duration = Span::from_secs(60);
    let (statistics, track) = run_client(&generate_packets(&animation, duration), duration, |_| {
        Some(DELAY)
    });
    assert_eq!(track.seconds().len(), 60);
    assert_eq!(statistics.rate_min, Some(BitRate(110_000)));
    assert_eq!(statistics.rate_mean, Some(BitRate(957_100)));
    assert_eq!(statistics.rate_max, Some(BitRate(1_853_000)));
    assert_eq!(
        (statistics.lost, statistics.late, statistics.foreign),
        (0, 0, 0)
    );
    // Of 1500 frames the last four are not due by then.
    assert_eq!(
        (statistics.frames.in_time, statistics.frames.total()),
        (1_496, 1_496)
    );
    let network = statistics.network_jitter.expect("offsets were sent");
    assert!(network.max < Span::from_micros(12), "a tick: {network:?}");
    // Jitter by timestamps includes the pacing: packets of a frame are some milliseconds apart.
    let jitter = statistics.jitter.expect("packets came");
    assert!(jitter.mean > Span::from_millis(2), "{jitter:?}");
    let score = statistics.quality.score().expect("a score");
    assert!((score - 3.87).abs() < 0.05, "{score}");
}

#[test]
fn loss_reordering_and_duplicates_are_counted_across_sequence_wrap() {
    let trace = Trace::parse("fps 25\n2800\n").expect("a trace");
    let duration = Span::from_secs(40);
    let mut packets = generate_packets(&trace, duration);
    assert_eq!(packets.len(), 2_000);
    let copy = SentPacket {
        at: packets[70].at,
        bytes: packets[70].bytes.clone(),
    };
    let (statistics, _) = run_client(&packets, duration, |number| match number {
        // RTP-Info has the first sequence number, so the loss of the first packet is detected.
        0 => None,
        _ if number % 100 == 7 => None,
        500 => Some(DELAY + Span::from_millis(50)),
        _ => Some(DELAY),
    });
    assert_eq!((statistics.lost, statistics.packets), (21, 1_979));
    assert_eq!((statistics.reordered, statistics.duplicates), (1, 0));
    assert_eq!(statistics.frames.incomplete, 21);
    assert_eq!(statistics.stalls.count, 0);
    packets.push(copy);
    packets.push(SentPacket {
        at: Span::from_secs(1),
        bytes: b"no RTP".to_vec(),
    });
    let (statistics, _) = run_client(&packets, duration, |_| Some(DELAY));
    assert_eq!(
        (statistics.lost, statistics.duplicates, statistics.foreign),
        (0, 1, 1)
    );
}

#[test]
fn delay_variation_is_jitter_and_packets_beyond_the_buffer_are_late() {
    let trace = Trace::parse("fps 25\n1000\n").expect("a trace");
    let duration = Span::from_secs(40);
    let packets = generate_packets(&trace, duration);
    // One packet per frame; every other one is 8 ms later: |D| is always 8 ms.
    let later =
        |number: usize| DELAY + Span::from_millis(if number.is_multiple_of(2) { 0 } else { 8 });
    let (statistics, _) = run_client(&packets, duration, |number| Some(later(number)));
    let network = statistics.network_jitter.expect("offsets were sent");
    assert!(
        network.max - Span::from_millis(8) < Span::from_micros(20),
        "{network:?}"
    );
    assert!(
        (network.mean.millis_f64() - 7.87).abs() < 0.05,
        "{network:?}"
    );
    let (statistics, _) = run_client(&packets, duration, |number| {
        Some(later(number) + Span::from_millis(if number / 100 == 4 { 250 } else { 0 }))
    });
    // Above the buffer of 200 ms for 100 frames: one stall from the last frame before to the first
    // after.
    assert_eq!((statistics.late, statistics.frames.late), (100, 100));
    assert_eq!(
        (statistics.stalls.count, statistics.stalls.total),
        (1, Span::from_millis(101 * 40))
    );
}
