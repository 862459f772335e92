//! Numbers in ascending order, as rules compare them with thresholds.

use neph_stats::{Sorted, rough_quantile};

/// Numbers in ascending order. Rules compare their quantiles with a threshold.
#[derive(Clone, Debug, Default)]
pub(crate) struct SortedValues(Vec<f64>);

impl FromIterator<f64> for SortedValues {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut values: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }
}

impl SortedValues {
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }
    pub(crate) fn min(&self) -> Option<f64> {
        self.0.first().copied()
    }
    pub(crate) fn max(&self) -> Option<f64> {
        self.0.last().copied()
    }
    pub(crate) fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }
    /// The value below which the share `p` of them lies.
    pub(crate) fn quantile(&self, p: f64) -> Option<f64> {
        let sorted = Sorted::check(&self.0).ok()?;
        rough_quantile(sorted, p).ok()
    }
    /// From the 10th to the 90th percentile.
    pub(crate) fn spread(&self) -> Option<f64> {
        Some(self.quantile(0.9)? - self.quantile(0.1)?)
    }
    /// How many lie above `limit`.
    pub(crate) fn count_above(&self, limit: f64) -> usize {
        self.0.len() - self.0.partition_point(|value| *value <= limit)
    }
}
