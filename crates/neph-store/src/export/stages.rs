//! Names of ledger entries in columns and keys.

use std::collections::BTreeSet;

use neph_model::{Experiment, Stage, StageSet};

use crate::{Store, StoreError};

/// The name of a stage in columns and keys.
pub(super) const fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Lateness => "lateness",
        Stage::Connect => "connect",
        Stage::Handshake => "handshake",
        Stage::Compose => "compose",
        Stage::SendWindow => "send_window",
        Stage::SendQueue => "send_queue",
        Stage::Network => "network",
        Stage::PeerKernel => "peer_kernel",
        Stage::PeerApp => "peer_app",
        Stage::PeerSend => "peer_send",
        Stage::OwnKernel => "own_kernel",
    }
}

/// The name of an entry: its stages joined by `+`, as in `network+peer_send`.
pub(super) fn join_names(stages: StageSet) -> String {
    stages.iter().map(name).collect::<Vec<_>>().join("+")
}

/// Every entry that occurs in these experiments, in order of time. Reads all messages once: the
/// columns must be known before the first row.
pub(super) fn find_entries(
    store: &dyn Store,
    experiments: &[Experiment],
) -> Result<Vec<StageSet>, StoreError> {
    let mut sets = BTreeSet::new();
    for experiment in experiments {
        store.visit_messages(experiment.id, &mut |batch| {
            for ledger in batch.iter().filter_map(neph_model::Message::ledger) {
                sets.extend(ledger.entries().iter().map(|entry| entry.stages));
            }
            Ok(())
        })?;
    }
    let mut entries: Vec<_> = sets.into_iter().collect();
    entries.sort_by_key(|stages| (stages.iter().next(), *stages));
    Ok(entries)
}
