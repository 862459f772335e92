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

/// Results of a closed bin.
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
            Latency::Took(round_trip) => self.received.push(round_trip),
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
    open_medians: VecDeque<OpenMedians>,
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
        let open_count = settings.settle.nanos().max(1).div_euclid(width.nanos()) + 2;
        Self {
            width,
            origin,
            first_open: 0,
            max_open: u32::try_from(open_count)
                .map_or(MAX_OPEN_BINS, |count| count.min(MAX_OPEN_BINS)),
            medians: Medians::new(flows, fleet.interval, width),
            open_medians: VecDeque::new(),
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
        if let Some((bin_index, median)) =
            self.medians
                .push(flow_index, message.source_port, index, latency)
        {
            self.add(bin_index, median);
        }
    }

    /// All bins, the open ones as they stand, those without a message left out.
    pub(crate) fn into_bins(mut self) -> Vec<Bin> {
        self.close_all();
        self.closed
    }

    fn add(&mut self, bin_index: u32, median: Latency<CompactRtt>) {
        let Some(index) = bin_index.checked_sub(self.first_open) else {
            return;
        };
        let index = index as usize;
        while self.open_medians.len() <= index {
            self.open_medians.push_back(OpenMedians::default());
        }
        self.open_medians[index].add(median);
    }

    fn close_first(&mut self) {
        let bin_index = self.first_open;
        let mut medians = self.open_medians.pop_front().unwrap_or_default();
        let completed = self.medians.complete_all(bin_index);
        completed
            .filter(|(completed_bin, _)| *completed_bin == bin_index)
            .for_each(|(_, median)| medians.add(median));
        if bin_index.is_multiple_of(self.thinning_step) {
            let from = self.origin + self.width.times(bin_index.into());
            self.closed.extend(build_bin(from, &medians));
        }
        self.first_open += 1;
        if self.closed.len() > self.max_closed {
            self.thin();
        }
        if self.open_medians.len() < self.max_open as usize {
            // Its memory is used again: all bins have the same size.
            medians.received.clear();
            medians.lost = 0;
            self.open_medians.push_back(medians);
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
    let (lowest, highest) = (sorted.values().first(), sorted.values().last());
    latencies[0] = lowest.map_or(Latency::Lost, |nanos| to_latency(Level::At(*nanos)));
    latencies[4] = match highest {
        Some(nanos) if lost == 0 => to_latency(Level::At(*nanos)),
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
mod tests;
