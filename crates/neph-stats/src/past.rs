//! What a flow measured lately, with times: for dating a change.

/// The last samples with their times.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    ring: Box<[(i64, i64)]>,
    next: usize,
    held: usize,
}

impl Past {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            ring: vec![(0, 0); size].into_boxed_slice(),
            next: 0,
            held: 0,
        }
    }

    pub(crate) fn push(&mut self, at: i64, sample: i64) {
        self.ring[self.next] = (at, sample);
        self.next = (self.next + 1) % self.ring.len();
        self.held = (self.held + 1).min(self.ring.len());
    }

    pub(crate) fn clear(&mut self) {
        (self.next, self.held) = (0, 0);
    }

    pub(crate) fn ago(&self, ago: usize) -> Option<(i64, i64)> {
        let size = self.ring.len();
        (ago < self.held).then(|| self.ring[(self.next + size - 1 - ago) % size])
    }

    pub(crate) fn newest_first(&self) -> impl Iterator<Item = (i64, i64)> {
        (0..self.held).filter_map(|ago| self.ago(ago))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room() {
        let mut past = Past::new(3);
        assert_eq!(past.ago(0), None);
        for at in 0..5 {
            past.push(at, 10 * at);
        }
        let kept: Vec<_> = past.newest_first().collect();
        assert_eq!(kept, [(4, 40), (3, 30), (2, 20)]);
        past.clear();
        assert_eq!(past.newest_first().count(), 0);
    }
}
