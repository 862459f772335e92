//! Converts results of media streams to quantities.

use neph_model::{BitRate, Quantities, Quantity, Span};

use super::measured::MediaMeasured;
use super::quality::Quality;
use super::second::MediaSecond;
use super::statistics::StreamStatistics;

impl MediaMeasured {
    /// Quantities of all streams.
    #[expect(clippy::cast_precision_loss, reason = "numbers for people")]
    pub fn quantities(&self) -> Quantities {
        let statistics = || self.streams.iter().map(|stream| &stream.statistics);
        let rates = |of: fn(&StreamStatistics) -> Option<BitRate>| {
            let rates = statistics().filter_map(of);
            rates.map(|rate| rate.bits_per_second() as f64)
        };
        let jitters = statistics()
            .filter_map(|stream_figures| stream_figures.network_jitter.or(stream_figures.jitter));
        let jitters = jitters.map(|jitter| nanos(jitter.mean));
        let sum = |of: fn(&StreamStatistics) -> u64| statistics().map(of).sum::<u64>();
        let sent = sum(StreamStatistics::expected).max(1) as f64;
        let percent = |count: u64| count as f64 / sent * 100.0;
        let scores = statistics().filter_map(|stream_figures| match stream_figures.quality {
            // The lowest score: a stream with this much loss is no better.
            Quality::TooMuchLoss | Quality::Nothing => Some(1.0),
            ref known => known.score(),
        });
        let values = [
            (
                Quantity::MediaRate,
                mean(rates(|stream_figures| stream_figures.rate_mean)),
            ),
            (
                Quantity::MediaRateLeast,
                rates(|stream_figures| stream_figures.rate_min).reduce(f64::min),
            ),
            (
                Quantity::MediaRateMost,
                rates(|stream_figures| stream_figures.rate_max).reduce(f64::max),
            ),
            (Quantity::MediaJitter, mean(jitters)),
            (
                Quantity::MediaLoss,
                Some(percent(sum(|stream_figures| stream_figures.lost))),
            ),
            (
                Quantity::MediaLate,
                Some(percent(sum(|stream_figures| stream_figures.late))),
            ),
            (
                Quantity::MediaStalls,
                Some(sum(|stream_figures| stream_figures.stalls.count) as f64),
            ),
            (Quantity::MediaQuality, scores.reduce(f64::min)),
        ];
        let known = values
            .into_iter()
            .filter_map(|(quantity, value)| Some((quantity, value?)));
        Quantities {
            peer: self.address,
            values: known.collect(),
            limits: Vec::new(),
        }
    }
}

impl MediaSecond {
    /// Quantities of the second.
    #[expect(clippy::cast_precision_loss, reason = "numbers for people")]
    pub fn quantities(&self) -> Vec<(Quantity, f64)> {
        let rate = |rate: BitRate| rate.bits_per_second() as f64;
        let lost = self.sum(super::StreamSecond::lost) as f64;
        let received = self.sum(|stream_second| stream_second.packets) as f64;
        let streams = self.streams.len().max(1) as f64;
        vec![
            (Quantity::MediaRate, rate(self.rate()) / streams),
            (Quantity::MediaRateLeast, rate(self.rate_min())),
            (Quantity::MediaRateMost, rate(self.rate_max())),
            (Quantity::MediaJitter, nanos(self.jitter())),
            (
                Quantity::MediaLoss,
                lost / (received + lost).max(1.0) * 100.0,
            ),
        ]
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number for people")]
fn nanos(span: Span) -> f64 {
    span.nanos() as f64
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}
