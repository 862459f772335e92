//! Which range an axis shows. One outlier must not compress the rest: the axis follows the bulk of
//! the values. It is logarithmic if the bulk spans more than a factor of 12. Values outside are counted
//! in the margin.

use neph_analysis::latencies::Latencies;
use neph_model::Span;
use neph_stats::Sorted;

use super::Scale;
use neph_analysis::PlotSettings;

/// What decides an axis's range, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    /// Where the bulk begins.
    pub(crate) low: f64,
    pub(crate) median: f64,
    /// Where the bulk ends.
    pub(crate) high: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// The bulk is the middle 99 %; with few values, nearly all of them.
    pub(crate) fn of(sample: Sorted<'_>) -> Option<Self> {
        let values = sample.values();
        let last = values.len().checked_sub(1)?;
        let values_outside = values.len() / 200;
        Some(Self {
            min: values[0],
            low: values[values_outside],
            median: values[last / 2],
            high: values[last - values_outside],
            max: values[last],
        })
    }

    /// What an axis needs to know of latencies.
    pub(crate) fn of_latencies(latencies: &Latencies) -> Option<Self> {
        Self::of(latencies.sorted())
    }
}

/// Ends that the settings fix.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl From<&PlotSettings> for Limits {
    /// As in the Latency Tester, 0 means that the end is chosen from the data.
    fn from(settings: &PlotSettings) -> Self {
        let positive_millis = |span: Option<Span>| {
            let millis = span.map(Span::millis_f64);
            millis.filter(|millis| *millis > 0.0)
        };
        Self {
            low: positive_millis(settings.rtt_min),
            high: positive_millis(settings.rtt_max),
        }
    }
}

/// The scale that shows the bulk of all spreads. `None` if there is nothing to show.
pub(crate) fn choose_scale(spreads: &[Spread], limits: Limits) -> Option<Scale> {
    let reduce = |value: fn(&Spread) -> f64, extreme: fn(f64, f64) -> f64| {
        spreads.iter().map(value).reduce(extreme)
    };
    let low = reduce(|spread| spread.low, f64::min)?;
    let high = reduce(|spread| spread.high, f64::max)?;
    let min = reduce(|spread| spread.min, f64::min)?;
    let max = reduce(|spread| spread.max, f64::max)?;
    if low > 0.0 && high / low > 12.0 {
        // What lies beyond the bulk is shown if that costs at most a fifth of the axis.
        let max_ratio = (high / low).powf(0.2);
        let top = if max <= high * max_ratio {
            max
        } else {
            high * max_ratio.sqrt()
        };
        let bottom = if min >= low / max_ratio {
            min
        } else {
            low / max_ratio.sqrt()
        };
        return Some(Scale::logarithmic(
            limits.low.unwrap_or(bottom / 1.15),
            limits.high.unwrap_or(top * 1.15),
        ));
    }
    let bulk_width = (high - low).max(high.abs() * 0.02).max(1e-4);
    let top = if max <= high + 0.6 * bulk_width {
        max
    } else {
        high + 0.25 * bulk_width
    };
    let bottom = if min >= low - 0.6 * bulk_width {
        min
    } else {
        low - 0.25 * bulk_width
    };
    // An axis that could begin at 0 without losing half of its length does.
    let begins_at_zero = bottom >= 0.0 && bottom < 0.4 * top;
    Some(Scale::linear(
        limits.low.unwrap_or(if begins_at_zero {
            0.0
        } else {
            bottom - 0.04 * (top - bottom)
        }),
        limits.high.unwrap_or(top + 0.04 * (top - bottom)),
    ))
}

/// One scale for all groups, or one for each, as the settings want it.
pub(crate) fn group_scales(groups: &[Vec<Spread>], settings: &PlotSettings) -> Vec<Option<Scale>> {
    let limits = Limits::from(settings);
    match settings.equalization {
        neph_analysis::Equalization::Shared => {
            vec![choose_scale(&groups.concat(), limits); groups.len()]
        }
        neph_analysis::Equalization::Separate => groups
            .iter()
            .map(|group| choose_scale(group, limits))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Spacing;

    fn spread(values: &mut [f64]) -> Spread {
        Spread::of(Sorted::sort(values).unwrap()).unwrap()
    }

    #[test]
    fn one_outlier_does_not_compress_the_other_values() {
        let mut values: Vec<f64> = (0..1000).map(|i| 40.0 + f64::from(i) / 1000.0).collect();
        values.push(1800.0);
        let scale = choose_scale(&[spread(&mut values)], Limits::default()).unwrap();
        assert_eq!(scale.spacing, Spacing::Linear);
        assert!(scale.low > 39.0 && scale.high < 43.0, "{scale:?}");
    }

    #[test]
    fn scenarios_far_apart_share_a_logarithmic_axis() {
        let groups = [
            spread(&mut [4.0, 4.1, 4.2]),
            spread(&mut [280.0, 281.0, 300.0]),
        ];
        let scale = choose_scale(&groups, Limits::default()).unwrap();
        assert_eq!(scale.spacing, Spacing::Logarithmic);
        assert!(scale.low < 4.0 && scale.high > 300.0);
    }

    #[test]
    fn fixed_limits_replace_those_of_the_data() {
        let limits = Limits {
            low: Some(10.0),
            high: Some(20.0),
        };
        let scale = choose_scale(&[spread(&mut [14.0, 15.0, 90.0])], limits).unwrap();
        assert_eq!((scale.low, scale.high), (10.0, 20.0));
    }
}
