//! Quantiles of several kinds of numbers among very many such samples: exact while there are few
//! numbers, then as fine as a bounded number of buckets allows.
//!
//! Owns the buckets and how they are made coarser: all at once, each two of a doubling into one, so
//! that the relative error is the same everywhere and known (as in `UDDSketch`, Epicoco et al. 2020).
//! All kinds lie in one piece of memory: there are very many of these, and each piece that is looked
//! at costs more than the looking. [`Histogram`](crate::Histogram) takes a hundred times the memory.

mod selection;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use selection::Selection;

/// Numbers that are kept as they are, of all kinds together.
const EXACT: usize = 32;
/// Buckets of a doubling at first, as a power of two: to one part in 256.
const FINE: u8 = 7;
/// No coarser than this, however far apart numbers are: to one part in 16.
const COARSEST: u8 = 3;
/// Buckets of a kind, at most and on average, while they can be made coarser.
const MANY: usize = 256;
/// Words that memory is asked for at least.
const LEAST_ROOM: usize = 8;
/// A word holds a kind, a bucket and a count, from its highest bit on.
const KIND_BITS: u32 = 4;
const COUNT_BITS: u32 = 15;
const COUNT_MOST: u32 = (1 << COUNT_BITS) - 1;
/// The largest number that is kept as it is, as two words; larger ones are taken for it.
const LARGEST: u64 = (1 << (64 - KIND_BITS)) - 1;

/// How many numbers of which size there were of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketches {
    /// While there are few: numbers, two words each, in the order of their coming. Then the exact
    /// ends of each kind, least and most, two words each; and behind them buckets, a word each, in
    /// their order.
    words: Vec<u32>,
    /// What had no room in the count of a word, by its kind and bucket.
    carried: BTreeMap<u32, u64>,
    /// Buckets of a doubling, as a power of two; none while numbers are kept as they are.
    precision: Option<u8>,
    /// Kinds whose ends are there.
    kinds: u8,
}

/// Words that the ends of a kind take.
const ENDS: usize = 4;

impl Sketches {
    /// Kinds that there can be.
    pub const KINDS: u8 = 1 << KIND_BITS;

    /// Counts a number of a kind below [`Self::KINDS`].
    pub fn add(&mut self, kind: u8, number: u64) {
        let (kind, number) = (kind % Self::KINDS, number.min(LARGEST));
        if self.precision.is_none() && self.words.len() < 2 * EXACT {
            return self.keep(kind, number);
        }
        let precision = self.settle();
        let at = self.count(label(kind, number, precision), 1);
        if self.is_at_an_end(at) {
            self.widen(kind, number, number);
        }
        self.tidy();
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        let Some(finer) = other.precision else {
            for (kind, number) in other.numbers() {
                self.add(kind, number);
            }
            return;
        };
        self.settle();
        let precision = self.coarsen_to(finer);
        self.add_in_order(other, finer, precision);
        for (label, count) in &other.carried {
            self.count(relabel(*label, finer, precision), *count);
        }
        for (kind, least, most) in other.ends() {
            self.widen(kind, least, most);
        }
        self.tidy();
    }

    /// Adds the buckets of another, which are as fine as these or finer: both are in order, so that one
    /// walk over both is enough.
    fn add_in_order(&mut self, other: &Self, from: u8, to: u8) {
        let buckets = self.buckets();
        let (own, theirs) = (
            self.words.split_off(buckets),
            &other.words[other.buckets()..],
        );
        self.make_room(own.len() + theirs.len());
        let mut own = own.into_iter().peekable();
        for word in theirs {
            let label = relabel(word >> COUNT_BITS, from, to);
            while let Some(before) = own.next_if(|own| own >> COUNT_BITS <= label) {
                self.words.push(before);
            }
            self.append(label, u64::from(word & COUNT_MOST));
        }
        self.words.extend(own);
    }

    /// Numbers of these kinds, together; `None` where there is none.
    pub fn of(&self, kinds: &[u8]) -> Option<Selection> {
        Selection::of(self, kinds)
    }

    /// What quantiles may be off by: one part in so many, and not at all for numbers below it.
    pub fn one_part_in(&self) -> u64 {
        self.precision
            .map_or(LARGEST, |precision| 1 << (precision + 1))
    }

    /// Reads what the next number will need first.
    pub fn fetch(&self) -> u64 {
        let (first, middle) = (self.words.first(), self.words.get(self.words.len() / 2));
        u64::from(first.copied().unwrap_or(0) ^ middle.copied().unwrap_or(0))
    }

    /// Bytes of memory beside the sketches themselves.
    pub fn heap(&self) -> usize {
        self.words.capacity() * size_of::<u32>() + self.carried.len() * size_of::<(u32, u64)>()
    }

    /// Keeps a number as it is.
    fn keep(&mut self, kind: u8, number: u64) {
        self.make_room(2);
        self.words.extend(whole(kind, number));
    }

    /// By half of what there is instead of all of it: there are very many of these.
    fn make_room(&mut self, more: usize) {
        if self.words.capacity() - self.words.len() < more {
            self.words
                .reserve_exact(LEAST_ROOM.max(self.words.len() / 2).max(more));
        }
    }

    /// Where buckets begin.
    fn buckets(&self) -> usize {
        ENDS * usize::from(self.kinds)
    }

    /// Those that are kept as they are.
    fn numbers(&self) -> impl Iterator<Item = (u8, u64)> {
        let kept = if self.precision.is_none() {
            &self.words[..]
        } else {
            &[]
        };
        kept.as_chunks::<2>().0.iter().map(|words| apart(*words))
    }

    /// Least and most of each kind.
    fn ends(&self) -> impl Iterator<Item = (u8, u64, u64)> {
        let ends = self.words[..self.buckets()].as_chunks::<ENDS>().0;
        ends.iter().map(|[a, b, c, d]| {
            let ((kind, least), (_, most)) = (apart([*a, *b]), apart([*c, *d]));
            (kind, least, most)
        })
    }

    /// Kind and bucket as one, and how many there are of them.
    fn counts(&self) -> impl Iterator<Item = (u32, u64)> {
        let words = match self.precision {
            Some(_) => &self.words[self.buckets()..],
            None => &[],
        };
        let counted = words
            .iter()
            .map(|word| (word >> COUNT_BITS, u64::from(word & COUNT_MOST)));
        counted.chain(self.carried.iter().map(|(label, count)| (*label, *count)))
    }

    /// Sorts numbers that were kept as they are into buckets; tells how fine these are.
    fn settle(&mut self) -> u8 {
        if let Some(precision) = self.precision {
            return precision;
        }
        let numbers: Vec<_> = self.numbers().collect();
        *self = Self {
            words: Vec::with_capacity(numbers.len() + numbers.len() / 2),
            precision: Some(FINE),
            ..Self::default()
        };
        for (kind, number) in numbers {
            self.count(label(kind, number, FINE), 1);
            self.widen(kind, number, number);
        }
        FINE
    }

    /// Adds to the count of the last bucket, or of a new one behind it.
    fn append(&mut self, label: u32, more: u64) {
        let last = self.words[self.buckets()..].last();
        if last.is_none_or(|last| last >> COUNT_BITS != label) {
            self.make_room(1);
            self.words.push(label << COUNT_BITS);
        }
        self.raise(self.words.len() - 1, more);
    }

    /// Adds to the count of a kind's bucket; tells where its word is.
    fn count(&mut self, label: u32, more: u64) -> usize {
        let buckets = self.buckets();
        let at = buckets + self.words[buckets..].partition_point(|word| word >> COUNT_BITS < label);
        let is_there = self
            .words
            .get(at)
            .is_some_and(|word| word >> COUNT_BITS == label);
        if !is_there {
            self.make_room(1);
            self.words.insert(at, label << COUNT_BITS);
        }
        self.raise(at, more);
        at
    }

    /// Adds to the count of the bucket at a place.
    fn raise(&mut self, at: usize, more: u64) {
        let word = &mut self.words[at];
        let label = *word >> COUNT_BITS;
        let count = u64::from(*word & COUNT_MOST).saturating_add(more);
        match u32::try_from(count) {
            Ok(count) if count <= COUNT_MOST => *word = label << COUNT_BITS | count,
            // One stays, so that no word tells of nothing.
            _ => {
                *word = label << COUNT_BITS | 1;
                let before = self.carried.entry(label).or_default();
                *before = before.saturating_add(count - 1);
            }
        }
    }

    /// Whether a word is the first or last of its kind: only there ends can move.
    fn is_at_an_end(&self, at: usize) -> bool {
        let kind = |at: usize| self.words.get(at).map(|word| word >> (32 - KIND_BITS));
        let own = kind(at);
        at == self.buckets() || kind(at - 1) != own || kind(at + 1) != own
    }

    fn widen(&mut self, kind: u8, least: u64, most: u64) {
        let buckets = self.buckets();
        for ends in self.words[..buckets].as_chunks_mut::<ENDS>().0 {
            let [a, b, c, d] = *ends;
            let ((known, low), (_, high)) = (apart([a, b]), apart([c, d]));
            if known == kind {
                let ([a, b], [c, d]) = (whole(kind, low.min(least)), whole(kind, high.max(most)));
                *ends = [a, b, c, d];
                return;
            }
        }
        self.make_room(ENDS);
        let ends = whole(kind, least).into_iter().chain(whole(kind, most));
        self.words.splice(buckets..buckets, ends);
        self.kinds += 1;
    }

    /// Makes buckets coarser until they are few enough.
    fn tidy(&mut self) {
        let many = MANY * usize::from(self.kinds);
        while self.words.len() - self.buckets() > many {
            let Some(precision) = self.precision.filter(|fine| *fine > COARSEST) else {
                return;
            };
            self.coarsen_to(precision - 1);
        }
    }

    /// Buckets of a lower precision, unless they are that already; tells how fine they are then.
    fn coarsen_to(&mut self, precision: u8) -> u8 {
        let before = self.settle();
        if precision >= before {
            return before;
        }
        let finer: Vec<_> = self.counts().collect();
        self.precision = Some(precision);
        self.words.truncate(self.buckets());
        self.carried.clear();
        for (label, count) in finer {
            self.count(relabel(label, before, precision), count);
        }
        precision
    }
}

/// A kind and a number as two words.
fn whole(kind: u8, number: u64) -> [u32; 2] {
    let whole = u64::from(kind) << (64 - KIND_BITS) | number;
    [low(whole >> 32), low(whole)]
}

/// Kind and number of two words.
fn apart([high, low]: [u32; 2]) -> (u8, u64) {
    let whole = u64::from(high) << 32 | u64::from(low);
    let [first, ..] = whole.to_be_bytes();
    (first >> (8 - KIND_BITS), whole & LARGEST)
}

/// A kind and a bucket as one.
fn label(kind: u8, number: u64, precision: u8) -> u32 {
    u32::from(kind) << (32 - KIND_BITS - COUNT_BITS) | bucket(number, precision)
}

/// Buckets of one precision lie within those of a lower one as a whole.
fn relabel(label: u32, from: u8, to: u8) -> u32 {
    let (kind, finer) = parts(label);
    self::label(kind, bounds(finer, from).0, to)
}

/// Kind and bucket.
fn parts(label: u32) -> (u8, u32) {
    let bits = 32 - KIND_BITS - COUNT_BITS;
    let kind = u8::try_from(label >> bits).expect("four bits");
    (kind, label & ((1 << bits) - 1))
}

/// The bucket of `number` where a doubling has `2^precision`: one each below that.
fn bucket(number: u64, precision: u8) -> u32 {
    let bits = u64::BITS - number.leading_zeros();
    let shift = bits.saturating_sub(u32::from(precision) + 1);
    (shift << precision) + low(number >> shift)
}

/// The smallest number of a bucket, and how many numbers it has.
fn bounds(bucket: u32, precision: u8) -> (u64, u64) {
    let shift = (bucket >> precision).saturating_sub(1);
    let within = u64::from(bucket - (shift << precision));
    (within << shift, 1 << shift)
}

fn low(whole: u64) -> u32 {
    u32::try_from(whole & u64::from(u32::MAX)).expect("32 bits")
}
