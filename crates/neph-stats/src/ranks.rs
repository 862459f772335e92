//! Ranks, with the mean rank for ties, as all rank tests need them.

use crate::casts::{tied, usize_to_f64};
use crate::error::StatsError;
use crate::sorted::refuse_not_finite;

/// The rank of each value, in the order the values were given.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks {
    /// Ranks from 1; tied values share the mean of theirs, so that each is a multiple of 1/2.
    pub of: Vec<f64>,
    /// Sum of t^3 - t over all groups of t tied values; 0 without ties.
    pub tie_term: f64,
}

/// Ranks `values`.
///
/// # Errors
/// [`StatsError::NotFinite`].
pub fn ranks(values: &[f64]) -> Result<Ranks, StatsError> {
    refuse_not_finite("values to rank", values)?;
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = Ranks {
        of: vec![0.0; values.len()],
        tie_term: 0.0,
    };
    let mut done = 0;
    for group in order.chunk_by(|&a, &b| tied(values[a], values[b])) {
        let size = usize_to_f64(group.len());
        let rank = usize_to_f64(done) + 0.5 * (size + 1.0);
        for &index in group {
            ranks.of[index] = rank;
        }
        ranks.tie_term += size * size * size - size;
        done += group.len();
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_get_their_mean_rank() {
        let r = ranks(&[3.0, 1.0, 3.0, 0.0, -0.0, 3.0]).unwrap();
        assert_eq!(
            r,
            Ranks {
                of: vec![5.0, 3.0, 5.0, 1.5, 1.5, 5.0],
                tie_term: 30.0
            }
        );
    }
}
