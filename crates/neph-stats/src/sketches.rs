//! Quantiles of several kinds of numbers, for very many such samples: exact for few numbers, then as fine as
//! a bounded number of buckets allows.
//!
//! Owns how the buckets of a [`Precision`] are encoded and made coarser: all at once, two neighbours of a
//! doubling into one. So the relative error is known and the same for all sizes (as in `UDDSketch`, Epicoco
//! et al. 2020). All kinds share one allocation: there are very many of these, and each access to memory
//! costs more than the work. So the latest numbers are put into buckets several at a time.
//! [`Histogram`](crate::Histogram) takes a hundred times the memory.

mod buckets;
mod selection;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

pub use selection::{Layout, Selection};

use crate::precision::Precision;

/// Numbers that are kept unchanged, of all kinds together.
const MAX_EXACT: usize = 32;
/// Numbers that are put into buckets together: more buckets to visit justify more numbers. On 64 busy flows
/// watching took a fifth more time with a constant 16.
const BATCH_SIZES: RangeInclusive<usize> = 16..=128;
/// Buckets of a sketch for each number that waits to be put into them.
const BUCKETS_PER_PENDING_NUMBER: usize = 8;
/// First precision of buckets.
const FIRST_PRECISION: Precision = Precision::one_part_in(1_024);
/// Lowest precision, for any range of numbers.
const MIN_PRECISION: Precision = Precision::one_part_in(16);
/// Buckets of a kind, at most and on average, while they can be made coarser.
const MAX_MEAN_BUCKETS: usize = 256;
/// Words of a cache line.
const WORDS_OF_LINE: usize = 16;
/// Least words of an allocation.
const MIN_ROOM: usize = 16;
/// A word holds a kind, a bucket and a count, from its highest bit on.
const KIND_BITS: u32 = 4;
const COUNT_BITS: u32 = 13;
const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;
/// The largest number that is kept unchanged, as two words; larger ones are limited to it.
const MAX_EXACT_NUMBER: u64 = (1 << (64 - KIND_BITS)) - 1;

/// Counts of numbers by size for each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketches {
    /// First the exact values of each kind ([`Exact`]), then buckets, one word each, in order. Then the
    /// latest numbers unchanged, two words each, in order of arrival. While there are few, all are the
    /// latest.
    words: Vec<u32>,
    /// Counts that exceed the count of a word, by its kind and bucket.
    #[expect(clippy::box_collection, reason = "two words less in each of very many")]
    carried: Option<Box<BTreeMap<u32, u64>>>,
    /// `None` while all numbers are kept unchanged.
    precision: Option<Precision>,
    /// Kinds with exact values.
    kinds: u8,
    /// Numbers that are kept unchanged.
    latest: u8,
}

/// Words of a kind's exact values: two for each end, two for the count, two for the sum, four for the sum of
/// squares.
const EXACT_WORDS: usize = 12;

/// The exact values of one kind, at any precision of its buckets.
#[derive(Clone, Copy, Debug)]
struct Exact {
    kind: u8,
    min: u64,
    max: u64,
    /// Number of values, each once whatever its weight.
    numbers: u64,
    sum: u64,
    /// Sum of squares.
    squares: u128,
}

impl Exact {
    /// For one number that is counted this many times.
    fn of(kind: u8, number: u64, times: u64) -> Self {
        Self {
            kind,
            min: number,
            max: number,
            numbers: 1,
            sum: number.saturating_mul(times),
            squares: u128::from(number).pow(2).saturating_mul(times.into()),
        }
    }

    /// For numbers of one kind in their order, each once.
    fn of_sorted(kind: u8, numbers: impl ExactSizeIterator<Item = u64>) -> Self {
        let (count, mut min, mut max) = (numbers.len() as u64, None, 0);
        let (mut sum, mut squares) = (0_u128, 0_u128);
        for number in numbers {
            min.get_or_insert(number);
            max = number;
            sum += u128::from(number);
            squares += u128::from(number) * u128::from(number);
        }
        Self {
            kind,
            min: min.unwrap_or(0),
            max,
            numbers: count,
            sum: u64::try_from(sum).unwrap_or(u64::MAX),
            squares,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.numbers += other.numbers;
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
    }

    fn read(words: &[u32; EXACT_WORDS]) -> Self {
        let [min, max, numbers, sum, high, low] = words.as_chunks().0 else {
            unreachable!("two words each");
        };
        let ((kind, min), (_, max)) = (split_kind(joined(*min)), split_kind(joined(*max)));
        Self {
            kind,
            min,
            max,
            numbers: joined(*numbers),
            sum: joined(*sum),
            squares: u128::from(joined(*high)) << 64 | u128::from(joined(*low)),
        }
    }

    fn words(&self) -> [u32; EXACT_WORDS] {
        let half = |squares: u128| u64::try_from(squares & u128::from(u64::MAX)).unwrap_or(0);
        let numbers = [
            kind_and_number(self.kind, self.min),
            kind_and_number(self.kind, self.max),
            self.numbers,
            self.sum,
            half(self.squares >> 64),
            half(self.squares),
        ];
        let mut words = [0; EXACT_WORDS];
        for (words_of_number, number) in words.as_chunks_mut().0.iter_mut().zip(numbers) {
            *words_of_number = split(number);
        }
        words
    }
}

impl Sketches {
    /// Most kinds.
    pub const KINDS: u8 = 1 << KIND_BITS;

    /// Counts a number of a kind below [`Self::KINDS`].
    #[inline]
    pub fn add(&mut self, kind: u8, number: u64) {
        if usize::from(self.latest) >= self.most_latest() {
            self.put_into_buckets();
        }
        self.make_room(2);
        let number = kind_and_number(kind % Self::KINDS, number.min(MAX_EXACT_NUMBER));
        self.words.extend_from_slice(&split(number));
        self.latest += 1;
    }

    /// Counts a number of a kind that represents `times` numbers of its size.
    pub fn add_times(&mut self, kind: u8, number: u64, times: u64) {
        if times == 1 {
            return self.add(kind, number);
        }
        self.put_into_buckets();
        self.put_into_bucket(
            Exact::of(kind % Self::KINDS, number.min(MAX_EXACT_NUMBER), times),
            times,
        );
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        let other = &*other.settled();
        let Some(finer) = other.precision else {
            for (kind, number) in other.numbers() {
                self.add(kind, number);
            }
            return;
        };
        self.put_into_buckets();
        let precision = self.coarsen_to(finer);
        let words = &other.words[other.buckets()..];
        let relabel = |label| relabel(label, finer, precision);
        let counts = words.iter().map(|word| counted(*word));
        self.count_all(counts.map(|(label, count)| (relabel(label), count)));
        for (label, count) in other.carried.as_deref().into_iter().flatten() {
            self.count(relabel(*label), *count);
        }
        for exact in other.exact() {
            self.widen(&exact);
        }
        self.thin_out();
    }

    /// Puts the latest numbers to the others. Results are the same, but later queries need no copy.
    pub fn settle(&mut self) {
        if self.precision.is_some() && self.latest > 0 {
            self.put_into_buckets();
        }
    }

    fn settled(&self) -> Cow<'_, Self> {
        if self.precision.is_none() || self.latest == 0 {
            return Cow::Borrowed(self);
        }
        let mut settled = self.clone();
        settled.put_into_buckets();
        Cow::Owned(settled)
    }

    /// Numbers of these kinds, together; `None` where there is none. For several selections use
    /// [`Self::layout`].
    pub fn of(&self, kinds: impl IntoIterator<Item = u8>) -> Option<Selection<'static>> {
        self.layout().of(kinds).map(Selection::into_owned)
    }

    /// All numbers in a form for several selections.
    pub fn layout(&self) -> Layout {
        Layout::of_settled(&self.settled())
    }

    /// Whether there is any number of these kinds.
    pub fn has_any(&self, kinds: impl IntoIterator<Item = u8>) -> bool {
        let kinds = bits(kinds);
        let is_meant = |kind: u8| kinds >> kind & 1 != 0;
        self.exact().any(|exact| is_meant(exact.kind))
            || self.numbers().any(|(kind, _)| is_meant(kind))
    }

    /// The error of quantiles: one part in this many. Smaller numbers are exact.
    pub fn one_part_in(&self) -> u64 {
        let precision = self.settled().precision;
        precision.map_or(MAX_EXACT_NUMBER, Precision::parts)
    }

    /// A word of nearly each cache line that the next number will need, for prefetching.
    #[inline]
    pub fn soon_needed(&self) -> impl Iterator<Item = &u32> {
        let are_all = usize::from(self.latest) + 2 >= self.most_latest();
        let last = self.words.len().saturating_sub(1);
        let from = if are_all { 0 } else { last };
        self.words[from..].iter().step_by(WORDS_OF_LINE)
    }

    /// Memory in bytes without the sketches themselves.
    pub fn heap(&self) -> usize {
        let carried = self.carried.as_ref().map_or(0, |carried| carried.len());
        self.words.capacity() * size_of::<u32>() + carried * size_of::<(u32, u64)>()
    }

    /// Grows by half instead of doubling: there are very many of these.
    fn make_room(&mut self, more: usize) {
        if self.words.capacity() - self.words.len() < more {
            self.words
                .reserve_exact(MIN_ROOM.max(self.words.len() / 2).max(more));
        }
    }

    /// Numbers that are kept unchanged before they are put into buckets.
    #[inline]
    fn most_latest(&self) -> usize {
        if self.precision.is_none() {
            return MAX_EXACT;
        }
        let together = self.buckets_end() / BUCKETS_PER_PENDING_NUMBER;
        together.clamp(*BATCH_SIZES.start(), *BATCH_SIZES.end())
    }

    /// Where buckets begin.
    fn buckets(&self) -> usize {
        EXACT_WORDS * usize::from(self.kinds)
    }

    /// Where the latest numbers begin.
    fn buckets_end(&self) -> usize {
        self.words.len() - 2 * usize::from(self.latest)
    }

    /// Those that are kept unchanged.
    fn numbers(&self) -> impl Iterator<Item = (u8, u64)> {
        let latest = self.words[self.buckets_end()..].as_chunks::<2>().0;
        latest.iter().map(|words| split_kind(joined(*words)))
    }

    /// The exact values of each kind.
    fn exact(&self) -> impl Iterator<Item = Exact> {
        let exact = self.words[..self.buckets()].as_chunks().0;
        exact.iter().map(Exact::read)
    }

    /// Kind and bucket as one, and their counts; in order, except carried counts.
    fn counts(&self) -> impl Iterator<Item = (u32, u64)> {
        let words = &self.words[self.buckets()..self.buckets_end()];
        let carried = self.carried.as_deref().into_iter().flatten();
        let carried = carried.map(|(label, count)| (*label, *count));
        words.iter().map(|word| counted(*word)).chain(carried)
    }

    const fn has_carried(&self) -> bool {
        self.carried.is_some()
    }
}

/// A bit for each possible kind.
fn bits(kinds: impl IntoIterator<Item = u8>) -> u16 {
    let kinds = kinds.into_iter().filter(|kind| *kind < Sketches::KINDS);
    kinds.fold(0, |bits, kind| bits | 1 << kind)
}

/// A kind and a number as one, in the order of kinds first.
fn kind_and_number(kind: u8, number: u64) -> u64 {
    u64::from(kind) << (64 - KIND_BITS) | number
}

/// Kind and number.
fn split_kind(kind_and_number: u64) -> (u8, u64) {
    let [first, ..] = kind_and_number.to_be_bytes();
    (first >> (8 - KIND_BITS), kind_and_number & MAX_EXACT_NUMBER)
}

fn split(kind_and_number: u64) -> [u32; 2] {
    [low(kind_and_number >> 32), low(kind_and_number)]
}

fn joined([high, low]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Kind and bucket as one, and the count, of a word.
fn counted(word: u32) -> (u32, u64) {
    (word >> COUNT_BITS, u64::from(word & MAX_COUNT))
}

/// A kind and a bucket as one.
fn label(kind: u8, number: u64, precision: Precision) -> u32 {
    u32::from(kind) << (32 - KIND_BITS - COUNT_BITS) | precision.index(number)
}

/// Buckets of one precision lie completely within those of a lower one.
fn relabel(label: u32, from: Precision, to: Precision) -> u32 {
    let (kind, finer) = parts(label);
    self::label(kind, from.bucket(finer).from, to)
}

/// Kind and bucket.
fn parts(label: u32) -> (u8, u32) {
    let bits = 32 - KIND_BITS - COUNT_BITS;
    let kind = u8::try_from(label >> bits).expect("four bits");
    (kind, label & ((1 << bits) - 1))
}

fn low(kind_and_number: u64) -> u32 {
    u32::try_from(kind_and_number & u64::from(u32::MAX)).expect("32 bits")
}
