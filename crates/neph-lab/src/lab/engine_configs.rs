//! What the engine of each link is started with: its part of the memory for receive rings, its record.

use std::sync::Arc;

use neph_sys::ring::BLOCK_BYTES;

use super::{UpOptions, link_seed};
use crate::cue::Cue;
use crate::engine::{EngineConfig, TruthConfig};
use crate::links::LinkKind;
use crate::topology::Topology;
use crate::truth::TruthThread;

/// Bytes that all receive rings of a lab share, and what none is smaller than: a block, 512 frames.
const TOTAL_RING_BYTES: usize = 128 << 20;
const MIN_RING_BYTES: usize = 1 << 20;

/// What all engines of a lab have in common.
#[derive(Clone, Copy)]
pub(super) struct EngineConfigs<'a> {
    pub(super) topology: &'a Topology,
    pub(super) options: &'a UpOptions,
    /// The moment that they count from.
    pub(super) cue: &'a Arc<Cue>,
    /// Who writes their records.
    pub(super) truth_thread: Option<&'a TruthThread>,
}

impl EngineConfigs<'_> {
    /// Of the link with this index; none where it has no engine.
    pub(super) fn config(self, kind: &dyn LinkKind, link_index: usize) -> Option<EngineConfig> {
        let links = &self.topology.links;
        let link = &links[link_index];
        let mut resources = self.options.resources;
        resources.ring_blocks = resources.ring_blocks.min(ring_blocks(links.len()));
        let recording = self.options.truth.as_ref();
        let truth = recording
            .zip(self.truth_thread)
            .map(|(recording, truth_thread)| TruthConfig {
                path: recording.file(&link.name),
                every: recording.every,
                truth_thread: truth_thread.clone(),
            });
        Some(EngineConfig {
            link: link.name.clone(),
            interfaces: kind.engine_ends(link_index)?,
            shapes: [link.a_to_b.clone(), link.b_to_a.clone()],
            schedule: link.schedule.clone(),
            cue: Arc::clone(self.cue),
            seed: link_seed(self.options.seed, link_index),
            resources,
            truth,
        })
    }
}

/// The most blocks of a ring where so many links share the budget, two rings each.
fn ring_blocks(links: usize) -> usize {
    (TOTAL_RING_BYTES / (2 * links.max(1))).max(MIN_RING_BYTES) / BLOCK_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rings_of_up_to_64_links_stay_within_their_budget() {
        for links in 1..=64 {
            let total = 2 * links * ring_blocks(links) * BLOCK_BYTES;
            assert!(total <= TOTAL_RING_BYTES, "{links} links: {total} bytes");
            assert!(total > TOTAL_RING_BYTES / 2, "{links} links: {total} bytes");
        }
        assert_eq!(ring_blocks(1_000) * BLOCK_BYTES, MIN_RING_BYTES);
    }
}
