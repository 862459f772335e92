//! Lengths of time that are too many to keep a number of each: how many there were of which length.
//!
//! Owns the bounds and the conversions of its histogram. What is measured, and what a quantile of it
//! means, its users say.

use neph_model::Span;
use neph_stats::{Histogram, Precision};

/// Longer ones count as a day.
const MAX_SPAN: Span = Span::from_secs(86_400);

/// Lengths of time; negative ones count as zero.
#[derive(Debug)]
pub(crate) struct SpanHistogram(Histogram);

impl SpanHistogram {
    /// None yet.
    pub(crate) const fn new(precision: Precision) -> Self {
        Self(Histogram::new(precision))
    }

    pub(crate) fn record(&mut self, span: Span) {
        let span = span.min(MAX_SPAN);
        self.0.add(u64::try_from(span.nanos()).unwrap_or(0));
    }

    /// How many.
    pub(crate) const fn len(&self) -> u64 {
        self.0.n()
    }

    /// The one of this permille in the order of length, by nearest rank; `None` of none. It is not longer
    /// than this.
    pub(crate) fn at_permille(&self, permille: u64) -> Option<Span> {
        let rank = u128::from(self.len()) * u128::from(permille);
        self.of_rank(rank.div_ceil(1_000).max(1))
    }

    /// The one of this rank, from 1, in the order of length; `None` beyond the last. It is not longer than
    /// this.
    pub(crate) fn of_rank(&self, rank: u128) -> Option<Span> {
        self.0.of_rank_at_most(rank).map(span_of)
    }

    pub(crate) fn shortest(&self) -> Option<Span> {
        self.0.min().map(span_of)
    }

    pub(crate) fn longest(&self) -> Option<Span> {
        self.0.max().map(span_of)
    }
}

fn span_of(nanos: u64) -> Span {
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_stored_within_their_precision_and_bounds() {
        let mut spans = SpanHistogram::new(Precision::one_part_in(2_048));
        assert_eq!(
            (spans.at_permille(500), spans.shortest(), spans.longest()),
            (None, None, None)
        );
        for millis in [-1, 40, 50] {
            spans.record(Span::from_millis(millis));
        }
        let middle = spans.at_permille(500).expect("there are some").millis_f64();
        assert!((40.0..=40.04).contains(&middle), "{middle}");
        assert_eq!((spans.len(), spans.shortest()), (3, Some(Span::ZERO)));
        spans.record(Span::from_nanos(i64::MAX));
        let longest = spans.longest().expect("there are some");
        assert!(
            longest >= MAX_SPAN && longest < MAX_SPAN.times(2),
            "{longest}"
        );
    }
}
