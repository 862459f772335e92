//! How much flows differ from each other: in each bin of time, quantiles over flows of each flow's
//! median round trip. A flow at least half of whose messages were lost has none: it is slower than
//! all others, and so is a quantile that falls on it.
//!
//! Keeps the medians of the open bins only. Bins are open for as long as a lost message keeps back
//! those that its flow sent after it. Of very many bins every second is kept, then every fourth.

use std::collections::VecDeque;

use neph_model::{Fleet, FleetMessage, Instant, Local, Span};
use neph_stats::{Level, Sorted, rough_level};

use crate::compact_rtt::CompactRtt;
use crate::flow_quantiles::FlowQuantile;
use crate::latency::Latency;
use crate::medians::Medians;
use crate::settings::Settings;

/// Bins of all endpoints together that are kept: 14 MiB, of one endpoint 60 days at 20 s.
const MAX_BINS: usize = 1 << 18;
/// Bins that are open at a time, at most: what comes more than a day late is left out.
const MAX_OPEN_BINS: u32 = 1 << 12;
/// Of each endpoint so many are kept at least.
const MIN_BINS_PER_ENDPOINT: usize = 64;

/// What a closed bin leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bin {
    /// When it begins.
    pub(crate) from: Instant<Local>,
    /// Flows with a message in it.
    pub(crate) flows: u32,
    /// Of these, flows at least half of whose messages were lost.
    pub(crate) lost: u32,
    /// Quantiles over flows: lowest, p50, p95, p99, highest.
    pub(crate) latency: [Latency<CompactRtt>; 5],
}

/// The medians of flows in a bin that is open.
#[derive(Debug, Default)]
struct OpenMedians {
    received: Vec<CompactRtt>,
    lost: u32,
}

impl OpenMedians {
    fn add(&mut self, median: Latency<CompactRtt>) {
        match median {
            Latency::Took(trip) => self.received.push(trip),
            Latency::Lost => self.lost += 1,
        }
    }
}

/// The bins of the flows to one endpoint.
#[derive(Debug)]
pub(crate) struct Bins {
    width: Span,
    origin: Instant<Local>,
    /// Index of the first open bin.
    first_open: u32,
    /// Bins that are open at a time: messages of different flows do not come in order.
    max_open: u32,
    medians: Medians,
    /// Of flows that have left a bin which is open still.
    open: VecDeque<OpenMedians>,
    closed: Vec<Bin>,
    max_closed: usize,
    /// Bins whose index is a multiple of this are kept.
    thinning_step: u32,
}

impl Bins {
    /// Bins from `origin` on, of one of the fleet's endpoints.
    pub(crate) fn new(origin: Instant<Local>, settings: &Settings, fleet: &Fleet) -> Self {
        let endpoints = fleet.endpoints.len().max(1);
        let flows = (fleet.slots as usize).div_ceil(endpoints);
        let width = settings.bin;
        let open_bins = settings.settle.nanos().max(1).div_euclid(width.nanos()) + 2;
        Self {
            width,
            origin,
            first_open: 0,
            max_open: u32::try_from(open_bins)
                .map_or(MAX_OPEN_BINS, |open_bins| open_bins.min(MAX_OPEN_BINS)),
            medians: Medians::new(flows, fleet.interval, width),
            open: VecDeque::new(),
            closed: Vec::new(),
            max_closed: (MAX_BINS / endpoints).max(MIN_BINS_PER_ENDPOINT),
            thinning_step: 1,
        }
    }

    /// A message that was sent, on a flow with this number among the endpoint's, and its round trip.
    pub(crate) fn push(&mut self, flow_index: u32, message: &FleetMessage, latency: Latency) {
        let index = (message.sent - self.origin)
            .nanos()
            .div_euclid(self.width.nanos());
        // Of the very first messages not the earliest may come first.
        let Ok(index) = u32::try_from(index.max(0)) else {
            return;
        };
        if index < self.first_open {
            return;
        }
        // A long silence is no reason to fill bins with nothing.
        if index - self.first_open > self.max_open.saturating_mul(2) {
            self.close_all();
            self.first_open = index;
        }
        while index - self.first_open >= self.max_open {
            self.close_first();
        }
        let latency = latency.map(|time| CompactRtt::from_nanos(time.nanos()));
        if let Some((bin, median)) =
            self.medians
                .push(flow_index, message.source_port, index, latency)
        {
            self.add(bin, median);
        }
    }

    /// All bins, the open ones as they stand, those without a message left out.
    pub(crate) fn into_bins(mut self) -> Vec<Bin> {
        self.close_all();
        self.closed
    }

    fn add(&mut self, bin: u32, median: Latency<CompactRtt>) {
        let Some(index) = bin.checked_sub(self.first_open) else {
            return;
        };
        let index = index as usize;
        while self.open.len() <= index {
            self.open.push_back(OpenMedians::default());
        }
        self.open[index].add(median);
    }

    fn close_first(&mut self) {
        let bin = self.first_open;
        let mut medians = self.open.pop_front().unwrap_or_default();
        let completed = self.medians.complete_all(bin);
        completed
            .filter(|(completed_bin, _)| *completed_bin == bin)
            .for_each(|(_, median)| medians.add(median));
        if bin.is_multiple_of(self.thinning_step) {
            let from = self.origin + self.width.times(bin.into());
            self.closed.extend(build_bin(from, &medians));
        }
        self.first_open += 1;
        if self.closed.len() > self.max_closed {
            self.thin();
        }
        if self.open.len() < self.max_open as usize {
            // Its memory is used again: all bins have the same size.
            medians.received.clear();
            medians.lost = 0;
            self.open.push_back(medians);
        }
    }

    fn close_all(&mut self) {
        for _ in 0..self.max_open {
            self.close_first();
        }
    }

    /// Keeps every second of the bins that were kept so far.
    fn thin(&mut self) {
        self.thinning_step = self.thinning_step.saturating_mul(2);
        let (origin, width) = (self.origin, self.width);
        let thinning_step = i64::from(self.thinning_step);
        self.closed.retain(|bin| {
            let index = (bin.from - origin).nanos() / width.nanos();
            index % thinning_step == 0
        });
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
fn build_bin(from: Instant<Local>, medians: &OpenMedians) -> Option<Bin> {
    let mut values: Vec<f64> = medians
        .received
        .iter()
        .map(|latency| latency.nanos() as f64)
        .collect();
    let latency = flow_quantiles(&mut values, medians.lost as usize)?;
    let received = u32::try_from(values.len()).unwrap_or(u32::MAX);
    Some(Bin {
        from,
        flows: received.saturating_add(medians.lost),
        lost: medians.lost,
        latency: latency.map(|latency| latency.map(|time| CompactRtt::from_nanos(time.nanos()))),
    })
}

/// Lowest, p50, p95, p99, highest of values in nanoseconds and of `lost` further ones, which are
/// above all; `None` of none.
pub(crate) fn flow_quantiles(values: &mut [f64], lost: usize) -> Option<[Latency; 5]> {
    let sorted = Sorted::sort(values).ok()?;
    let to_latency = |level: Level| match level {
        Level::At(nanos) => Latency::Took(span_from_nanos(nanos)),
        Level::Censored => Latency::Lost,
    };
    let mut latencies = [Latency::Lost; 5];
    for quantile in FlowQuantile::PERCENTILES {
        latencies[quantile as usize] =
            to_latency(rough_level(sorted, lost, quantile.share()).ok()?);
    }
    let extremes = (sorted.values().first(), sorted.values().last());
    latencies[0] = extremes
        .0
        .map_or(Latency::Lost, |low| to_latency(Level::At(*low)));
    latencies[4] = match extremes.1 {
        Some(high) if lost == 0 => to_latency(Level::At(*high)),
        _ => Latency::Lost,
    };
    Some(latencies)
}

/// A time from a statistic in nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "times of a network")]
pub(crate) fn span_from_nanos(nanos: f64) -> Span {
    Span::from_nanos(nanos.round() as i64)
}

#[cfg(test)]
mod tests {
    use neph_model::{FleetOutcome, Slot};

    use super::*;
    use crate::world::World;

    const WIDTH: Span = Span::from_secs(20);

    fn bins() -> Bins {
        let settings = Settings::default();
        let fleet = World::default().fleet();
        Bins::new(Instant::from_nanos(0), &settings, &fleet)
    }

    fn push(bins: &mut Bins, flow: (u32, u16), millis: i64, round_trip: Span) {
        push_latency(bins, flow, millis, Latency::Took(round_trip));
    }

    fn times(bin: &Bin) -> [Option<Span>; 5] {
        bin.latency
            .map(|latency| latency.map(CompactRtt::span).took())
    }

    fn push_latency(bins: &mut Bins, (slot, port): (u32, u16), millis: i64, latency: Latency) {
        let message = FleetMessage {
            slot: Slot(slot),
            source_port: port,
            seq: 0,
            sent: Instant::from_nanos(millis * 1_000_000),
            late: Span::ZERO,
            outcome: FleetOutcome::Lost,
        };
        bins.push(slot, &message, latency);
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
        let closed_bins = bins.into_bins();
        assert_eq!((closed_bins.len(), closed_bins[0].flows), (1, 2));
        let [low, middle, _, _, high] = times(&closed_bins[0]);
        let millis = [low, middle, high];
        assert_eq!(
            millis,
            [10, 20, 30].map(|count| Some(Span::from_millis(count)))
        );
    }

    #[test]
    fn bins_close_as_time_goes_on_and_empty_ones_leave_no_trace() {
        let mut bins = bins();
        for (slot, second) in [
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
            push(&mut bins, (slot, 1), second * 1000, round_trip);
        }
        let closed_bins: Vec<(i64, Option<Span>, u32)> = bins
            .into_bins()
            .iter()
            .map(|bin| (bin.from.nanos() / 1_000_000_000, times(bin)[1], bin.flows))
            .collect();
        let expected = [(0, 2, 2), (20, 25, 1), (40, 43, 1)]
            .map(|(at, millis, flows)| (at, Some(Span::from_millis(millis)), flows));
        assert_eq!(closed_bins[..3], expected);
        assert_eq!(closed_bins[3], (300, Some(Span::from_micros(300_500)), 1));
        assert_eq!(closed_bins.len(), 4);
    }

    #[test]
    fn a_renewed_flow_is_another_flow() {
        let mut bins = bins();
        push(&mut bins, (0, 1), 0, Span::from_millis(10));
        push(&mut bins, (0, 2), 1, Span::from_millis(12));
        assert_eq!(bins.into_bins()[0].flows, 2);
    }

    #[test]
    fn bins_beyond_the_maximum_are_thinned_evenly() {
        let mut bins = Bins {
            max_closed: 100,
            ..bins()
        };
        for bin in 0..1000_i64 {
            push(&mut bins, (0, 1), bin * 20_000, Span::from_millis(bin));
        }
        let closed_bins = bins.into_bins();
        let moments: Vec<i64> = closed_bins
            .iter()
            .map(|bin| bin.from.nanos() / WIDTH.nanos())
            .collect();
        assert!((50..=100).contains(&moments.len()), "{}", moments.len());
        assert!(moments.windows(2).all(|pair| pair[1] - pair[0] == 16));
        let last = Span::from_millis(moments[moments.len() - 1]);
        assert_eq!(times(&closed_bins[closed_bins.len() - 1])[1], Some(last));
    }

    #[test]
    fn a_flow_that_lost_everything_is_slower_than_all_others() {
        let mut bins = bins();
        for flow in 0..9 {
            let round_trip = Span::from_millis(10 + i64::from(flow));
            push(&mut bins, (flow, 1), 0, round_trip);
        }
        for flow in 9..11 {
            push_latency(&mut bins, (flow, 1), 0, Latency::Lost);
        }
        let closed_bins = bins.into_bins();
        assert_eq!((closed_bins[0].flows, closed_bins[0].lost), (11, 2));
        // Of eleven flows the sixth is the median; p95 and p99 lie among the two that are lost.
        let millis = |count: i64| Some(Span::from_millis(count));
        assert_eq!(
            times(&closed_bins[0]),
            [millis(10), millis(15), None, None, None]
        );
    }

    #[test]
    fn a_bin_with_only_losses_reports_lost_latencies() {
        let mut bins = bins();
        push_latency(&mut bins, (0, 1), 0, Latency::Lost);
        push(&mut bins, (0, 1), 20_000, Span::from_millis(10));
        let closed_bins = bins.into_bins();
        assert_eq!((closed_bins[0].flows, closed_bins[0].lost), (1, 1));
        assert_eq!(closed_bins[0].latency, [Latency::Lost; 5]);
        assert_eq!((closed_bins[1].flows, closed_bins[1].lost), (1, 0));
    }

    /// What is lost is known when the timeout is over, when others are far ahead.
    #[test]
    fn a_loss_counts_in_the_bin_in_which_it_was_sent_however_long_the_timeout() {
        let settings = Settings {
            settle: Span::from_secs(90),
            ..Settings::default()
        };
        let fleet = World::default().fleet();
        let mut bins = Bins::new(Instant::from_nanos(0), &settings, &fleet);
        for second in 0..90 {
            push(&mut bins, (0, 1), second * 1000, Span::from_millis(10));
        }
        push_latency(&mut bins, (1, 1), 0, Latency::Lost);
        let closed_bins = bins.into_bins();
        assert_eq!(closed_bins.len(), 5);
        assert_eq!((closed_bins[0].flows, closed_bins[0].lost), (2, 1));
    }

    #[test]
    fn messages_sent_before_the_first_reply_belong_to_the_first_bin() {
        let mut bins = bins();
        push(&mut bins, (0, 1), 0, Span::from_millis(10));
        push_latency(&mut bins, (1, 1), -3, Latency::Lost);
        assert_eq!(bins.into_bins()[0].flows, 2);
    }
}
