//! Counts of a flow: packets and bytes of each side, round trips of each half.

use neph_model::Span;
use neph_stats::{Layout, Selection, Sketches};

use crate::prefetch::prefetch;
use crate::sample::{Answer, Method, Sample};
use crate::tcp::Event;

/// Counts of what one side sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentCounts {
    /// Packets.
    pub packets: u64,
    /// Bytes of its IP packets on the wire.
    pub bytes: u64,
    /// Bytes of payload on the wire, including retransmissions.
    pub payload: u64,
    /// Most bytes in flight, as seen from the capture point.
    pub max_in_flight: u32,
    /// `None` before the first event: most flows have none, and there are very many flows.
    rare: Option<Box<RareCounts>>,
}

/// Counts that are 0 for most flows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RareCounts {
    events: [u32; Event::ALL.len()],
    /// Segments that were not followed to their answer.
    segments_not_tracked: u64,
}

impl SentCounts {
    pub(super) fn add_packet(&mut self, bytes: u64, payload: u64) {
        self.packets += 1;
        self.bytes += bytes;
        self.payload += payload;
    }

    pub(super) fn add_event(&mut self, event: Event) {
        let count = &mut self.rare.get_or_insert_default().events[event as usize];
        *count = count.saturating_add(1);
    }

    /// A retransmission that was counted as `previous` is spurious.
    pub(super) fn reclassify_as_spurious(&mut self, previous: Event) {
        let count = &mut self.rare.get_or_insert_default().events[previous as usize];
        *count = count.saturating_sub(1);
        self.add_event(Event::SpuriousRetransmission);
    }

    /// Counts segments that are not followed.
    pub(super) fn add_segments_not_tracked(&mut self, segments: u64) {
        self.rare.get_or_insert_default().segments_not_tracked += segments;
    }

    /// Segments that were not followed to their answer, because more were in flight than there is room for.
    /// The round trips of others count for theirs.
    pub fn segments_not_tracked(&self) -> u64 {
        self.rare
            .as_ref()
            .map_or(0, |rare| rare.segments_not_tracked)
    }

    /// How often `event` happened to what it sent.
    pub fn count(&self, event: Event) -> u32 {
        let rare = self.rare.as_ref();
        rare.map_or(0, |rare| rare.events[event as usize])
    }

    /// Difference to the earlier counts `before` of the same side. The maximum stays that of all time.
    pub(super) fn since(&self, before: &Self) -> Self {
        let mut rare = self.rare.clone();
        if let (Some(rare), Some(before)) = (&mut rare, &before.rare) {
            for (event, before) in rare.events.iter_mut().zip(before.events) {
                // A retransmission that was counted as needed before may have become spurious since.
                *event = event.saturating_sub(before);
            }
            rare.segments_not_tracked -= before.segments_not_tracked;
        }
        Self {
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
            payload: self.payload.saturating_sub(before.payload),
            max_in_flight: self.max_in_flight,
            rare,
        }
    }

    /// Memory that it points to, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.rare.as_deref().map_or(0, size_of_val)
    }

    /// Retransmissions that were needed, as far as known: after a loss, or after a delay longer than the
    /// sender's timeout.
    pub fn retransmitted(&self) -> u32 {
        let timed_out = self.count(Event::Retransmission);
        timed_out.saturating_add(self.count(Event::FastRetransmission))
    }

    /// Spurious retransmissions: the data had arrived.
    pub fn spurious(&self) -> u32 {
        self.count(Event::SpuriousRetransmission)
    }

    /// All retransmitted segments, needed or spurious.
    pub fn retransmitted_segments(&self) -> u32 {
        self.retransmitted().saturating_add(self.spurious())
    }
}

/// Round trips of one half of a flow's path, by method and by kind of answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoundTripSketches(Sketches);

impl RoundTripSketches {
    /// Counts a round trip that one method found.
    pub(super) fn add(&mut self, sample: &Sample) {
        self.count(RoundTripMethods::from_method(sample.method), sample);
    }

    /// Counts the round trips of one segment: once, if both methods found the same.
    pub(super) fn add_by_both_methods(
        &mut self,
        acknowledgement: Option<&Sample>,
        echo: Option<&Sample>,
    ) {
        if let (Some(by_acknowledgement), Some(by_echo)) = (acknowledgement, echo)
            && (by_acknowledgement.round_trip, by_acknowledgement.answer)
                == (by_echo.round_trip, by_echo.answer)
        {
            return self.count(RoundTripMethods::Both, by_acknowledgement);
        }
        for sample in [acknowledgement, echo].into_iter().flatten() {
            self.add(sample);
        }
    }

    fn count(&mut self, methods: RoundTripMethods, sample: &Sample) {
        let nanos = u64::try_from(sample.round_trip.nanos()).unwrap_or(0);
        let key = sketch_key(methods, sample.answer);
        self.0.add_times(key, nanos, sample.weight.into());
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    /// A form for several queries.
    pub fn by_method(&self) -> RoundTripsByMethod {
        RoundTripsByMethod(self.0.layout())
    }

    /// Round trips of one method and one kind of answer.
    pub fn answer_quantiles(&self, method: Method, answer: Answer) -> Option<Quantiles> {
        self.by_method().answer_quantiles(method, answer)
    }

    /// Round trips that measure the path alone.
    pub fn path_quantiles(&self, method: Method) -> Option<Quantiles> {
        self.by_method().path_quantiles(method)
    }

    /// Whether any round trip measures the path alone.
    pub fn has_path_round_trips(&self, method: Method) -> bool {
        self.0.has_any(sketch_keys(method, &PATH_ANSWERS))
    }

    /// Prepares it, so that later queries need no copy.
    pub(super) fn settle(&mut self) {
        self.0.settle();
    }

    /// Prefetches its memory: see [`crate::prefetch`].
    #[inline]
    pub(super) fn prefetch_far(&self) {
        self.0.soon_needed().for_each(prefetch);
    }

    /// Memory that it points to, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.heap()
    }
}

/// Round trips by method and answer, as those of [`RoundTripSketches`].
#[derive(Debug)]
pub struct RoundTripsByMethod(Layout);

impl RoundTripsByMethod {
    /// Round trips of one method and one kind of answer.
    pub fn answer_quantiles(&self, method: Method, answer: Answer) -> Option<Quantiles> {
        self.quantiles(method, &[answer])
    }

    /// Round trips that measure the path alone.
    pub fn path_quantiles(&self, method: Method) -> Option<Quantiles> {
        self.quantiles(method, &PATH_ANSWERS)
    }

    fn quantiles(&self, method: Method, answers: &[Answer]) -> Option<Quantiles> {
        let selection = self.0.of(sketch_keys(method, answers));
        selection.as_ref().map(Quantiles::from_selection)
    }
}

/// The methods that found a round trip.
#[derive(Debug, Clone, Copy)]
enum RoundTripMethods {
    Both,
    Echo,
    Acknowledgement,
    Response,
}

impl RoundTripMethods {
    const fn from_method(method: Method) -> Self {
        match method {
            Method::Echo => Self::Echo,
            Method::Acknowledgement => Self::Acknowledgement,
            Method::Response => Self::Response,
        }
    }
}

/// Answers that measure the path alone.
const PATH_ANSWERS: [Answer; 2] = [Answer::Handshake, Answer::Bare];

/// The keys under which round trips of a method are counted.
fn sketch_keys(method: Method, answers: &[Answer]) -> impl Iterator<Item = u8> {
    let counted_as: &[RoundTripMethods] = match method {
        Method::Echo => &[RoundTripMethods::Both, RoundTripMethods::Echo],
        Method::Acknowledgement => &[RoundTripMethods::Both, RoundTripMethods::Acknowledgement],
        Method::Response => &[RoundTripMethods::Response],
    };
    let keys_of = |methods: RoundTripMethods| {
        answers
            .iter()
            .map(move |answer| sketch_key(methods, *answer))
    };
    counted_as.iter().flat_map(move |methods| keys_of(*methods))
}

/// The key under which such round trips are counted.
const fn sketch_key(methods: RoundTripMethods, answer: Answer) -> u8 {
    methods as u8 * 4 + answer as u8
}

/// Summary of round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantiles {
    /// Number of measured round trips.
    pub n: u64,
    /// Number of round trips that they represent: more than `n` where not all segments of a large window were
    /// followed. Quantiles, mean and deviation refer to these.
    pub estimated: u64,
    /// The shortest measured one.
    pub min: Span,
    /// By nearest rank, like the other quantiles.
    pub p50: Span,
    /// `None` below 59 round trips.
    pub p95: Option<Span>,
    /// `None` below 299 round trips.
    pub p99: Option<Span>,
    /// The longest measured one.
    pub max: Span,
    /// The mean, exact where all segments were followed.
    pub mean: Span,
    /// Standard deviation of the population, not the estimate from a sample, as in ping. `None` on overflow.
    pub deviation: Option<Span>,
}

impl Quantiles {
    /// Summarizes round trips. Quantiles need the same number of samples as everywhere in Nephoscope, so that
    /// their 95 % confidence interval exists.
    pub(crate) fn from_selection(selection: &Selection<'_>) -> Self {
        let span = |nanos: u64| Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        let quantile = |permille| span(selection.quantile(permille));
        let n = selection.numbers();
        let quantile_from = |min_n, permille| (n >= min_n).then(|| quantile(permille));
        Self {
            n,
            estimated: selection.n(),
            min: span(selection.min()),
            p50: quantile(500),
            p95: quantile_from(59, 950),
            p99: quantile_from(299, 990),
            max: span(selection.max()),
            mean: span(selection.mean()),
            deviation: selection.deviation().map(span),
        }
    }
}
