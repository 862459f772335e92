//! Quantiles of one sample among very many: exact while there are few numbers, then as fine as a
//! bounded number of buckets allows.
//!
//! Owns the buckets and how they are made coarser: all at once, each two of a doubling into one, so
//! that the relative error is the same everywhere and known (as in `UDDSketch`, Epicoco et al. 2020).
//! [`Histogram`](crate::Histogram) is faster and takes a hundred times the memory.

/// Buckets of a doubling at first, as a power of two: to one part in 2^27.
const FINEST: u8 = 26;
/// No coarser than this, however far apart numbers are: to one part in 16.
const COARSEST: u8 = 3;
/// While buckets are finer than this there are few of them at most ...
const FINE: u8 = 7;
const FEW: usize = 32;
/// ... and then more: precision is given away last.
const MANY: usize = 256;
/// Numbers that wait to be sorted into buckets together.
const WAITING: usize = 16;

/// How many numbers of which size there were, in 4 KB at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// As buckets of the finest sort, the first `waits` of them.
    waiting: [u32; WAITING],
    waits: u8,
    /// Bucket and count, in order.
    buckets: Vec<(u32, u32)>,
    /// Powers of two by which buckets are coarser than the finest.
    coarser: u8,
    n: u64,
    least: u64,
    most: u64,
}

impl Sketch {
    /// Counts a number.
    pub fn add(&mut self, number: u64) {
        self.least = if self.n == 0 {
            number
        } else {
            self.least.min(number)
        };
        self.most = self.most.max(number);
        self.n += 1;
        self.waiting[usize::from(self.waits)] = bucket(number, FINEST);
        self.waits += 1;
        if usize::from(self.waits) == WAITING {
            self.settle();
        }
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        self.least = if self.n == 0 {
            other.least
        } else {
            self.least.min(other.least)
        };
        self.most = self.most.max(other.most);
        self.n += other.n;
        let mut other = other.clone();
        other.settle();
        self.settle();
        let coarser = self.coarser.max(other.coarser);
        other.coarsen_to(coarser);
        self.coarsen_to(coarser);
        self.buckets.append(&mut other.buckets);
        self.tidy();
    }

    /// How many numbers there were.
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// The smallest, exactly; none where there was none.
    pub fn least(&self) -> Option<u64> {
        (self.n > 0).then_some(self.least)
    }

    /// The largest, exactly; none where there was none.
    pub fn most(&self) -> Option<u64> {
        (self.n > 0).then_some(self.most)
    }

    /// The number below which, itself included, at least `permille` of a thousand lie (nearest
    /// rank), to one part in [`Self::one_part_in`]; none where there was none.
    pub fn quantile(&self, permille: u64) -> Option<u64> {
        let mut settled = self.clone();
        settled.settle();
        let rank = u128::from(self.n) * u128::from(permille.min(1_000));
        let rank = rank.div_ceil(1_000).max(1);
        let mut up_to = 0;
        let found = settled.buckets.iter().find(|(_, count)| {
            up_to += u128::from(*count);
            up_to >= rank
        });
        found.map(|(bucket, _)| middle(*bucket, settled.precision()).clamp(self.least, self.most))
    }

    /// What [`Self::quantile`] may be off by: one part in so many, and not at all for numbers below it.
    pub fn one_part_in(&self) -> u64 {
        let mut settled = self.clone();
        settled.settle();
        1 << (settled.precision() + 1)
    }

    /// Bytes of memory beside the sketch itself.
    pub fn heap(&self) -> usize {
        self.buckets.capacity() * size_of::<(u32, u32)>()
    }

    const fn precision(&self) -> u8 {
        FINEST - self.coarser
    }

    /// Sorts what waits into the buckets.
    fn settle(&mut self) {
        let precision = self.precision();
        let waiting = &self.waiting[..usize::from(self.waits)];
        let settled = waiting
            .iter()
            .map(|finest| (rebucket(*finest, FINEST, precision), 1));
        self.buckets.extend(settled);
        self.waits = 0;
        self.tidy();
    }

    /// Orders the buckets, adds up those that are the same, and makes all coarser until they are few.
    fn tidy(&mut self) {
        self.buckets.sort_unstable_by_key(|(bucket, _)| *bucket);
        self.add_up();
        while self.buckets.len() > self.room() && self.precision() > COARSEST {
            self.coarsen_to(self.coarser + 1);
        }
    }

    const fn room(&self) -> usize {
        if self.precision() > FINE { FEW } else { MANY }
    }

    fn coarsen_to(&mut self, coarser: u8) {
        let before = self.precision();
        self.coarser = coarser;
        let after = self.precision();
        for (bucket, _) in &mut self.buckets {
            *bucket = rebucket(*bucket, before, after);
        }
        self.add_up();
    }

    fn add_up(&mut self) {
        self.buckets.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
    }
}

/// The bucket of `number` where a doubling has `2^precision`: one each below that.
fn bucket(number: u64, precision: u8) -> u32 {
    let bits = u64::BITS - number.leading_zeros();
    let shift = bits.saturating_sub(u32::from(precision) + 1);
    let within = u32::try_from(number >> shift).expect("at most 27 bits");
    (shift << precision) + within
}

/// The smallest number of a bucket, and how many numbers it has.
fn bounds(bucket: u32, precision: u8) -> (u64, u64) {
    let shift = (bucket >> precision).saturating_sub(1);
    let within = u64::from(bucket - (shift << precision));
    (within << shift, 1 << shift)
}

fn middle(bucket: u32, precision: u8) -> u64 {
    let (from, width) = bounds(bucket, precision);
    from + (width >> 1)
}

/// Buckets of one precision lie within those of a lower one as a whole.
fn rebucket(finer: u32, from: u8, to: u8) -> u32 {
    bucket(bounds(finer, from).0, to)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(numbers: impl IntoIterator<Item = u64>) -> Sketch {
        let mut sketch = Sketch::default();
        numbers.into_iter().for_each(|number| sketch.add(number));
        sketch
    }

    #[test]
    fn nothing_has_no_quantile_and_few_numbers_are_exact() {
        assert_eq!(Sketch::default().quantile(500), None);
        let few = of((1..=30).map(|n| n * 1_000_003));
        assert_eq!(few.quantile(500), Some(15 * 1_000_003));
        assert_eq!(
            (few.least(), few.most()),
            (Some(1_000_003), Some(30_000_090))
        );
        assert_eq!(few.one_part_in(), 1 << 27);
    }

    #[test]
    fn round_trips_within_a_tenth_of_each_other_are_told_to_one_part_in_256() {
        let near = of((0..10_000).map(|n| 25_000_000 + n * 250));
        assert!(near.one_part_in() >= 256, "{}", near.one_part_in());
        assert!(near.heap() < 3_000, "{}", near.heap());
    }

    proptest! {
        #[test]
        fn a_quantile_is_off_by_what_is_told_at_most_and_memory_is_bounded(
            mut numbers in prop::collection::vec((0_u32..63, any::<u64>()), 1..900),
            permille in 1..=1_000_u64,
        ) {
            let numbers: Vec<u64> = numbers.drain(..).map(|(shift, number)| number >> shift).collect();
            let sketch = of(numbers.iter().copied());
            let mut sorted = numbers;
            sorted.sort_unstable();
            let rank = (sorted.len() as u64 * permille).div_ceil(1_000).max(1);
            let exact = sorted[usize::try_from(rank).expect("small") - 1];
            let told = sketch.quantile(permille).expect("some");
            let off = exact / sketch.one_part_in();
            prop_assert!(told.abs_diff(exact) <= off + 1, "{told} for {exact}");
            prop_assert_eq!(sketch.n(), sorted.len() as u64);
            prop_assert!(sketch.heap() <= 8 * 1_024, "{}", sketch.heap());
        }

        #[test]
        fn two_merged_are_one_of_all(
            a in prop::collection::vec(0_u64..100_000_000, 0..300),
            b in prop::collection::vec(0_u64..100_000_000, 0..300),
        ) {
            let mut merged = of(a.iter().copied());
            merged.merge(&of(b.iter().copied()));
            let all = of(a.into_iter().chain(b));
            prop_assert_eq!((merged.n(), merged.least(), merged.most()), (all.n(), all.least(), all.most()));
            let parts = merged.one_part_in().min(all.one_part_in());
            if let (Some(merged), Some(all)) = (merged.quantile(500), all.quantile(500)) {
                prop_assert!(merged.abs_diff(all) <= all / parts * 2 + 2);
            }
        }
    }
}
