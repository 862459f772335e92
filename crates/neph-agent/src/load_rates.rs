//! What loads of a plan did, as they report at their end.
//!
//! Owns which of their seconds belong to an experiment.

use neph_model::{Instant, Local, Sample, SeriesName, Warning};

/// What loads did, over all of their time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadResults {
    /// What makes experiments of the same time less trustworthy.
    pub warnings: Vec<Warning>,
    /// Rates of traffic and shares of processors, by second.
    pub seconds: Vec<LoadSample>,
}

/// A value of a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadSample {
    /// Of what.
    pub series: SeriesName,
    /// When the second began, on the local monotonic clock.
    pub from: Instant<Local>,
    /// When it ended.
    pub until: Instant<Local>,
    /// The value, in the series' unit.
    pub value: f64,
}

/// The samples of an experiment that ran between these moments: of the seconds that lie within it.
pub(crate) fn samples(
    load_samples: &[LoadSample],
    began: Instant<Local>,
    ended: Instant<Local>,
) -> Vec<Sample> {
    let within_experiment = load_samples
        .iter()
        .filter(|load_sample| load_sample.from >= began && load_sample.until <= ended);
    let samples = within_experiment.map(|load_sample| Sample {
        series: load_sample.series,
        at: (load_sample.until - began).nanos(),
        value: load_sample.value,
    });
    samples.collect()
}

#[cfg(test)]
mod tests {
    use neph_model::LoadEnd;

    use super::*;

    #[test]
    fn only_load_seconds_within_an_experiment_belong_to_it() {
        let at = |second: i64| Instant::from_nanos(second * 1_000_000_000);
        let series = SeriesName::Load(2, LoadEnd::Sent);
        let second = |from: i64| LoadSample {
            series,
            from: at(from),
            until: at(from + 1),
            value: 5.0,
        };
        let seconds: Vec<_> = (0..10).map(second).collect();
        let sample = |at: i64| Sample {
            series,
            at: at * 1_000_000_000,
            value: 5.0,
        };
        assert_eq!(samples(&seconds, at(3), at(5)), [sample(1), sample(2)]);
        let ended = at(5) + neph_model::Span::from_millis(999);
        assert_eq!(samples(&seconds, at(3), ended).len(), 2);
    }
}
