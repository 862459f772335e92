//! How much flows differ from each other: in each bin of time, quantiles over flows of each flow's
//! median round trip.
//!
//! Keeps the medians of the open bins only. A message that comes when its bin is closed is left
//! out: it had a whole bin's time to come. Of very many bins every second is kept, then every
//! fourth.

use std::collections::VecDeque;

use neph_model::{Fleet, FleetMessage, Instant, Own, Span};
use neph_stats::{Sorted, rough_quantile};

use crate::medians::Medians;
use crate::trip::Trip;

/// Bins that are open at a time: messages of different flows do not come in order.
const OPEN: u8 = 2;
/// Bins of all endpoints together that are kept: 14 MiB, of one endpoint 60 days at 20 s.
const MOST: usize = 1 << 18;
/// Of each endpoint so many are kept at least.
const LEAST: usize = 64;
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

/// The bins of the flows to one endpoint.
#[derive(Debug)]
pub(crate) struct Bins {
    width: Span,
    origin: Instant<Own>,
    /// Index of the first open bin.
    first: u32,
    medians: Medians,
    /// The medians of flows that have left an open bin, as they are kept.
    open: VecDeque<Vec<Trip>>,
    closed: Vec<Bin>,
    most: usize,
    /// Bins whose index is a multiple of this are kept.
    every: u32,
}

impl Bins {
    /// Bins of `width` from `origin` on, of one of the fleet's endpoints.
    pub(crate) fn new(origin: Instant<Own>, width: Span, fleet: &Fleet) -> Self {
        let endpoints = fleet.endpoints.len().max(1);
        let flows = (fleet.lanes as usize).div_ceil(endpoints);
        Self {
            width,
            origin,
            first: 0,
            medians: Medians::new(flows, fleet.interval, width),
            open: VecDeque::new(),
            closed: Vec::new(),
            most: (MOST / endpoints).max(LEAST),
            every: 1,
        }
    }

    /// A reply on a flow with this number among the endpoint's, and its round trip.
    pub(crate) fn push(&mut self, number: u32, message: &FleetMessage, round_trip: Span) {
        let index = (message.sent - self.origin)
            .nanos()
            .div_euclid(self.width.nanos());
        let Ok(index) = u32::try_from(index) else {
            return;
        };
        if index < self.first {
            return;
        }
        // A long silence is no reason to fill bins with nothing.
        if index > self.first + 2 * u32::from(OPEN) {
            self.close_all();
            self.first = index;
        }
        while index >= self.first + u32::from(OPEN) {
            self.close_first();
        }
        let flow = (number, message.source_port);
        let trip = Trip::from_nanos(round_trip.nanos());
        if let Some((bin, median)) = self.medians.push(flow, index, trip) {
            self.add(bin, median);
        }
    }

    /// All bins, the open ones as they stand, those without a reply left out.
    pub(crate) fn told(mut self) -> Vec<Bin> {
        self.close_all();
        self.closed
    }

    fn add(&mut self, bin: u32, median: Trip) {
        let Some(place) = bin.checked_sub(self.first) else {
            return;
        };
        let place = place as usize;
        while self.open.len() <= place {
            self.open.push_back(Vec::new());
        }
        self.open[place].push(median);
    }

    fn close_first(&mut self) {
        let bin = self.first;
        let mut medians = self.open.pop_front().unwrap_or_default();
        let left = self.medians.leave_all(bin);
        medians.extend(left.filter(|(of, _)| *of == bin).map(|(_, median)| median));
        if bin.is_multiple_of(self.every) {
            let from = self.origin + self.width.times(bin.into());
            self.closed.extend(summarise(from, &medians));
        }
        self.first += 1;
        if self.closed.len() > self.most {
            self.thin();
        }
        if self.open.len() < usize::from(OPEN) {
            // Its room is used again: bins are alike.
            medians.clear();
            self.open.push_back(medians);
        }
    }

    fn close_all(&mut self) {
        for _ in 0..OPEN {
            self.close_first();
        }
    }

    /// Keeps every second of the bins that were kept so far.
    fn thin(&mut self) {
        self.every = self.every.saturating_mul(2);
        let (origin, width, every) = (self.origin, self.width, i64::from(self.every));
        self.closed.retain(|bin| {
            let index = (bin.from - origin).nanos() / width.nanos();
            index % every == 0
        });
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
fn summarise(from: Instant<Own>, medians: &[Trip]) -> Option<Bin> {
    let mut values: Vec<f64> = medians.iter().map(|trip| trip.nanos() as f64).collect();
    Some(Bin {
        from,
        flows: u32::try_from(values.len()).unwrap_or(u32::MAX),
        latency: over_flows(&mut values)?,
    })
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
    use crate::world::World;

    const WIDTH: Span = Span::from_secs(20);

    fn bins() -> Bins {
        Bins::new(Instant::from_nanos(0), WIDTH, &World::default().fleet())
    }

    fn push(bins: &mut Bins, (lane, port): (u32, u16), millis: i64, round_trip: Span) {
        let message = FleetMessage {
            lane: Lane(lane),
            source_port: port,
            seq: 0,
            sent: Instant::from_nanos(millis * 1_000_000),
            late: Span::ZERO,
            outcome: FleetOutcome::Lost,
        };
        bins.push(lane, &message, round_trip);
    }

    #[test]
    fn each_flow_counts_once_with_its_median() {
        let mut bins = bins();
        // Flow 0: 10 ms and one reply of a second. Flow 1: 30 ms, many times.
        for millis in [0, 1, 2] {
            push(&mut bins, (0, 1), millis, Span::from_millis(10));
        }
        push(&mut bins, (0, 1), 3, Span::from_secs(1));
        for millis in 0..100 {
            push(&mut bins, (1, 2), millis, Span::from_millis(30));
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
        let mut bins = bins();
        for (lane, second) in [
            (0, 1),
            (0, 25),
            (1, 3),
            (0, 41),
            (0, 45),
            (1, 4),
            (0, 300),
            (0, 301),
        ] {
            let round_trip = Span::from_millis(second);
            push(&mut bins, (lane, 1), second * 1000, round_trip);
        }
        let told: Vec<(i64, Span, u32)> = bins
            .told()
            .iter()
            .map(|bin| (bin.from.nanos() / 1_000_000_000, bin.latency[1], bin.flows))
            .collect();
        let expected = [(0, 2, 2), (20, 25, 1), (40, 43, 1)]
            .map(|(at, millis, flows)| (at, Span::from_millis(millis), flows));
        assert_eq!(told[..3], expected);
        assert_eq!(told[3], (300, Span::from_micros(300_500), 1));
        assert_eq!(told.len(), 4);
    }

    #[test]
    fn a_renewed_flow_is_another_flow() {
        let mut bins = bins();
        push(&mut bins, (0, 1), 0, Span::from_millis(10));
        push(&mut bins, (0, 2), 1, Span::from_millis(12));
        assert_eq!(bins.told()[0].flows, 2);
    }

    #[test]
    fn of_too_many_bins_some_are_kept_evenly() {
        let mut bins = Bins {
            most: 100,
            ..bins()
        };
        for bin in 0..1000_i64 {
            push(&mut bins, (0, 1), bin * 20_000, Span::from_millis(bin));
        }
        let told = bins.told();
        let moments: Vec<i64> = told
            .iter()
            .map(|bin| bin.from.nanos() / WIDTH.nanos())
            .collect();
        assert!((50..=100).contains(&moments.len()), "{}", moments.len());
        assert!(moments.windows(2).all(|two| two[1] - two[0] == 16));
        let last = Span::from_millis(moments[moments.len() - 1]);
        assert_eq!(told[told.len() - 1].latency[1], last);
    }
}
