//! Which requests of a stream are new: a state without I/O.

/// The last 64 numbers up to the highest received one, like the anti-replay window of ESP (RFC
/// 4303, section 3.4.3).
#[derive(Debug, Default)]
pub(super) struct Window {
    highest: u64,
    /// Bit n: `highest - n` was received.
    received: u64,
}

impl Window {
    /// Whether this number is new. One below the window counts as a duplicate.
    #[inline]
    pub(super) const fn is_new(&mut self, number: u64) -> bool {
        if number > self.highest {
            let shift = number - self.highest;
            self.received = if shift < 64 {
                self.received << shift | 1
            } else {
                1
            };
            self.highest = number;
            return true;
        }
        let below = self.highest - number;
        if below >= 64 || number == 0 {
            return false;
        }
        let bit = 1 << below;
        let is_new = self.received & bit == 0;
        self.received |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sequence_number_is_new_once_and_an_old_one_never() {
        let mut window = Window::default();
        let received = [1, 1, 3, 2, 2, 100, 3, 37, 37, 36, 0].map(|number| window.is_new(number));
        let expected = [
            true, false, true, true, false, true, false, true, false, false, false,
        ];
        assert_eq!(received, expected);
    }

    proptest! {
        #[test]
        fn within_64_numbers_each_is_new_exactly_once(numbers in prop::collection::vec(1_u64..=64, 1..200)) {
            let (mut window, mut known) = (Window::default(), BTreeSet::new());
            for number in numbers {
                prop_assert_eq!(window.is_new(number), known.insert(number));
            }
        }
    }
}
