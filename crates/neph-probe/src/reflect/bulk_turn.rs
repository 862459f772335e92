//! The right to run a bulk transfer: one at a time, so that two never share a bottleneck.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Default)]
pub(crate) struct BulkGate(AtomicBool);

/// Gives the right back when dropped.
#[derive(Debug)]
pub(super) struct BulkTurn(Arc<BulkGate>);

impl BulkGate {
    /// The right, unless somebody has it.
    pub(super) fn take(self: &Arc<Self>) -> Option<BulkTurn> {
        let taken = self.0.swap(true, Ordering::AcqRel);
        (!taken).then(|| BulkTurn(Arc::clone(self)))
    }
}

impl Drop for BulkTurn {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let gate = Arc::new(BulkGate::default());
        let turn = gate.take().expect("nobody has it");
        assert!(gate.take().is_none());
        drop(turn);
        assert!(gate.take().is_some());
    }
}
