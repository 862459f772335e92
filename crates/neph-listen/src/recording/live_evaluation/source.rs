//! The packets of a point during a recording: read from its capture, or from samples of an agent.
//!
//! Owns samples until they are read, and the clocks of their hosts. Does not own the choice of
//! packets (the parent module does).

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::{ControlFlow, Range};

use neph_model::{ClockReading, PacketSample, Span};
use neph_wire::capture::{CaptureError, CaptureReader, Record, Step};
use neph_wire::dissect::Link;

use super::super::started_capture::kernel;
use super::super::tail::Tail;

/// Maximum number of waiting packets of a point: the samples of a minute.
const WAITING: usize = 4_096;
/// Maximum bytes of a packet in a sample: an agent captures no more.
const KEPT: usize = 256;
/// Maximum drift between two clocks: one nanosecond per this many, 100 ppm.
const DRIFT: i64 = 10_000;
/// After this time without a sample of an agent, another agent on its kernel reads the clock.
const TAKEN_OVER: Span = Span::from_secs(2);

/// The source of a point's packets.
#[derive(Debug)]
pub(super) enum Source {
    Capture(Tail),
    Samples(Samples),
}

/// Packets of an agent, with times of its kernel's clock.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// The point's index in the path.
    point: usize,
    /// Identifies the kernel whose clock that is, once it is known.
    kernel: Option<String>,
    waiting: VecDeque<Sampled>,
    /// Further samples are ignored.
    is_over: bool,
}

#[derive(Debug)]
struct Sampled {
    at: i64,
    link: Link,
    length: u32,
    bytes: Vec<u8>,
}

/// Clock offsets of other kernels to this host: all points of one kernel have the same clock.
#[derive(Debug)]
pub(super) struct Clocks {
    /// This host's kernel.
    own_kernel: String,
    others: BTreeMap<String, KernelOffset>,
}

/// The clock offset of a kernel, read by one of the agents on it.
#[derive(Clone, Copy, Debug)]
struct KernelOffset {
    /// The point of that agent.
    point: usize,
    reading: ClockReading,
    /// Earlier timestamps are not valid, because the clock was set.
    since: i64,
}

impl Source {
    /// Passes the packets of `times`, by this host's clock, to `show`. Drops those before `next`.
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

    /// The kernel that timestamps the packets.
    fn kernel<'a>(&'a self, own_kernel: &'a str) -> Option<&'a str> {
        match self {
            Self::Capture(_) => Some(own_kernel),
            Self::Samples(samples) => samples.kernel.as_deref(),
        }
    }
}

impl Samples {
    /// Without samples, for the point at this index of the path.
    pub(super) fn of(point: usize) -> Self {
        Self {
            point,
            ..Self::default()
        }
    }

    /// Receives a sample. It is ignored as long as the clock offset of its host is unknown. After
    /// an error, further samples are ignored.
    ///
    /// # Errors
    /// It is no capture, or has another kernel than before: the reason, in a few words.
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
            own_kernel: kernel(),
            others: BTreeMap::new(),
        }
    }
}

impl Clocks {
    /// Records a clock reading; returns whether the clock offset of the sample's kernel is known.
    fn note(&mut self, point: usize, sample: &PacketSample) -> bool {
        if sample.kernel == self.own_kernel {
            return true;
        }
        let known = self.others.get(&sample.kernel).copied();
        let Some(reading) = sample.clock else {
            return known.is_some();
        };
        // Only one agent reads a kernel's clock, as long as it sends samples.
        let is_read = known
            .is_none_or(|known| known.point == point || reading.at > known.reading.at + TAKEN_OVER);
        if is_read {
            let since = known.map_or(i64::MIN, |known| known.since_set(&reading));
            let known = KernelOffset {
                point,
                reading,
                since,
            };
            self.others.insert(sample.kernel.clone(), known);
        }
        true
    }

    /// Error bound of delays between the sources `segment` and `segment` + 1; `None` if both have
    /// the same clock.
    pub(super) fn bound(&self, sources: &[Source], segment: usize) -> Option<Span> {
        let kernels =
            [segment, segment + 1].map(|index| sources.get(index)?.kernel(&self.own_kernel));
        let known = kernels
            .iter()
            .flatten()
            .filter_map(|kernel| self.others.get(*kernel));
        let sum = known.fold(Span::ZERO, |span, known| span + known.reading.bound);
        (kernels[0] != kernels[1]).then_some(sum)
    }
}

impl KernelOffset {
    /// The time from which timestamps are valid after the next reading. If the two readings are
    /// inconsistent, the clock was set. Then no earlier timestamp is valid, and earlier ones may be
    /// ahead by as much as the clock was set back.
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
mod tests;
