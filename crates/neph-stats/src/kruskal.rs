//! The Kruskal-Wallis test: several scenarios whose experiments are not paired.

use crate::distribution::chi_square_above;
use crate::error::StatsError;
use crate::ranks::ranks;
use crate::real::real;
use crate::sorted::refuse_fewer;

/// Result of a test of several scenarios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupTest {
    /// How many values it rests on.
    pub n: usize,
    /// The test statistic, corrected for ties.
    pub statistic: f64,
    /// Degrees of freedom.
    pub freedom: usize,
    /// p value by the chi-square approximation, which is rough below 5 experiments per scenario.
    pub p: f64,
}

/// Tests whether any of `groups` differs from the others. Values that are all equal give a
/// statistic of 0 and p = 1.
///
/// # Errors
/// [`StatsError::TooFew`] for fewer than 2 groups or an empty one; [`StatsError::NotFinite`].
pub fn kruskal<G: AsRef<[f64]>>(groups: &[G]) -> Result<GroupTest, StatsError> {
    refuse_fewer("Kruskal-Wallis test (groups)", 2, groups.len())?;
    for group in groups {
        refuse_fewer("Kruskal-Wallis test (group)", 1, group.as_ref().len())?;
    }
    let all: Vec<f64> = groups.iter().flat_map(AsRef::as_ref).copied().collect();
    let ranks = ranks(&all)?;
    let n = real(all.len());
    let mut rest = ranks.of.as_slice();
    let mut spread = 0.0;
    for group in groups {
        let (own, others) = rest.split_at(group.as_ref().len());
        let size = real(own.len());
        // Deviations from the mean rank, not squared sums: those cancel in large samples.
        spread += size * (own.iter().sum::<f64>() / size - 0.5 * (n + 1.0)).powi(2);
        rest = others;
    }
    let varied = n * n * n - n - ranks.tie_term;
    let freedom = groups.len() - 1;
    let statistic = if varied > 0.0 {
        12.0 * spread * (n - 1.0) / varied
    } else {
        0.0
    };
    Ok(GroupTest {
        n: all.len(),
        statistic,
        freedom,
        p: chi_square_above(statistic, real(freedom)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_no_evidence() {
        let test = kruskal(&[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]).unwrap();
        assert_eq!(
            (test.n, test.statistic, test.freedom, test.p),
            (6, 0.0, 2, 1.0)
        );
        assert!(kruskal(&[[1.0]]).is_err() && kruskal(&[vec![1.0], vec![]]).is_err());
    }
}
