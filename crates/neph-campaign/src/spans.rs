//! Lengths of time that are too many to keep a number of each: how many there were of which length.
//!
//! Owns the bounds and the conversions of its histogram. What is measured, and what a quantile of it
//! means, its users say.

use hdrhistogram::Histogram;
use neph_model::Span;

/// Longer ones count as a day.
const LONGEST: Span = Span::from_secs(86_400);

/// Lengths of time, to a few digits; negative ones count as zero.
#[derive(Debug)]
pub(crate) struct Spans(Histogram<u64>);

impl Spans {
    /// None yet. From `shortest` on, 1 ns at least, they are told apart by `digits`, five at most.
    pub(crate) fn new(shortest: Span, digits: u8) -> Self {
        let histogram = Histogram::new_with_bounds(bounded(shortest), bounded(LONGEST), digits);
        Self(histogram.expect("a day, and digits and a shortest that are allowed"))
    }

    pub(crate) fn record(&mut self, span: Span) {
        self.0.saturating_record(bounded(span));
    }

    /// How many.
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// The one of this place, 0 to 1, in the order of length, by nearest rank; `None` of none.
    pub(crate) fn at(&self, place: f64) -> Option<Span> {
        self.told(self.0.value_at_quantile(place))
    }

    pub(crate) fn shortest(&self) -> Option<Span> {
        self.told(self.0.min())
    }

    pub(crate) fn longest(&self) -> Option<Span> {
        self.told(self.0.max())
    }

    fn told(&self, nanos: u64) -> Option<Span> {
        let span = Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        (!self.0.is_empty()).then_some(span)
    }
}

fn bounded(span: Span) -> u64 {
    u64::try_from(span.nanos()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back_to_their_digits_and_within_the_bounds() {
        let mut spans = Spans::new(Span::from_micros(1), 3);
        assert_eq!(
            (spans.at(0.5), spans.shortest(), spans.longest()),
            (None, None, None)
        );
        for millis in [-1, 40, 50] {
            spans.record(Span::from_millis(millis));
        }
        let middle = spans.at(0.5).expect("there are some").millis_f64();
        assert!((40.0..=40.04).contains(&middle), "{middle}");
        assert_eq!((spans.len(), spans.shortest()), (3, Some(Span::ZERO)));
        spans.record(Span::from_nanos(i64::MAX));
        let longest = spans.longest().expect("there are some");
        assert!(
            longest >= LONGEST && longest < LONGEST.times(2),
            "{longest}"
        );
    }
}
