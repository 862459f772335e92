//! A uniform sample of many values, in bounded memory.

/// Contains each pushed value with the same probability (Vitter's algorithm R).
#[derive(Debug)]
pub(crate) struct Reservoir<T> {
    values: Vec<T>,
    capacity: usize,
    pushed: u64,
    random: u64,
}

impl<T: Copy + Ord> Reservoir<T> {
    /// With this capacity, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            values: Vec::new(),
            capacity: capacity.max(1),
            pushed: 0,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Adds a value.
    pub(crate) fn push(&mut self, value: T) {
        self.pushed += 1;
        if self.values.len() < self.capacity {
            self.values.push(value);
            return;
        }
        let index = self.below(self.pushed);
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(slot) = self.values.get_mut(index) {
            *slot = value;
        }
    }

    /// A number below the limit (xorshift; a peer gains nothing if it predicts it).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let product = u128::from(self.random) * u128::from(limit);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// The sampled values in ascending order.
    pub(crate) fn sorted(&self) -> Vec<T> {
        let mut values = self.values.clone();
        values.sort_unstable();
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_all_stored_and_many_are_sampled_uniformly() {
        let mut few = Reservoir::new(4);
        for value in [3, 1, 2] {
            few.push(value);
        }
        assert_eq!(few.sorted(), [1, 2, 3]);
        let mut many = Reservoir::new(1_000);
        (0..100_000).for_each(|value| many.push(value));
        let sorted = many.sorted();
        assert_eq!(sorted.len(), 1_000);
        let median = sorted[500];
        assert!((45_000..55_000).contains(&median), "{median}");
        let low = sorted.iter().filter(|value| **value < 10_000).count();
        assert!((60..150).contains(&low), "{low} of 100 expected");
    }
}
