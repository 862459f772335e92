//! A scale: which share of an axis's length a value lies at.

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart. Both ends are above 0.
    Logarithmic,
}

/// An axis's ends and spacing, in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) spacing: Spacing,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Scale {
    /// A linear scale; ends that are equal, swapped or not finite are moved apart.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        let low = if low.is_finite() { low } else { 0.0 };
        let high = if high.is_finite() && high > low {
            high
        } else {
            low + (low.abs() * 0.1).max(1e-6)
        };
        Self {
            spacing: Spacing::Linear,
            low,
            high,
        }
    }

    /// A logarithmic scale; ends that are not above 0 or too near each other are moved.
    pub(crate) fn logarithmic(low: f64, high: f64) -> Self {
        let low = if low.is_finite() && low > 0.0 {
            low
        } else {
            1e-6
        };
        let high = if high.is_finite() {
            high.max(low * 1.2)
        } else {
            low * 10.0
        };
        Self {
            spacing: Spacing::Logarithmic,
            low,
            high,
        }
    }

    /// 0 at the low end, 1 at the high end; beyond them outside of 0..=1.
    pub(crate) fn share(&self, value: f64) -> f64 {
        match self.spacing {
            Spacing::Linear => (value - self.low) / (self.high - self.low),
            Spacing::Logarithmic => {
                let value = value.max(self.low * 1e-3);
                (value / self.low).ln() / (self.high / self.low).ln()
            }
        }
    }

    /// The same moved into 0..=1.
    pub(crate) fn clamped_share(&self, value: f64) -> f64 {
        self.share(value).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_scale_lies_at_half_of_its_length() {
        let linear = Scale::linear(10.0, 20.0);
        assert!(
            [10.0, 15.0, 20.0]
                .iter()
                .zip([0.0, 0.5, 1.0])
                .all(|(value, share)| (linear.share(*value) - share).abs() < 1e-12)
        );
        let logarithmic = Scale::logarithmic(1.0, 100.0);
        assert!((logarithmic.share(10.0) - 0.5).abs() < 1e-12);
        let clamped = (
            logarithmic.clamped_share(0.0),
            logarithmic.clamped_share(1e9),
        );
        assert_eq!(clamped, (0.0, 1.0));
        let without_width = Scale::linear(5.0, 5.0);
        assert!(without_width.high > without_width.low);
    }
}
