//! What is counted of a flow: packets and bytes of each side, round trips of each half.

use neph_model::Span;
use neph_stats::Sketch;

use crate::sample::{Answer, Method, Sample};
use crate::tcp::Event;

/// What one side sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Bytes of its IP packets on the wire.
    pub bytes: u64,
    /// Bytes of payload on the wire, those sent again included.
    pub payload: u64,
    /// Bytes on their way to the other side at most, as seen from the point of capture.
    pub most_in_flight: u32,
    events: [u32; Event::ALL.len()],
}

impl Sent {
    pub(super) fn packet(&mut self, bytes: u64, payload: u64) {
        self.packets += 1;
        self.bytes += bytes;
        self.payload += payload;
    }

    pub(super) fn event(&mut self, event: Event) {
        let count = &mut self.events[event as usize];
        *count = count.saturating_add(1);
    }

    /// How often `event` happened to what it sent.
    pub const fn count(&self, event: Event) -> u32 {
        self.events[event as usize]
    }

    /// What was sent since `before` was counted of the same side. What is the most is that of all.
    pub(super) fn since(&self, before: &Self) -> Self {
        let mut events = self.events;
        for (event, before) in events.iter_mut().zip(before.events) {
            *event = event.saturating_sub(before);
        }
        Self {
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
            payload: self.payload.saturating_sub(before.payload),
            most_in_flight: self.most_in_flight,
            events,
        }
    }

    /// Segments that were sent again, for whatever reason.
    pub const fn sent_again(&self) -> u32 {
        let needed = self
            .count(Event::Retransmission)
            .saturating_add(self.count(Event::FastRetransmission));
        needed.saturating_add(self.count(Event::SpuriousRetransmission))
    }
}

/// Round trips of one half of a flow's path, by method and by what answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trips {
    sketches: [[Option<Box<Sketch>>; Answer::ALL.len()]; Method::ALL.len()],
}

impl Trips {
    pub(super) fn add(&mut self, sample: &Sample) {
        let nanos = u64::try_from(sample.round_trip.nanos()).unwrap_or(0);
        let sketch = &mut self.sketches[sample.method as usize][sample.answer as usize];
        sketch.get_or_insert_default().add(nanos);
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        let pairs = self
            .sketches
            .iter_mut()
            .flatten()
            .zip(other.sketches.iter().flatten());
        for (into, from) in pairs {
            if let Some(from) = from {
                into.get_or_insert_default().merge(from);
            }
        }
    }

    /// Those of one method and one kind of answer.
    pub fn of(&self, method: Method, answer: Answer) -> Option<Quantiles> {
        let sketch = self.sketches[method as usize][answer as usize].as_deref()?;
        Quantiles::of(sketch)
    }

    /// Those that speak of the path alone.
    pub fn path(&self, method: Method) -> Option<Quantiles> {
        let mut path = Sketch::default();
        for answer in Answer::ALL {
            let sketch = self.sketches[method as usize][answer as usize].as_deref();
            if let Some(sketch) = sketch.filter(|_| answer.speaks_of_path()) {
                path.merge(sketch);
            }
        }
        Quantiles::of(&path)
    }

    /// Reads something of itself: see `Table::fetch`.
    pub(super) fn fetch(&self) -> u64 {
        u64::from(self.sketches[0][0].is_some()) ^ u64::from(self.sketches[1][3].is_some())
    }

    /// Reads something of each sketch.
    pub(super) fn fetch_far(&self) -> u64 {
        let sketches = self.sketches.iter().flatten().flatten();
        sketches.fold(0, |sum, sketch| sum ^ sketch.n())
    }

    /// Bytes of memory beside itself.
    pub(super) fn heap(&self) -> usize {
        let sketches = self.sketches.iter().flatten().flatten();
        sketches
            .map(|sketch| size_of::<Sketch>() + sketch.heap())
            .sum()
    }
}

/// A sample of round trips in few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantiles {
    /// How many round trips.
    pub n: u64,
    /// The shortest.
    pub least: Span,
    /// By nearest rank, as the other quantiles.
    pub p50: Span,
    /// Of 59 or more: of fewer it would be guessed.
    pub p95: Option<Span>,
    /// Of 299 or more.
    pub p99: Option<Span>,
    /// The longest.
    pub most: Span,
}

impl Quantiles {
    /// `None` of no round trips. The numbers of round trips that quantiles need are those of all of
    /// Nephoscope: an interval of 95 % has ends.
    pub(crate) fn of(sketch: &Sketch) -> Option<Self> {
        let span = |nanos: u64| Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        let quantile = |permille| sketch.quantile(permille).map(span);
        Some(Self {
            n: sketch.n(),
            least: sketch.least().map(span)?,
            p50: quantile(500)?,
            p95: quantile(950).filter(|_| sketch.n() >= 59),
            p99: quantile(990).filter(|_| sketch.n() >= 299),
            most: sketch.most().map(span)?,
        })
    }
}
