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
    /// Of sketches whose latest numbers are with the others; `kinds` are bits.
    pub(super) fn of(all: &Sketches, kinds: u16) -> Option<Self> {
        // Most kinds that are asked for are not there.
        if !all.has(kinds) {
            return None;
        }
        let is_meant = |kind: u8| kinds >> kind & 1 != 0;
        let mut sizes: Vec<(u64, u64)> = Vec::new();
        if let Some(precision) = all.precision {
            let middle = |bucket| {
                let (from, width) = bounds(bucket, precision);
                from + (width >> 1)
            };
            let of_middle = |(label, count): (u32, u64)| (middle(parts(label).1), count);
            for kind in (0..Sketches::KINDS).filter(|kind| is_meant(*kind)) {
                sizes.extend(all.counts_of(kind).map(of_middle));
            }
        } else {
            let meant = all.numbers().filter(|(kind, _)| is_meant(*kind));
            sizes.extend(meant.map(|(_, number)| (number, 1)));
        }
        sizes.sort_unstable();
        let n = sizes.iter().map(|(_, count)| count).sum();
        // Buckets tell their middles only.
        let ends = || all.ends().filter(|(kind, ..)| is_meant(*kind));
        let least = ends().map(|(_, least, _)| least).min();
        let most = ends().map(|(.., most)| most).max();
        Some(Self {
            n,
            least: least.or(Some(sizes.first()?.0))?,
            most: most.or(Some(sizes.last()?.0))?,
            sizes,
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
        // As many as there are at most.
        let rank = u64::try_from(rank.div_ceil(1_000).max(1)).unwrap_or(u64::MAX);
        let mut up_to = 0;
        let found = self.sizes.iter().find(|(_, count)| {
            up_to += count;
            up_to >= rank
        });
        found.map_or(self.most, |(size, _)| (*size).clamp(self.least, self.most))
    }
}
