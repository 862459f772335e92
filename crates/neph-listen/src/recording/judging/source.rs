//! The packets of a point while it records: read from its capture, or sent by an agent as samples.
//!
//! Owns samples until they are read, and the clocks of their hosts. Which packets are wanted is the parent's.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::ops::{ControlFlow, Range};

use neph_model::{ClockReading, PacketSample, Span};
use neph_wire::capture::{CaptureError, CaptureReader, Record, Step};
use neph_wire::dissect::Link;

use super::super::begun::kernel;
use super::super::tail::Tail;

/// Packets of a point that wait, at most: the samples of a minute.
const WAITING: usize = 4_096;
/// A clock was set if two readings of it are further apart.
const SET: Span = Span::from_millis(250);

/// Where a point's packets come from.
#[derive(Debug)]
pub(super) enum Source {
    Capture(Tail),
    Samples(Samples),
}

/// Packets that an agent sent, by the clock that stamped them.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// Stands for the kernel whose clock that is, once that is known to be another than this host's.
    kernel: Option<String>,
    waiting: VecDeque<Sampled>,
}

#[derive(Debug)]
struct Sampled {
    at: i64,
    link: Link,
    length: u32,
    bytes: Vec<u8>,
}

/// How far clocks of other kernels are from this host's: all points of one kernel have one clock.
#[derive(Debug, Default)]
pub(super) struct Clocks(BTreeMap<String, ClockReading>);

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

    /// The kernel that stamps its packets, if that is another than this host's.
    fn kernel(&self) -> Option<&str> {
        match self {
            Self::Capture(_) => None,
            Self::Samples(samples) => samples.kernel.as_deref(),
        }
    }
}

impl Samples {
    /// Takes in what an agent sent. Of a host whose clock is not known yet nothing can be placed.
    ///
    /// # Errors
    /// It is no capture, or the clock was set.
    pub(super) fn take(&mut self, sample: &PacketSample, clocks: &mut Clocks) -> io::Result<()> {
        if sample.kernel != kernel() {
            if !clocks.note(sample)? {
                return Ok(());
            }
            self.kernel = Some(sample.kernel.clone());
        }
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
        let Some(at) = record.at else { return };
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
        let ahead = clocks.ahead(self.kernel.as_deref());
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

impl Clocks {
    /// Takes note of a reading; whether the sample's clock is known now.
    fn note(&mut self, sample: &PacketSample) -> io::Result<bool> {
        let Some(reading) = sample.clock else {
            return Ok(self.0.contains_key(&sample.kernel));
        };
        let before = self.0.insert(sample.kernel.clone(), reading);
        if before.is_some_and(|before| (reading.offset - before.offset).abs() > SET) {
            return Err(io::Error::other("the clock of an agent's host was set"));
        }
        Ok(true)
    }

    /// How far a delay between two points, this one of the sources and the next, may be wrong: not at all where one
    /// kernel stamps at both.
    pub(super) fn bound(&self, sources: &[Source], segment: usize) -> Span {
        let both = [segment, segment + 1].map(|place| sources.get(place).and_then(Source::kernel));
        if both[0] == both[1] {
            return Span::ZERO;
        }
        let readings = both
            .iter()
            .flatten()
            .filter_map(|kernel| self.0.get(*kernel));
        readings.fold(Span::ZERO, |all, reading| all + reading.bound)
    }

    /// By how much a kernel's clock is ahead of this host's, in nanoseconds.
    fn ahead(&self, kernel: Option<&str>) -> i64 {
        let reading = kernel.and_then(|kernel| self.0.get(kernel));
        reading.map_or(0, |reading| reading.offset.nanos())
    }
}

fn broken(error: CaptureError) -> io::Error {
    let why = format!("what an agent sends is no capture: {error}");
    io::Error::new(ErrorKind::InvalidData, why)
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
        let (mut clocks, mut samples) = (Clocks::default(), Samples::default());
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
        let mut source = |kernel: &str, offset| {
            let mut samples = Samples::default();
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
        assert_eq!([times(0), times(1), times(3)], [[3_700], [3_700], [5_000]]);
    }

    #[test]
    fn a_clock_that_was_set_and_what_is_no_capture_are_faults() {
        let (mut clocks, mut samples) = (Clocks::default(), Samples::default());
        let mut take = |sample: PacketSample| samples.take(&sample, &mut clocks);
        take(sample("other", Some(Span::ZERO), &[])).expect("a sample");
        let set = take(sample("other", Some(Span::from_millis(300)), &[]));
        assert!(set.is_err_and(|why| why.to_string().contains("was set")));
        let mut broken = sample("other", None, &[]);
        broken.pcap = b"Welcome to this host, and good luck".to_vec();
        assert!(take(broken).is_err_and(|why| why.to_string().contains("no capture")));
    }
}
