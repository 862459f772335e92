//! Numbers by kind and size, for quantiles of some of the kinds.

use std::borrow::Cow;
use std::ops::Range;

use super::{Exact, Sketches, bits, kind_and_number, parts, split_kind};

/// Numbers of all kinds in a form for several selections.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Sizes and their counts: kinds in order, and the sizes of each in order.
    sizes: Vec<(u64, u64)>,
    kinds: Vec<OfKind>,
}

/// The range of a kind's numbers, and its exact values: buckets have only their middles.
#[derive(Clone, Debug)]
struct OfKind {
    sizes: Range<usize>,
    n: u64,
    exact: Exact,
}

impl Layout {
    /// From sketches whose latest numbers are with the others.
    pub(super) fn of_settled(sketches: &Sketches) -> Self {
        let Some(precision) = sketches.precision else {
            return Self::of_numbers(sketches);
        };
        let counts = sketches.counts().map(|(label, count)| {
            let (kind, index) = parts(label);
            (
                kind_and_number(kind, precision.bucket(index).middle()),
                count,
            )
        });
        let mut sizes: Vec<(u64, u64)> = counts.collect();
        if sketches.has_carried() {
            sizes.sort_unstable();
        }
        let mut layout = Self::of_sorted(sizes);
        for exact in sketches.exact() {
            if let Some(of) = (layout.kinds.iter_mut()).find(|of| of.exact.kind == exact.kind) {
                of.exact = exact;
            }
        }
        layout
    }

    fn of_numbers(sketches: &Sketches) -> Self {
        let numbers = sketches.numbers();
        let sizes = numbers.map(|(kind, number)| (kind_and_number(kind, number), 1));
        let mut sizes: Vec<(u64, u64)> = sizes.collect();
        sizes.sort_unstable();
        Self::of_sorted(sizes)
    }

    /// From kinds and numbers as one, ascending, with their counts.
    fn of_sorted(mut sizes: Vec<(u64, u64)>) -> Self {
        let mut kinds: Vec<OfKind> = Vec::new();
        for (index, (size, count)) in sizes.iter_mut().enumerate() {
            let (kind, number) = split_kind(*size);
            *size = number;
            let exact = Exact {
                numbers: *count,
                ..Exact::of(kind, number, *count)
            };
            match kinds.last_mut().filter(|last| last.exact.kind == kind) {
                Some(last) => {
                    last.sizes.end = index + 1;
                    last.exact.merge(&exact);
                    last.n += *count;
                }
                None => kinds.push(OfKind {
                    sizes: index..index + 1,
                    n: *count,
                    exact,
                }),
            }
        }
        Self { sizes, kinds }
    }

    /// Numbers of these kinds, together; `None` where there is none.
    pub fn of(&self, kinds: impl IntoIterator<Item = u8>) -> Option<Selection<'_>> {
        let kinds = bits(kinds);
        let is_meant = |of: &&OfKind| kinds >> of.exact.kind & 1 != 0;
        let mut meant = self.kinds.iter().filter(is_meant);
        let first = meant.next()?;
        let mut sizes = Cow::Borrowed(&self.sizes[first.sizes.clone()]);
        let (mut n, mut exact) = (first.n, first.exact);
        for more in meant {
            sizes = Cow::Owned(merged(&sizes, &self.sizes[more.sizes.clone()]));
            n += more.n;
            exact.merge(&more.exact);
        }
        Some(Selection {
            sizes,
            n,
            numbers: exact.numbers,
            min: exact.min,
            max: exact.max,
            sum: exact.sum,
            squares: exact.squares,
        })
    }
}

/// Merges two sorted lists: sorting them together takes several times as long.
fn merged<'a>(mut left: &'a [(u64, u64)], mut right: &'a [(u64, u64)]) -> Vec<(u64, u64)> {
    let mut pairs = Vec::with_capacity(left.len() + right.len());
    while let (Some(first), Some(second)) = (left.first(), right.first()) {
        let next = if first <= second {
            &mut left
        } else {
            &mut right
        };
        if let Some((min, rest)) = next.split_first() {
            pairs.push(*min);
            *next = rest;
        }
    }
    pairs.extend_from_slice(left);
    pairs.extend_from_slice(right);
    pairs
}

/// Numbers in the order of their size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection<'a> {
    /// Sizes and their counts.
    sizes: Cow<'a, [(u64, u64)]>,
    n: u64,
    numbers: u64,
    min: u64,
    max: u64,
    sum: u64,
    /// Sum of squares.
    squares: u128,
}

impl Selection<'_> {
    pub(super) fn into_owned(self) -> Selection<'static> {
        Selection {
            sizes: Cow::Owned(self.sizes.into_owned()),
            n: self.n,
            numbers: self.numbers,
            min: self.min,
            max: self.max,
            sum: self.sum,
            squares: self.squares,
        }
    }

    /// The mean, exactly, rounded down.
    pub fn mean(&self) -> u64 {
        self.sum / self.n.max(1)
    }

    /// Standard deviation of the population (not the estimate from a sample), rounded down; `None` on
    /// overflow of the squares.
    pub fn deviation(&self) -> Option<u64> {
        if self.min == self.max {
            return Some(0);
        }
        let (n, sum) = (u128::from(self.n.max(1)), u128::from(self.sum));
        let spread = n
            .checked_mul(self.squares)?
            .checked_sub(sum.checked_mul(sum)?)?;
        let variance = spread / (n * n);
        // A root of 64 bits takes a tenth of the time.
        u64::try_from(variance).map_or_else(
            |_| u64::try_from(variance.isqrt()).ok(),
            |variance| Some(variance.isqrt()),
        )
    }

    /// Number of values with their weights.
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Number of values, each once.
    pub const fn numbers(&self) -> u64 {
        self.numbers
    }

    /// The smallest, exactly.
    pub const fn min(&self) -> u64 {
        self.min
    }

    /// The largest, exactly.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The number at or below which at least `permille` of a thousand lie (nearest rank), to one part in
    /// [`Sketches::one_part_in`].
    pub fn quantile(&self, permille: u64) -> u64 {
        let rank = u128::from(self.n) * u128::from(permille.min(1_000));
        // At most their number.
        let rank = u64::try_from(rank.div_ceil(1_000).max(1)).unwrap_or(u64::MAX);
        let mut up_to = 0;
        let reached = self.sizes.iter().find(|(_, count)| {
            up_to += count;
            up_to >= rank
        });
        reached.map_or(self.max, |(size, _)| (*size).clamp(self.min, self.max))
    }
}
