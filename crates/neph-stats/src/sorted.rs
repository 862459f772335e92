//! A slice known to be finite and ascending, so that no calculation has to check it again.

use crate::error::StatsError;

/// A borrowed slice of finite numbers in ascending order. May be empty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sorted<'a>(&'a [f64]);

impl<'a> Sorted<'a> {
    /// Sorts `values` in place.
    ///
    /// # Errors
    /// [`StatsError::NotFinite`] for a NaN or an infinity: a lost message is no number, its place
    /// is the `lost` argument of the functions that can deal with loss.
    pub fn sort(values: &'a mut [f64]) -> Result<Self, StatsError> {
        refuse_not_finite("sample", values)?;
        values.sort_unstable_by(f64::total_cmp);
        Ok(Self(values))
    }

    /// Takes a slice that is in order already.
    ///
    /// # Errors
    /// [`StatsError::NotFinite`] or [`StatsError::NotAscending`], with the place.
    pub fn check(values: &'a [f64]) -> Result<Self, StatsError> {
        refuse_not_finite("sample", values)?;
        match values.windows(2).position(|w| w[1] < w[0]) {
            Some(before) => Err(StatsError::NotAscending {
                subject: "sample",
                index: before + 1,
            }),
            None => Ok(Self(values)),
        }
    }

    /// The values, ascending.
    pub fn values(self) -> &'a [f64] {
        self.0
    }

    /// How many values there are.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there is no value.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// How many values are at most `limit`.
    pub(crate) fn count_up_to(self, limit: f64) -> usize {
        self.0.partition_point(|&v| v <= limit)
    }
}

/// Refuses the first NaN or infinity of `values`.
pub(crate) fn refuse_not_finite(subject: &'static str, values: &[f64]) -> Result<(), StatsError> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(StatsError::NotFinite { subject, index }),
        None => Ok(()),
    }
}

/// Refuses fewer than `need` values.
pub(crate) fn refuse_fewer(
    subject: &'static str,
    need: usize,
    have: usize,
) -> Result<(), StatsError> {
    if have < need {
        Err(StatsError::TooFew {
            subject,
            need,
            have,
        })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_sample_is_reported_with_its_index() {
        assert_eq!(
            Sorted::check(&[1.0, 3.0, 2.0]),
            Err(StatsError::NotAscending {
                subject: "sample",
                index: 2
            })
        );
        assert_eq!(
            Sorted::sort(&mut [1.0, f64::INFINITY]),
            Err(StatsError::NotFinite {
                subject: "sample",
                index: 1
            })
        );
    }

    #[test]
    fn negative_zero_sorts_next_to_zero() {
        let mut values = [2.0, 0.0, -0.0, -1.0];
        assert_eq!(
            Sorted::sort(&mut values).unwrap().values(),
            &[-1.0, 0.0, 0.0, 2.0]
        );
    }
}
