//! How much path diversity does to a pair.

use std::cmp::Ordering;

/// What path diversity does to a pair: how much slower its slowest path is, then how often flows move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Highest class over lowest, less one; 0 without classes.
    inflation: f64,
    /// Path changes.
    changes: u64,
}

impl Effect {
    /// Of a pair with this inflation (highest class over lowest, less one) and so many path changes.
    pub fn new(inflation: Option<f64>, changes: u64) -> Self {
        let inflation = inflation.unwrap_or(0.0);
        Self { inflation, changes }
    }

    /// The larger effect first.
    pub fn larger_first(&self, other: &Self) -> Ordering {
        let inflation = other.inflation.total_cmp(&self.inflation);
        inflation.then(other.changes.cmp(&self.changes))
    }
}
