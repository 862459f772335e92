//! Requests and answers of one pair whose directions travel in different VLANs or tunnels.
//!
//! Owns when two directions are joined to one pair. An answer must fit a waiting request, or QUIC packets a
//! connection seen in one direction, and no other pair may fit. The module flow does the same for TCP.

use super::{ExchangeEvent, ExchangeKey, Exchanges, HostPair};

impl ExchangeKey {
    const fn is_tagged(&self) -> bool {
        self.vlan.is_some() || self.tunnel.is_some()
    }

    const fn untagged(self) -> Self {
        Self {
            vlan: None,
            tunnel: None,
            ..self
        }
    }
}

impl Exchanges {
    /// The pair whose other direction begins with this packet.
    pub(super) fn join_mirrored(&mut self, key: &ExchangeKey, event: ExchangeEvent) -> Option<u32> {
        // True for nearly all captures.
        if self.tagged_indices.is_empty() && !key.is_tagged() {
            return None;
        }
        let untagged = key.untagged();
        let tagged_indices = self
            .tagged_indices
            .get(&untagged)
            .into_iter()
            .flatten()
            .copied();
        let candidates = tagged_indices.chain(self.indices.get(&untagged).copied());
        let is_mirrored = |index: &u32| {
            let pair = self.pairs[*index as usize].as_ref();
            pair.is_some_and(|pair| pair.is_mirrored_by(event))
        };
        let mirrored: Vec<u32> = candidates.filter(is_mirrored).take(2).collect();
        let [index] = mirrored[..] else {
            self.ambiguous_answers += u64::from(mirrored.len() > 1);
            return None;
        };
        if let Some(pair) = &mut self.pairs[index as usize] {
            pair.other = Some(Box::new(*key));
        }
        self.indices.insert(*key, index);
        Some(index)
    }

    pub(super) fn tag(&mut self, key: &ExchangeKey, index: u32) {
        if key.is_tagged() {
            self.tagged_indices
                .entry(key.untagged())
                .or_default()
                .push(index);
        }
    }

    pub(super) fn untag(&mut self, pair: &HostPair, index: u32) {
        if let Some(other) = &pair.other {
            self.indices.remove(other);
        }
        let key = pair.key();
        if key.is_tagged()
            && let Some(indices) = self.tagged_indices.get_mut(&key.untagged())
        {
            indices.retain(|other| *other != index);
            if indices.is_empty() {
                self.tagged_indices.remove(&key.untagged());
            }
        }
    }

    /// Answers that were not joined to a request, because several in other VLANs or tunnels fit.
    pub const fn ambiguous(&self) -> u64 {
        self.ambiguous_answers
    }
}
