//! Numbers of some of the kinds, laid out by size to be asked for quantiles.

use super::{Sketches, bounds, parts};

/// Numbers in the order of their size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Size and how many there are of it.
    sizes: Vec<(u64, u64)>,
    n: u64,
    least: u64,
    most: u64,
}

impl Selection {
    pub(super) fn of(all: &Sketches, kinds: &[u8]) -> Option<Self> {
        let exact = all
            .numbers()
            .filter_map(|(kind, number)| kinds.contains(&kind).then_some((number, 1)));
        let counted = all.counts().filter_map(|(label, count)| {
            let (kind, bucket) = parts(label);
            let (from, width) = bounds(bucket, all.precision?);
            kinds
                .contains(&kind)
                .then_some((from + (width >> 1), count))
        });
        let mut sizes: Vec<_> = exact.chain(counted).collect();
        sizes.sort_unstable();
        let n = sizes.iter().map(|(_, count)| count).sum();
        let (mut least, mut most) = (sizes.first()?.0, sizes.last()?.0);
        // Buckets tell their middles only.
        let ends = || all.ends().filter(|(kind, ..)| kinds.contains(kind));
        if let Some((lower, upper)) = ends()
            .map(|(_, least, _)| least)
            .min()
            .zip(ends().map(|(.., most)| most).max())
        {
            (least, most) = (lower, upper);
        }
        Some(Self {
            sizes,
            n,
            least,
            most,
        })
    }

    /// How many numbers there are.
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// The smallest, exactly.
    pub const fn least(&self) -> u64 {
        self.least
    }

    /// The largest, exactly.
    pub const fn most(&self) -> u64 {
        self.most
    }

    /// The number below which, itself included, at least `permille` of a thousand lie (nearest
    /// rank), to one part in [`Sketches::one_part_in`].
    pub fn quantile(&self, permille: u64) -> u64 {
        let rank = u128::from(self.n) * u128::from(permille.min(1_000));
        let rank = rank.div_ceil(1_000).max(1);
        let mut up_to = 0;
        let found = self.sizes.iter().find(|(_, count)| {
            up_to += u128::from(*count);
            up_to >= rank
        });
        found.map_or(self.most, |(size, _)| (*size).clamp(self.least, self.most))
    }
}
