//! How much flows differ from each other: in each bin of time, quantiles over flows of each flow's
//! median round trip.
//!
//! Keeps the round trips of the open bins only. A message that comes when its bin is closed is left
//! out: it had a whole bin's time to come.

use std::collections::VecDeque;

use neph_model::{FleetMessage, Instant, Own, Span};
use neph_stats::{Sorted, rough_quantile};

/// Bins that are open at a time: messages of different flows do not come in order.
const OPEN: u8 = 2;
/// A quantile that is told, in the order of [`Fairness::latency`](crate::Fairness).
const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// What a closed bin leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bin {
    /// When it begins.
    pub(crate) from: Instant<Own>,
    /// Flows with a reply in it.
    pub(crate) flows: u32,
    /// Quantiles over flows: lowest, p50, p95, p99, highest.
    pub(crate) latency: [Span; 5],
}

/// A reply in an open bin: which flow's, and its round trip.
type Reply = (u32, u16, i64);

/// The bins of the flows to one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    width: Span,
    origin: Instant<Own>,
    /// Index of the first open bin.
    first: i64,
    open: VecDeque<Vec<Reply>>,
    closed: Vec<Bin>,
}

impl Bins {
    /// Bins of `width` from `origin` on.
    pub(crate) fn new(origin: Instant<Own>, width: Span) -> Self {
        Self {
            width,
            origin,
            first: 0,
            open: VecDeque::new(),
            closed: Vec::new(),
        }
    }

    /// A reply and its round trip.
    pub(crate) fn push(&mut self, message: &FleetMessage, round_trip: Span) {
        let index = (message.sent - self.origin)
            .nanos()
            .div_euclid(self.width.nanos());
        if index < self.first {
            return;
        }
        // A long silence is no reason to fill bins with nothing.
        if index > self.first + 2 * i64::from(OPEN) {
            self.close_all();
            self.first = index;
        }
        while index >= self.first + i64::from(OPEN) {
            self.close_first();
        }
        let place = usize::try_from(index - self.first).expect("between 0 and OPEN");
        while self.open.len() <= place {
            self.open.push_back(Vec::new());
        }
        self.open[place].push((message.lane.0, message.source_port, round_trip.nanos()));
    }

    /// All bins so far, the open ones as they stand, those without a reply left out.
    pub(crate) fn told(&self) -> Vec<Bin> {
        let mut bins = self.closed.clone();
        for (index, replies) in (self.first..).zip(&self.open) {
            bins.extend(summarise(self.start(index), &mut replies.clone()));
        }
        bins
    }

    fn start(&self, index: i64) -> Instant<Own> {
        self.origin + self.width.times(index)
    }

    fn close_first(&mut self) {
        let mut replies = self.open.pop_front().unwrap_or_default();
        self.closed
            .extend(summarise(self.start(self.first), &mut replies));
        self.first += 1;
        if self.open.len() < usize::from(OPEN) {
            // Its room is used again: bins are alike.
            replies.clear();
            self.open.push_back(replies);
        }
    }

    fn close_all(&mut self) {
        for _ in 0..OPEN {
            self.close_first();
        }
    }
}

fn summarise(from: Instant<Own>, replies: &mut [Reply]) -> Option<Bin> {
    replies.sort_unstable();
    let mut medians: Vec<f64> = replies
        .chunk_by(|one, other| (one.0, one.1) == (other.0, other.1))
        .map(middle)
        .collect();
    Some(Bin {
        from,
        flows: u32::try_from(medians.len()).unwrap_or(u32::MAX),
        latency: over_flows(&mut medians)?,
    })
}

/// The middle of a flow's round trips, which are sorted.
#[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
fn middle(flow: &[Reply]) -> f64 {
    let (low, high) = (flow[(flow.len() - 1) / 2].2, flow[flow.len() / 2].2);
    low.midpoint(high) as f64
}

/// Lowest, p50, p95, p99, highest of values in nanoseconds; `None` of none.
pub(crate) fn over_flows(values: &mut [f64]) -> Option<[Span; 5]> {
    let sorted = Sorted::sort(values).ok()?;
    let (low, high) = (*sorted.values().first()?, *sorted.values().last()?);
    let mut told = [span(low); 5];
    for (place, p) in QUANTILES.into_iter().enumerate() {
        told[place + 1] = span(rough_quantile(sorted, p).ok()?);
    }
    told[4] = span(high);
    Some(told)
}

/// A time from a statistic in nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "times of a network")]
pub(crate) fn span(nanos: f64) -> Span {
    Span::from_nanos(nanos.round() as i64)
}

#[cfg(test)]
mod tests {
    use neph_model::{FleetOutcome, Lane};

    use super::*;

    fn at(lane: u32, port: u16, millis: i64) -> FleetMessage {
        FleetMessage {
            lane: Lane(lane),
            source_port: port,
            seq: 0,
            sent: Instant::from_nanos(millis * 1_000_000),
            late: Span::ZERO,
            outcome: FleetOutcome::Lost,
        }
    }

    #[test]
    fn each_flow_counts_once_with_its_median() {
        let mut bins = Bins::new(Instant::from_nanos(0), Span::from_secs(20));
        // Flow 0: 10 ms and one reply of a second. Flow 1: 30 ms, many times.
        for millis in [0, 1, 2] {
            bins.push(&at(0, 1, millis), Span::from_millis(10));
        }
        bins.push(&at(0, 1, 3), Span::from_secs(1));
        for millis in 0..100 {
            bins.push(&at(1, 2, millis), Span::from_millis(30));
        }
        let told = bins.told();
        assert_eq!((told.len(), told[0].flows), (1, 2));
        let [low, middle, _, _, high] = told[0].latency;
        assert_eq!(low, Span::from_millis(10));
        assert_eq!(middle, Span::from_millis(20));
        assert_eq!(high, Span::from_millis(30));
    }

    #[test]
    fn bins_close_as_time_goes_on_and_empty_ones_leave_no_trace() {
        let mut bins = Bins::new(Instant::from_nanos(0), Span::from_secs(20));
        for second in [1, 25, 3, 41, 45, 300, 301] {
            bins.push(&at(0, 1, second * 1000), Span::from_millis(second));
        }
        let told: Vec<(i64, Span)> = bins
            .told()
            .iter()
            .map(|bin| (bin.from.nanos() / 1_000_000_000, bin.latency[1]))
            .collect();
        let expected =
            [(0, 2), (20, 25), (40, 43)].map(|(at, millis)| (at, Span::from_millis(millis)));
        assert_eq!(told[..3], expected);
        assert_eq!(told[3], (300, Span::from_micros(300_500)));
        assert_eq!(told.len(), 4);
    }

    #[test]
    fn a_renewed_flow_is_another_flow() {
        let mut bins = Bins::new(Instant::from_nanos(0), Span::from_secs(20));
        bins.push(&at(0, 1, 0), Span::from_millis(10));
        bins.push(&at(0, 2, 1), Span::from_millis(12));
        assert_eq!(bins.told()[0].flows, 2);
    }
}
