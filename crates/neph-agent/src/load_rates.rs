//! What loads of a plan did, as they report at their end.
//!
//! Owns which of their seconds belong to an experiment.

use neph_model::{Instant, LoadEnd, Own, Sample, SeriesName, Warning};

/// What loads did, over all of their time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadsDone {
    /// What makes experiments beside them less trustworthy.
    pub warnings: Vec<Warning>,
    /// The rates of traffic, by second.
    pub seconds: Vec<LoadSeconds>,
}

/// A second of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadSeconds {
    /// Which load, from 1 in the order of the plan.
    pub load: u16,
    /// When it began, on our monotonic clock.
    pub from: Instant<Own>,
    /// When it ended.
    pub until: Instant<Own>,
    /// What was sent, bits per second.
    pub sent: f64,
    /// What was received of it, bits per second.
    pub received: f64,
}

/// The samples of an experiment that ran between these moments: of the seconds that lie within it.
pub(crate) fn samples(
    seconds: &[LoadSeconds],
    began: Instant<Own>,
    ended: Instant<Own>,
) -> Vec<Sample> {
    let within = seconds.iter();
    let within = within.filter(|one| one.from >= began && one.until <= ended);
    let both = within.flat_map(|one| {
        let ends = [(LoadEnd::Sent, one.sent), (LoadEnd::Received, one.received)];
        ends.map(|(end, value)| Sample {
            series: SeriesName::Load(one.load, end),
            at: (one.until - began).nanos(),
            value,
        })
    });
    both.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_seconds_that_lie_within_an_experiment_are_its_own() {
        let at = |second: i64| Instant::from_nanos(second * 1_000_000_000);
        let second = |from: i64| LoadSeconds {
            load: 2,
            from: at(from),
            until: at(from + 1),
            sent: 5.0,
            received: 4.0,
        };
        let all: Vec<_> = (0..10).map(second).collect();
        let found = samples(&all, at(3), at(5));
        let named: Vec<_> = found
            .iter()
            .map(|one| (one.series.to_string(), one.at, one.value))
            .collect();
        let sample = |end: &str, at: i64, value: f64| {
            (format!("load2_{end}_bit_s"), at * 1_000_000_000, value)
        };
        let expected = [
            sample("sent", 1, 5.0),
            sample("received", 1, 4.0),
            sample("sent", 2, 5.0),
            sample("received", 2, 4.0),
        ];
        assert_eq!(named, expected);
    }
}
