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
    rare: Option<Box<Rare>>,
}

/// What most flows have nothing of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rare {
    events: [u32; Event::ALL.len()],
    /// Segments that were not followed to their answer.
    thinned: u64,
}

impl Sent {
    pub(super) fn packet(&mut self, bytes: u64, payload: u64) {
        self.packets += 1;
        self.bytes += bytes;
        self.payload += payload;
    }

    pub(super) fn event(&mut self, event: Event) {
        let count = &mut self.rare.get_or_insert_default().events[event as usize];
        *count = count.saturating_add(1);
    }

    /// A retransmission that was counted as `was` was spurious.
    pub(super) fn found_spurious(&mut self, was: Event) {
        let count = &mut self.rare.get_or_insert_default().events[was as usize];
        *count = count.saturating_sub(1);
        self.event(Event::SpuriousRetransmission);
    }

    /// So many segments more are not followed.
    pub(super) fn thin(&mut self, segments: u64) {
        self.rare.get_or_insert_default().thinned += segments;
    }

    /// Segments whose answers were not waited for, since more were under way than there is room for. The
    /// round trips of others stand for theirs.
    pub fn thinned(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.thinned)
    }

    /// How often `event` happened to what it sent.
    pub fn count(&self, event: Event) -> u32 {
        let rare = self.rare.as_ref();
        rare.map_or(0, |rare| rare.events[event as usize])
    }

    /// What was sent since `before` was counted of the same side. What is the most is that of all.
    pub(super) fn since(&self, before: &Self) -> Self {
        let mut rare = self.rare.clone();
        if let (Some(rare), Some(before)) = (&mut rare, &before.rare) {
            for (event, before) in rare.events.iter_mut().zip(before.events) {
                // What was counted as needed before may have turned out to be spurious since.
                *event = event.saturating_sub(before);
            }
            rare.thinned -= before.thinned;
        }
        Self {
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
            payload: self.payload.saturating_sub(before.payload),
            most_in_flight: self.most_in_flight,
            rare,
        }
    }

    /// Bytes of memory beside itself.
    pub(super) fn heap(&self) -> usize {
        self.rare.as_deref().map_or(0, size_of_val)
    }

    /// Retransmissions that were needed, as far as is known: a loss each, or more than the sender's
    /// patience.
    pub fn retransmitted(&self) -> u32 {
        let timed_out = self.count(Event::Retransmission);
        timed_out.saturating_add(self.count(Event::FastRetransmission))
    }

    /// Retransmissions of what had arrived: no loss.
    pub fn spurious(&self) -> u32 {
        self.count(Event::SpuriousRetransmission)
    }

    /// Segments that were sent again, for whatever reason.
    pub fn sent_again(&self) -> u32 {
        self.retransmitted().saturating_add(self.spurious())
    }
}

/// Round trips of one half of a flow's path, by method and by what answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trips {
    counted: Sketches,
    /// How many segments more than those with a round trip these stand for, by kind; most flows have none.
    unseen: Option<Box<[u64; KINDS]>>,
}

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
        let (kind, weight) = (kind(found, sample.answer), u64::from(sample.weight));
        self.counted.add_times(kind, nanos, weight);
        if weight > 1 {
            self.unseen.get_or_insert_default()[usize::from(kind)] += weight - 1;
        }
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.counted.merge(&other.counted);
        if let Some(more) = &other.unseen {
            let unseen = self.unseen.get_or_insert_default();
            for (all, more) in unseen.iter_mut().zip(**more) {
                *all += more;
            }
        }
    }

    /// Laid out, to be asked several things.
    pub fn laid_out(&self) -> LaidOut {
        LaidOut {
            counted: self.counted.layout(),
            unseen: self.unseen.as_deref().copied().unwrap_or_default(),
        }
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
        self.counted.has_any(kinds(method, &PATH))
    }

    /// What is asked from now on is told without a copy.
    pub(super) fn settle(&mut self) {
        self.counted.settle();
    }

    /// Its memory will be needed: see [`crate::ahead`].
    #[inline]
    pub(super) fn fetch_far(&self) {
        self.counted.soon_needed().for_each(fetch);
    }

    /// Bytes of memory beside itself.
    pub(super) fn heap(&self) -> usize {
        self.counted.heap() + self.unseen.as_deref().map_or(0, size_of_val)
    }
}

/// Round trips by method and answer, as [`Trips`] tell them.
#[derive(Debug)]
pub struct LaidOut {
    counted: Layout,
    unseen: [u64; KINDS],
}

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
        let found = self.counted.of(kinds(method, answers));
        let unseen = kinds(method, answers).map(|kind| self.unseen[usize::from(kind)]);
        (found.as_ref()).map(|found| Quantiles::of(found, unseen.sum()))
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

/// Numbers that round trips are counted under.
const KINDS: usize = Sketches::KINDS as usize;
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
    /// How many round trips were measured.
    pub n: u64,
    /// How many they stand for: more where not all segments of a large window were followed. Quantiles,
    /// mean and deviation are of these.
    pub estimated: u64,
    /// The shortest that was measured.
    pub least: Span,
    /// By nearest rank, as the other quantiles.
    pub p50: Span,
    /// Of 59 or more: of fewer it would be guessed.
    pub p95: Option<Span>,
    /// Of 299 or more.
    pub p99: Option<Span>,
    /// The longest that was measured.
    pub most: Span,
    /// The mean, exact where all segments were followed.
    pub mean: Span,
    /// The standard deviation of all of them, not the estimate from a sample, as ping has it; none where
    /// round trips of centuries do not add up.
    pub deviation: Option<Span>,
}

impl Quantiles {
    /// The numbers of round trips that quantiles need are those of all of Nephoscope: an interval of
    /// 95 % has ends. `unseen` of the round trips were not measured, others stand for them.
    pub(crate) fn of(trips: &Selection<'_>, unseen: u64) -> Self {
        let span = |nanos: u64| Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        let quantile = |permille| span(trips.quantile(permille));
        let n = trips.n().saturating_sub(unseen);
        let of_at_least = |least, permille| (n >= least).then(|| quantile(permille));
        Self {
            n,
            estimated: trips.n(),
            least: span(trips.least()),
            p50: quantile(500),
            p95: of_at_least(59, 950),
            p99: of_at_least(299, 990),
            most: span(trips.most()),
            mean: span(trips.mean()),
            deviation: trips.deviation().map(span),
        }
    }
}
