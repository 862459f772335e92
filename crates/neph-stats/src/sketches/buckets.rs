//! How numbers are put into the buckets of sketches, and how these are made coarser.
//!
//! While buckets change, there are no latest numbers after them.

use crate::precision::Precision;

use super::{
    BATCH_SIZES, COUNT_BITS, EXACT_WORDS, Exact, FIRST_PRECISION, MAX_COUNT, MAX_MEAN_BUCKETS,
    MIN_PRECISION, Sketches, bits, counted, joined, label, relabel, split_kind,
};

impl Sketches {
    /// Puts the latest numbers into buckets, with the same result as one at a time.
    pub(super) fn put_into_buckets(&mut self) {
        let precision = *self.precision.get_or_insert(FIRST_PRECISION);
        let mut latest = [0; *BATCH_SIZES.end()];
        let latest = &mut latest[..usize::from(self.latest)];
        let end = self.buckets_end();
        let words = self.words[end..].as_chunks().0;
        for (number, words) in latest.iter_mut().zip(words) {
            *number = joined(*words);
        }
        self.words.truncate(end);
        self.latest = 0;
        // The limit of buckets depends on the kinds. If one of these is of a new kind, and buckets may become
        // too many, the order matters.
        let at_most = end - self.buckets() + latest.len();
        if at_most > MAX_MEAN_BUCKETS * usize::from(self.kinds.max(1)) && self.has_new_kind(latest)
        {
            return latest.iter().for_each(|number| {
                let (kind, number) = split_kind(*number);
                self.put_into_bucket(Exact::of(kind, number, 1), 1);
            });
        }
        latest.sort_unstable();
        let labels = latest.iter().map(|number| {
            let (kind, number) = split_kind(*number);
            (label(kind, number, precision), 1)
        });
        self.count_all(labels);
        for same in latest.chunk_by(|number, next| split_kind(*number).0 == split_kind(*next).0) {
            let (kind, _) = split_kind(same[0]);
            let exact = Exact::of_sorted(kind, same.iter().map(|number| split_kind(*number).1));
            self.widen(&exact);
        }
        self.thin_out();
    }

    /// Whether any of these numbers is of a new kind.
    fn has_new_kind(&self, numbers: &[u64]) -> bool {
        let known = bits(self.exact().map(|exact| exact.kind));
        bits(numbers.iter().map(|number| split_kind(*number).0)) & !known != 0
    }

    /// Puts one number into its bucket, counted this many times.
    pub(super) fn put_into_bucket(&mut self, exact: Exact, times: u64) {
        let precision = self.precision.unwrap_or(FIRST_PRECISION);
        self.count(label(exact.kind, exact.min, precision), times);
        self.widen(&exact);
        self.thin_out();
    }

    /// Adds to the counts of buckets, which come in their order.
    pub(super) fn count_all(&mut self, counts: impl Iterator<Item = (u32, u64)>) {
        let mut at = self.buckets();
        for (label, more) in counts {
            at = self.seek(at, label);
            let word = self.words.get(at);
            if word.is_none_or(|word| word >> COUNT_BITS != label) {
                self.make_room(1);
                self.words.insert(at, label << COUNT_BITS);
            }
            self.raise(at, more);
        }
    }

    /// The place of the first bucket from a place on that is not before `label`: most are near.
    fn seek(&self, mut from: usize, label: u32) -> usize {
        let is_before = |word: &u32| word >> COUNT_BITS < label;
        let mut step = 1;
        while self.words.get(from + step).is_some_and(is_before) {
            from += step;
            step *= 2;
        }
        let near = &self.words[from..self.words.len().min(from + step)];
        from + near.partition_point(is_before)
    }

    /// Adds to the count of a kind's bucket.
    pub(super) fn count(&mut self, label: u32, more: u64) {
        self.count_all(std::iter::once((label, more)));
    }

    /// Adds to the count of the bucket at a place.
    fn raise(&mut self, at: usize, more: u64) {
        let word = &mut self.words[at];
        let label = *word >> COUNT_BITS;
        let count = u64::from(*word & MAX_COUNT).saturating_add(more);
        match u32::try_from(count) {
            Ok(count) if count <= MAX_COUNT => *word = label << COUNT_BITS | count,
            // One stays, so that no word has a count of 0.
            _ => {
                *word = label << COUNT_BITS | 1;
                let carried = self.carried.get_or_insert_default();
                let before = carried.entry(label).or_default();
                *before = before.saturating_add(count - 1);
            }
        }
    }

    /// Adds to the exact values of a kind.
    pub(super) fn widen(&mut self, more: &Exact) {
        let buckets = self.buckets();
        for words in self.words[..buckets].as_chunks_mut::<EXACT_WORDS>().0 {
            let mut known = Exact::read(words);
            if known.kind == more.kind {
                known.merge(more);
                *words = known.words();
                return;
            }
        }
        self.make_room(EXACT_WORDS);
        self.words.splice(buckets..buckets, more.words());
        self.kinds += 1;
    }

    /// Makes buckets coarser until they are few enough.
    pub(super) fn thin_out(&mut self) {
        let max_buckets = MAX_MEAN_BUCKETS * usize::from(self.kinds);
        while self.words.len() - self.buckets() > max_buckets {
            let Some(coarser) = self.precision.and_then(|fine| fine.coarser(MIN_PRECISION)) else {
                return;
            };
            self.coarsen_to(coarser);
        }
    }

    /// Reduces buckets to a lower precision, unless they have it already. Returns their precision.
    pub(super) fn coarsen_to(&mut self, precision: Precision) -> Precision {
        let before = self.precision.unwrap_or(FIRST_PRECISION);
        if precision >= before {
            return before;
        }
        let finer = self.words.split_off(self.buckets());
        let carried = std::mem::take(&mut self.carried);
        self.precision = Some(precision);
        let finer = finer.into_iter().map(counted);
        self.count_all(finer.map(|(label, count)| (relabel(label, before, precision), count)));
        for (label, count) in carried.into_iter().flat_map(|carried| *carried) {
            self.count(relabel(label, before, precision), count);
        }
        precision
    }
}
