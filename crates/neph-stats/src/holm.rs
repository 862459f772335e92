//! Holm's correction for several tests at once.

use crate::casts::usize_to_f64;
use crate::error::StatsError;

/// The p values of several tests, raised so that the probability of any false finding stays below the level
/// that each is compared with (Holm 1979). In the order given.
///
/// # Errors
/// [`StatsError::OutOfRange`] for a p value outside 0..=1.
pub fn holm(p_values: &[f64]) -> Result<Vec<f64>, StatsError> {
    if let Some(&value) = p_values.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        return Err(StatsError::OutOfRange {
            subject: "p value",
            value,
            wanted: "from 0 to 1",
        });
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut reached: f64 = 0.0;
    for (rank, &test) in order.iter().enumerate() {
        reached = reached
            .max(p_values[test] * usize_to_f64(p_values.len() - rank))
            .min(1.0);
        adjusted[test] = reached;
    }
    Ok(adjusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_corrects_p_values_in_order_and_refuses_invalid_ones() {
        assert_eq!(
            holm(&[0.02, 0.5, 0.01, 0.4]).unwrap(),
            [0.06, 0.8, 0.04, 0.8]
        );
        assert_eq!(holm(&[]).unwrap(), Vec::<f64>::new());
        assert!(holm(&[1.5]).is_err() && holm(&[f64::NAN]).is_err());
    }
}
