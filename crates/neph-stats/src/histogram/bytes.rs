//! A histogram as bytes, for storage: precision, least and greatest number, and for each bucket with numbers
//! its distance from the one before and its count. Numbers are LEB128.

use super::Histogram;
use crate::precision::Precision;

/// Finer ones are not read: a place beyond the last one of these would take much memory.
const MAX_EXPONENT: u8 = 12;

impl Histogram {
    /// As bytes, from which [`Self::from_bytes`] makes the same histogram.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.precision.exponent()];
        put(&mut bytes, self.min().unwrap_or(0));
        put(&mut bytes, self.max().unwrap_or(0));
        let mut before = 0;
        for (index, count) in (1..).zip(&self.counts) {
            if *count > 0 {
                put(&mut bytes, index - before);
                put(&mut bytes, *count);
                before = index;
            }
        }
        bytes
    }

    /// The histogram from these bytes; `None` if they are invalid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (exponent, mut rest) = bytes.split_first()?;
        let precision = Precision::of_exponent(*exponent).filter(|_| *exponent <= MAX_EXPONENT)?;
        let (min, max) = (take(&mut rest)?, take(&mut rest)?);
        let mut histogram = Self::new(precision);
        let end = u64::from(precision.index(max)) + 1;
        let mut index: u64 = 0;
        while !rest.is_empty() {
            let gap = take(&mut rest).filter(|gap| *gap > 0)?;
            index = index.checked_add(gap).filter(|index| *index <= end)?;
            let count = take(&mut rest).filter(|count| *count > 0)?;
            histogram.n = histogram.n.checked_add(count)?;
            histogram.count(u32::try_from(index - 1).ok()?, count);
        }
        if histogram.n == 0 {
            return (min == 0 && max == 0).then_some(histogram);
        }
        let ends = [min, max].map(|number| precision.index(number) as usize);
        let first = histogram.counts.iter().position(|count| *count > 0);
        let is_right = first == Some(ends[0]) && histogram.counts.len() == ends[1] + 1;
        if !is_right || min > max {
            return None;
        }
        (histogram.min, histogram.max) = (min, max);
        Some(histogram)
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = (number & 0x7f).to_le_bytes();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number: u64 = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_histogram_roundtrips_through_bytes(
            numbers in prop::collection::vec(prop_oneof![0_u64..2_000, any::<u64>()], 0..200),
            parts in 2_u32..13,
        ) {
            let mut histogram = Histogram::new(Precision::one_part_in(1 << parts));
            for number in &numbers {
                histogram.add(*number);
            }
            prop_assert_eq!(Histogram::from_bytes(&histogram.to_bytes()), Some(histogram));
        }

        #[test]
        fn arbitrary_bytes_decode_to_a_consistent_histogram_or_none(
            bytes in prop::collection::vec(any::<u8>(), 0..40)
        ) {
            if let Some(histogram) = Histogram::from_bytes(&bytes) {
                let decoded = Histogram::from_bytes(&histogram.to_bytes());
                prop_assert_eq!(decoded, Some(histogram));
            }
        }
    }

    #[test]
    fn a_minute_of_a_steady_path_has_some_hundred_bytes() {
        let mut histogram = Histogram::default();
        for number in 0..6_000 {
            histogram.add(40_000_000 + number * 500);
        }
        let length = histogram.to_bytes().len();
        assert!(length < 300, "{length}");
    }
}
