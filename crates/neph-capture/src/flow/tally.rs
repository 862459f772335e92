//! What is counted of a flow: packets and bytes of each side, round trips of each half.

use neph_model::Span;
use neph_stats::{Layout, Selection, Sketches};

use crate::ahead::fetch;
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
    /// None before the first: most flows have none, and there are very many flows.
    events: Option<Box<[u32; Event::ALL.len()]>>,
}

impl Sent {
    pub(super) fn packet(&mut self, bytes: u64, payload: u64) {
        self.packets += 1;
        self.bytes += bytes;
        self.payload += payload;
    }

    pub(super) fn event(&mut self, event: Event) {
        let count = &mut self.events.get_or_insert_default()[event as usize];
        *count = count.saturating_add(1);
    }

    /// How often `event` happened to what it sent.
    pub fn count(&self, event: Event) -> u32 {
        let events = self.events.as_ref();
        events.map_or(0, |events| events[event as usize])
    }

    /// What was sent since `before` was counted of the same side. What is the most is that of all.
    pub(super) fn since(&self, before: &Self) -> Self {
        let mut events = self.events.clone();
        if let (Some(events), Some(before)) = (&mut events, &before.events) {
            for (event, before) in events.iter_mut().zip(**before) {
                *event = event.saturating_sub(before);
            }
        }
        Self {
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
            payload: self.payload.saturating_sub(before.payload),
            most_in_flight: self.most_in_flight,
            events,
        }
    }

    /// Bytes of memory beside itself.
    pub(super) fn heap(&self) -> usize {
        self.events.as_deref().map_or(0, size_of_val)
    }

    /// Segments that were sent again, for whatever reason.
    pub fn sent_again(&self) -> u32 {
        let needed = self
            .count(Event::Retransmission)
            .saturating_add(self.count(Event::FastRetransmission));
        needed.saturating_add(self.count(Event::SpuriousRetransmission))
    }
}

/// Round trips of one half of a flow's path, by method and by what answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trips(Sketches);

impl Trips {
    /// Counts a round trip that one method found.
    pub(super) fn add(&mut self, sample: &Sample) {
        self.count(Found::by(sample.method), sample);
    }

    /// Counts what one segment shows: once, where both methods found the same.
    pub(super) fn add_both(&mut self, acknowledgement: Option<&Sample>, echo: Option<&Sample>) {
        if let (Some(one), Some(other)) = (acknowledgement, echo)
            && (one.round_trip, one.answer) == (other.round_trip, other.answer)
        {
            return self.count(Found::Both, one);
        }
        for sample in [acknowledgement, echo].into_iter().flatten() {
            self.add(sample);
        }
    }

    fn count(&mut self, found: Found, sample: &Sample) {
        let nanos = u64::try_from(sample.round_trip.nanos()).unwrap_or(0);
        self.0.add(kind(found, sample.answer), nanos);
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    /// Laid out, to be asked several things.
    pub fn laid_out(&self) -> LaidOut {
        LaidOut(self.0.layout())
    }

    /// Those of one method and one kind of answer.
    pub fn of(&self, method: Method, answer: Answer) -> Option<Quantiles> {
        self.laid_out().of(method, answer)
    }

    /// Those that speak of the path alone.
    pub fn path(&self, method: Method) -> Option<Quantiles> {
        self.laid_out().path(method)
    }

    /// Whether any speaks of the path alone.
    pub fn has_path(&self, method: Method) -> bool {
        self.0.has_any(kinds(method, &PATH))
    }

    /// What is asked from now on is told without a copy.
    pub(super) fn settle(&mut self) {
        self.0.settle();
    }

    /// Its memory will be needed: see [`crate::ahead`].
    #[inline]
    pub(super) fn fetch_far(&self) {
        self.0.soon_needed().for_each(fetch);
    }

    /// Bytes of memory beside itself.
    pub(super) fn heap(&self) -> usize {
        self.0.heap()
    }
}

/// Round trips by method and answer, as [`Trips`] tell them.
#[derive(Debug)]
pub struct LaidOut(Layout);

impl LaidOut {
    /// Those of one method and one kind of answer.
    pub fn of(&self, method: Method, answer: Answer) -> Option<Quantiles> {
        self.quantiles(method, &[answer])
    }

    /// Those that speak of the path alone.
    pub fn path(&self, method: Method) -> Option<Quantiles> {
        self.quantiles(method, &PATH)
    }

    fn quantiles(&self, method: Method, answers: &[Answer]) -> Option<Quantiles> {
        let found = self.0.of(kinds(method, answers));
        found.as_ref().map(Quantiles::of)
    }
}

/// Which methods found a round trip.
#[derive(Debug, Clone, Copy)]
enum Found {
    Both,
    Echo,
    Acknowledgement,
    Response,
}

impl Found {
    const fn by(method: Method) -> Self {
        match method {
            Method::Echo => Self::Echo,
            Method::Acknowledgement => Self::Acknowledgement,
            Method::Response => Self::Response,
        }
    }
}

/// What speaks of the path alone.
const PATH: [Answer; 2] = [Answer::Handshake, Answer::Bare];

/// The numbers that round trips of a method are counted under.
fn kinds(method: Method, answers: &[Answer]) -> impl Iterator<Item = u8> {
    let found: &[Found] = match method {
        Method::Echo => &[Found::Both, Found::Echo],
        Method::Acknowledgement => &[Found::Both, Found::Acknowledgement],
        Method::Response => &[Found::Response],
    };
    let of = |found: Found| answers.iter().map(move |answer| kind(found, *answer));
    found.iter().flat_map(move |found| of(*found))
}

/// The number that such round trips are counted under.
const fn kind(found: Found, answer: Answer) -> u8 {
    found as u8 * 4 + answer as u8
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
    /// The numbers of round trips that quantiles need are those of all of Nephoscope: an interval of
    /// 95 % has ends.
    pub(crate) fn of(trips: &Selection<'_>) -> Self {
        let span = |nanos: u64| Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        let quantile = |permille| span(trips.quantile(permille));
        let of_at_least = |n, permille| (trips.n() >= n).then(|| quantile(permille));
        Self {
            n: trips.n(),
            least: span(trips.least()),
            p50: quantile(500),
            p95: of_at_least(59, 950),
            p99: of_at_least(299, 990),
            most: span(trips.most()),
        }
    }
}
