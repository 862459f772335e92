//! Samples by this host's clock, and clocks that are set, shared or unknown.

use neph_model::Wall;
use neph_wire::capture::{RAW_IP, pcap_header, pcap_record};

use super::*;

fn sample(kernel: &str, offset: Option<Span>, times: &[i64]) -> PacketSample {
    let mut pcap = pcap_header(RAW_IP, 4).to_vec();
    for at in times {
        pcap.extend(pcap_record(*at, 4, 40));
        pcap.extend([1, 2, 3, 4]);
    }
    PacketSample {
        kernel: kernel.to_owned(),
        clock: offset.map(|offset| ClockReading {
            at: Wall::from_unix_nanos(0),
            offset,
            bound: Span::from_micros(100),
        }),
        pcap,
    }
}

fn shown(source: &mut Source, clocks: &Clocks, times: Range<i64>, next: i64) -> Vec<i64> {
    let mut all = Vec::new();
    let read = source.read(&times, next, clocks, |at, _| {
        all.push(at);
        ControlFlow::Continue(())
    });
    read.expect("samples are read");
    all
}

#[test]
fn samples_have_local_time_until_they_end() {
    let (mut clocks, mut samples) = (Clocks::default(), Samples::of(0));
    let ahead = Span::from_nanos(1_000);
    let unknown = sample("other", None, &[1]);
    samples.take(&unknown, &mut clocks).expect("it is left out");
    for sample in [
        sample("other", Some(ahead), &[1_010, 1_020]),
        sample("other", None, &[1_030]),
    ] {
        samples.take(&sample, &mut clocks).expect("a sample");
    }
    let mut source = Source::Samples(samples);
    assert_eq!(shown(&mut source, &clocks, 10..30, 15), [10, 20]);
    assert_eq!(shown(&mut source, &clocks, 0..99, 40), [20, 30]);
    assert!(shown(&mut source, &clocks, 0..99, 40).is_empty());
    let sources = [source, Source::Capture(Tail::of("a.pcap".into()))];
    assert_eq!(clocks.bound(&sources, 0), Some(Span::from_micros(100)));
}

#[test]
fn agents_of_one_kernel_share_one_clock() {
    let mut clocks = Clocks::default();
    let mut point = 0;
    let mut source = |kernel: &str, offset| {
        point += 1;
        let mut samples = Samples::of(point);
        let sample = sample(kernel, Some(Span::from_nanos(offset)), &[5_000]);
        samples.take(&sample, &mut clocks).expect("a sample");
        Source::Samples(samples)
    };
    let mut sources = [
        source("other", 1_000),
        source("other", 1_300),
        source("third", 1_200),
        source(&kernel(), 900),
        Source::Capture(Tail::of("a.pcap".into())),
    ];
    let bounds = [0, 1, 2, 3].map(|segment| clocks.bound(&sources, segment));
    let micros = |micros| Some(Span::from_micros(micros));
    assert_eq!(bounds, [None, micros(200), micros(100), None]);
    let mut times = |index: usize| shown(&mut sources[index], &clocks, 0..9_000, 9_000);
    assert_eq!([times(0), times(1), times(3)], [[4_000], [4_000], [5_000]]);
}

#[test]
fn another_kernel_or_an_invalid_capture_ends_the_samples() {
    let mut broken = sample("other", None, &[]);
    broken.pcap = b"Welcome to this host, and good luck".to_vec();
    let ends = [
        (
            sample("third", Some(Span::ZERO), &[2_000]),
            "another kernel",
        ),
        (broken, "no capture"),
    ];
    for (last, expected) in ends {
        let (mut clocks, mut samples) = (Clocks::default(), Samples::of(0));
        let mut take = |sample: &PacketSample| samples.take(sample, &mut clocks);
        take(&sample("other", Some(Span::ZERO), &[1_000])).expect("a sample");
        let reason = take(&last).expect_err("it is the last");
        assert!(reason.contains(expected), "{reason}");
        take(&last).expect("nobody looks at it");
        let mut source = Source::Samples(samples);
        assert!(shown(&mut source, &clocks, 0..i64::MAX, 0).is_empty());
    }
}

/// Both points have one kernel, and the agent of the first reads the clock.
#[test]
fn packets_from_before_a_clock_step_are_discarded_at_all_points() {
    for set in [40_000_000_i64, -40_000_000] {
        let mut clocks = Clocks::default();
        let mut sample_sets = [0, 1].map(Samples::of);
        let mut take = |point: usize, offset: i64, now: i64, times: &[i64]| {
            let mut sample = sample("other", Some(Span::from_nanos(offset)), times);
            if let Some(reading) = &mut sample.clock {
                reading.at = Wall::from_unix_nanos(now);
            }
            sample_sets[point]
                .take(&sample, &mut clocks)
                .expect("a sample");
        };
        let second = 1_000_000_000;
        take(0, 0, second, &[second - 9]);
        take(1, 0, second, &[second - 5]);
        // Within both error bounds and the drift.
        take(0, 200_000, second + 1, &[second]);
        // The clock is set in between.
        let now = second + second / 2 + set;
        take(0, set, now, &[second + 10, now - 1]);
        take(1, set, now + 1, &[second + 20]);
        let after = now + set.abs() + 1_000_000;
        take(0, set, after + 100, &[after + 1]);
        take(1, set, after + 100, &[after + 2]);
        let mut sources = sample_sets.map(Source::Samples);
        let mut of = |index: usize| shown(&mut sources[index], &clocks, 0..i64::MAX, 0);
        assert_eq!(
            (of(0), of(1)),
            (vec![after + 1 - set], vec![after + 2 - set])
        );
    }
}

#[test]
fn another_agent_reads_the_clock_when_the_first_one_is_silent() {
    let mut clocks = Clocks::default();
    let mut read = |point: usize, seconds: i64, micros: i64| {
        let mut sample = sample("other", Some(Span::from_micros(micros)), &[]);
        if let Some(reading) = &mut sample.clock {
            reading.at = Wall::from_unix_nanos(seconds * 1_000_000_000);
        }
        assert!(clocks.note(point, &sample));
        clocks.others["other"].reading.offset
    };
    assert_eq!(read(0, 10, 7), Span::from_micros(7));
    assert_eq!(read(1, 11, 9), Span::from_micros(7));
    assert_eq!(read(1, 13, 9), Span::from_micros(9));
}
