//! The packets of a point while it records: read from its capture, or sent by an agent as samples.
//!
//! Owns samples until they are read, and the clocks of their hosts. Which packets are wanted is the parent's.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::{ControlFlow, Range};

use neph_model::{ClockReading, PacketSample, Span};
use neph_wire::capture::{CaptureError, CaptureReader, Record, Step};
use neph_wire::dissect::Link;

use super::super::begun::kernel;
use super::super::tail::Tail;

/// Packets of a point that wait, at most: the samples of a minute.
const WAITING: usize = 4_096;
/// Bytes of a packet in a sample, at most: more than agents keep of one is nobody's.
const KEPT: usize = 256;
/// Two clocks drift by a nanosecond in so many: 100 ppm.
const DRIFT: i64 = 10_000;
/// When an agent has sent nothing for so long, another one on its kernel reads the clock.
const TAKEN_OVER: Span = Span::from_secs(2);

/// Where a point's packets come from.
#[derive(Debug)]
pub(super) enum Source {
    Capture(Tail),
    Samples(Samples),
}

/// Packets that an agent sent, by the clock that stamped them.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// Its place in the path.
    point: usize,
    /// Stands for the kernel whose clock that is, once that is known.
    kernel: Option<String>,
    waiting: VecDeque<Sampled>,
    /// Nothing more is taken from it.
    is_over: bool,
}

#[derive(Debug)]
struct Sampled {
    at: i64,
    link: Link,
    length: u32,
    bytes: Vec<u8>,
}

/// How far clocks of other kernels are from this host's: all points of one kernel have one clock.
#[derive(Debug)]
pub(super) struct Clocks {
    /// This host's kernel.
    own: String,
    others: BTreeMap<String, Known>,
}

/// The clock of a kernel, by one of the agents on it.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The point of that agent.
    point: usize,
    reading: ClockReading,
    /// It was set before this, by itself: what was stamped before is not known any more.
    since: i64,
}

impl Source {
    /// Shows the packets that passed in `times`, by this host's clock. Those before `next` are not shown again.
    ///
    /// # Errors
    /// The capture cannot be read.
    pub(super) fn read(
        &mut self,
        times: &Range<i64>,
        next: i64,
        clocks: &Clocks,
        show: impl FnMut(i64, &Record<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        match self {
            Self::Capture(tail) => tail.read(times, next, show).map_err(|error| {
                io::Error::new(error.kind(), format!("read {}: {error}", tail.name()))
            }),
            Self::Samples(samples) => {
                samples.read(times, next, clocks, show);
                Ok(())
            }
        }
    }

    /// The kernel that stamps its packets.
    fn kernel<'a>(&'a self, own: &'a str) -> Option<&'a str> {
        match self {
            Self::Capture(_) => Some(own),
            Self::Samples(samples) => samples.kernel.as_deref(),
        }
    }
}

impl Samples {
    /// None yet, of the point at this place of the path.
    pub(super) fn of(point: usize) -> Self {
        Self {
            point,
            ..Self::default()
        }
    }

    /// Takes in what an agent sent. Of a host whose clock is not known yet nothing can be placed. After an error nothing
    /// more is taken.
    ///
    /// # Errors
    /// It is no capture, or of another kernel than before: why, in a few words.
    pub(super) fn take(
        &mut self,
        sample: &PacketSample,
        clocks: &mut Clocks,
    ) -> Result<(), String> {
        if self.is_over {
            return Ok(());
        }
        let taken = self.take_in(sample, clocks);
        if taken.is_err() {
            self.is_over = true;
            self.waiting.clear();
        }
        taken
    }

    fn take_in(&mut self, sample: &PacketSample, clocks: &mut Clocks) -> Result<(), String> {
        if self
            .kernel
            .as_ref()
            .is_some_and(|kernel| *kernel != sample.kernel)
        {
            return Err("its agent names another kernel than before".to_owned());
        }
        if !clocks.note(self.point, sample) {
            return Ok(());
        }
        self.kernel = Some(sample.kernel.clone());
        let broken = |error: CaptureError| format!("what its agent sends is no capture: {error}");
        let (mut reader, mut used) = (CaptureReader::new(), 0);
        loop {
            used += match reader.step(&sample.pcap[used..]).map_err(broken)? {
                Step::Packet(record, length) => {
                    self.keep(&record);
                    length
                }
                Step::Skip(length) => length,
                Step::Need(_) => return Ok(()),
            };
        }
    }

    fn keep(&mut self, record: &Record<'_>) {
        let Some(at) = record.at.filter(|_| record.bytes.len() <= KEPT) else {
            return;
        };
        if self.waiting.len() >= WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Sampled {
            at,
            link: record.link,
            length: record.length,
            bytes: record.bytes.to_vec(),
        });
    }

    fn read(
        &mut self,
        times: &Range<i64>,
        next: i64,
        clocks: &Clocks,
        mut show: impl FnMut(i64, &Record<'_>) -> ControlFlow<()>,
    ) {
        let known = self
            .kernel
            .as_ref()
            .and_then(|kernel| clocks.others.get(kernel));
        let ahead = known.map_or(0, |known| known.reading.offset.nanos());
        let since = known.map_or(i64::MIN, |known| known.since);
        self.waiting.retain(|packet| packet.at >= since);
        for packet in &self.waiting {
            let at = packet.at.saturating_sub(ahead);
            let record = Record {
                at: Some(at),
                link: packet.link,
                interface: 0,
                bytes: &packet.bytes,
                length: packet.length,
            };
            if times.contains(&at) && show(at, &record).is_break() {
                return;
            }
        }
        self.waiting
            .retain(|packet| packet.at.saturating_sub(ahead) >= next);
    }
}

impl Default for Clocks {
    fn default() -> Self {
        Self {
            own: kernel(),
            others: BTreeMap::new(),
        }
    }
}

impl Clocks {
    /// Takes note of a reading; whether the sample's clock is known now.
    fn note(&mut self, point: usize, sample: &PacketSample) -> bool {
        if sample.kernel == self.own {
            return true;
        }
        let known = self.others.get(&sample.kernel).copied();
        let Some(reading) = sample.clock else {
            return known.is_some();
        };
        // One clock is read by one agent, as long as that one sends.
        let is_read = known
            .is_none_or(|known| known.point == point || reading.at > known.reading.at + TAKEN_OVER);
        if is_read {
            let since = known.map_or(i64::MIN, |known| known.since_set(&reading));
            let known = Known {
                point,
                reading,
                since,
            };
            self.others.insert(sample.kernel.clone(), known);
        }
        true
    }

    /// Whether the same clock stamps at two points, this one of the sources and the next.
    pub(super) fn is_one(&self, sources: &[Source], segment: usize) -> bool {
        let [here, there] = self.kernels(sources, segment);
        here == there
    }

    /// How far a delay between two points, this one of the sources and the next, may be wrong: not at all by one clock.
    pub(super) fn bound(&self, sources: &[Source], segment: usize) -> Span {
        let both = self.kernels(sources, segment);
        if both[0] == both[1] {
            return Span::ZERO;
        }
        let known = both
            .iter()
            .flatten()
            .filter_map(|kernel| self.others.get(*kernel));
        known.fold(Span::ZERO, |all, known| all + known.reading.bound)
    }

    fn kernels<'a>(&'a self, sources: &'a [Source], segment: usize) -> [Option<&'a str>; 2] {
        [segment, segment + 1].map(|place| sources.get(place)?.kernel(&self.own))
    }
}

impl Known {
    /// From when on packets are known by this next reading. Where both cannot be true the clock was set: then by no
    /// stamp from before, which may be as much ahead as it was set back.
    fn since_set(&self, reading: &ClockReading) -> i64 {
        let apart = (reading.offset - self.reading.offset).abs();
        let passed = reading
            .at
            .unix_nanos()
            .saturating_sub(self.reading.at.unix_nanos());
        let drift = Span::from_nanos(passed.saturating_abs() / DRIFT);
        let bounds = self.reading.bound + reading.bound;
        if apart > bounds + drift {
            (reading.at + apart + bounds).unix_nanos()
        } else {
            self.since
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn samples_are_shown_by_this_hosts_clock_until_they_are_over() {
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
        assert_eq!(clocks.bound(&sources, 0), Span::from_micros(100));
    }

    #[test]
    fn one_kernel_is_one_clock_whichever_agent_read_it() {
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
        let bounds = [0, 1, 2, 3].map(|segment| clocks.bound(&sources, segment).nanos() / 1_000);
        assert_eq!(bounds, [0, 200, 100, 0]);
        let mut times = |place: usize| shown(&mut sources[place], &clocks, 0..9_000, 9_000);
        assert_eq!([times(0), times(1), times(3)], [[4_000], [4_000], [5_000]]);
    }

    #[test]
    fn another_kernel_and_what_is_no_capture_end_it() {
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
            let why = take(&last).expect_err("it is the last");
            assert!(why.contains(expected), "{why}");
            take(&last).expect("nobody looks at it");
            let mut source = Source::Samples(samples);
            assert!(shown(&mut source, &clocks, 0..i64::MAX, 0).is_empty());
        }
    }

    /// Both points are of one kernel, and the first one's agent reads the clock.
    #[test]
    fn what_was_stamped_before_a_clock_was_set_is_known_at_no_point_any_more() {
        for set in [40_000_000_i64, -40_000_000] {
            let mut clocks = Clocks::default();
            let mut both = [0, 1].map(Samples::of);
            let mut take = |point: usize, offset: i64, now: i64, times: &[i64]| {
                let mut sample = sample("other", Some(Span::from_nanos(offset)), times);
                if let Some(reading) = &mut sample.clock {
                    reading.at = Wall::from_unix_nanos(now);
                }
                both[point].take(&sample, &mut clocks).expect("a sample");
            };
            let second = 1_000_000_000;
            take(0, 0, second, &[second - 9]);
            take(1, 0, second, &[second - 5]);
            // Within both bounds and the drift.
            take(0, 200_000, second + 1, &[second]);
            // The clock is set in between.
            let now = second + second / 2 + set;
            take(0, set, now, &[second + 10, now - 1]);
            take(1, set, now + 1, &[second + 20]);
            let after = now + set.abs() + 1_000_000;
            take(0, set, after + 100, &[after + 1]);
            take(1, set, after + 100, &[after + 2]);
            let mut sources = both.map(Source::Samples);
            let mut of = |place: usize| shown(&mut sources[place], &clocks, 0..i64::MAX, 0);
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
}
