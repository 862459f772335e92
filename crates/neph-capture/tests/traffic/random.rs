//! `SplitMix64`: the same numbers from the same seed, for ever.

#[derive(Clone)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `limit`; 0 where that is 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.next() % limit }
    }

    pub(super) fn pick(&mut self, of: u64) -> usize {
        usize::try_from(self.below(of)).expect("small")
    }

    pub(super) fn small(&mut self) -> u32 {
        u32::try_from(self.next() >> 32).expect("32 bits")
    }
}
