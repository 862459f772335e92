//! The probabilities of the states of a birth-death process.

/// The probability of each state, from 0 on. `ratios` has, for each state from 1 on, the rate of its births
/// divided by that of its deaths. Computed by logarithms, because products span hundreds of orders of magnitude.
pub(super) fn probabilities(ratios: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut logarithm = 0.0;
    let mut logarithms = vec![0.0];
    for ratio in ratios {
        logarithm += ratio.ln();
        logarithms.push(logarithm);
    }
    let largest = logarithms.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = logarithms.iter().map(|one| (one - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}
