//! The buckets of all histograms here: whole numbers by their size, a power of two of them for each
//! doubling, and one for each number below that.
//!
//! Owns the arithmetic. Buckets of one precision lie within those of a lower one as a whole, so that
//! histograms can be made coarser, and merged, without a further error.

/// How many buckets a doubling has, as a power of two, 1 to 31. A number is known to its bucket: its
/// middle is off by one part in `2^(precision + 1)` at most, and not at all for numbers below that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precision(u8);

/// One bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// Its smallest number.
    pub(crate) from: u64,
    /// How many numbers it has.
    pub(crate) width: u64,
}

impl Precision {
    /// To one part in so many, a power of two from 4 to 2^32.
    ///
    /// # Panics
    /// Where it is none.
    pub const fn one_part_in(parts: u64) -> Self {
        assert!(parts.is_power_of_two() && parts >= 4 && parts <= 1 << 32);
        #[expect(clippy::cast_possible_truncation, reason = "32 at most")]
        Self((parts.trailing_zeros() - 1) as u8)
    }

    /// How many buckets a doubling has, as a power of two.
    pub(crate) const fn exponent(self) -> u8 {
        self.0
    }

    /// The precision with so many buckets a doubling, as a power of two from 1 to 31.
    pub(crate) fn of_exponent(exponent: u8) -> Option<Self> {
        (1..=31).contains(&exponent).then_some(Self(exponent))
    }

    /// What middles of buckets are off by: one part in so many, and not at all for numbers below it.
    pub const fn parts(self) -> u64 {
        1 << (self.0 + 1)
    }

    /// Half as fine, down to `coarsest`.
    pub(crate) fn coarser(self, coarsest: Self) -> Option<Self> {
        (self > coarsest).then(|| Self(self.0 - 1))
    }

    /// The bucket of a number, by its place from 0 on.
    #[inline]
    pub(crate) fn index(self, number: u64) -> u32 {
        let bits = u64::BITS - number.leading_zeros();
        let shift = bits.saturating_sub(u32::from(self.0) + 1);
        let within = u32::try_from(number >> shift).unwrap_or(u32::MAX);
        (shift << self.0) + within
    }

    /// The bucket at a place.
    #[inline]
    pub(crate) fn bucket(self, index: u32) -> Bucket {
        let shift = (index >> self.0).saturating_sub(1);
        let within = u64::from(index - (shift << self.0));
        Bucket {
            from: within << shift,
            width: 1 << shift,
        }
    }
}

impl Bucket {
    /// Half of its numbers are smaller.
    pub(crate) const fn middle(self) -> u64 {
        self.from + (self.width >> 1)
    }

    /// Its largest number.
    pub(crate) const fn last(self) -> u64 {
        self.from + (self.width - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_precision_is_defined_by_its_maximum_relative_error() {
        assert_eq!(Precision::one_part_in(512).parts(), 512);
        assert_eq!(Precision::one_part_in(4).index(7), 5);
        let coarsest = Precision::one_part_in(16);
        let coarser = Precision::one_part_in(32).coarser(coarsest);
        assert_eq!(coarser, Some(coarsest));
        assert_eq!(coarsest.coarser(coarsest), None);
    }

    fn precision() -> impl Strategy<Value = Precision> {
        (2_u32..=20).prop_map(|bits| Precision::one_part_in(1 << bits))
    }

    proptest! {
        #[test]
        fn each_value_is_in_its_bucket_and_near_its_midpoint(
            number in (0_u32..64, any::<u64>()).prop_map(|(shift, number)| number >> shift),
            precision in precision(),
        ) {
            let bucket = precision.bucket(precision.index(number));
            prop_assert!((bucket.from..=bucket.last()).contains(&number), "{bucket:?}");
            let off = bucket.middle().abs_diff(number);
            prop_assert!(u128::from(off) * u128::from(precision.parts()) <= u128::from(number));
        }

        #[test]
        fn a_bucket_lies_within_one_bucket_of_a_coarser_precision(
            number in any::<u64>(),
            (fine, coarse) in (precision(), precision()).prop_map(|(a, b)| (a.max(b), a.min(b))),
        ) {
            let bucket = fine.bucket(fine.index(number));
            let index = coarse.index(bucket.from);
            prop_assert_eq!(index, coarse.index(bucket.last()));
            prop_assert_eq!(index, coarse.index(number));
        }
    }
}
