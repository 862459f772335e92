//! The traces that wait for their turn: one of each slot at most.
//!
//! Owns their order. When many paths change at once, all of them pass here between two messages: each
//! takes a few steps, however many wait. Does not own what is wanted, and why.

use std::collections::BTreeMap;

use neph_model::Slot;

use super::TraceRequest;

/// Traces in the order of their turns.
#[derive(Debug, Default)]
pub(super) struct TraceQueue {
    by_position: BTreeMap<i64, TraceRequest>,
    position_of: BTreeMap<Slot, i64>,
}

impl TraceQueue {
    /// Has its turn before all others, in the place of what its slot waited for.
    pub(super) fn push_front(&mut self, request: TraceRequest) {
        let first = self.by_position.first_key_value();
        let position = first.map_or(0, |(position, _)| *position - 1);
        self.insert(position, request);
    }

    /// Has its turn after all others, in the place of what its slot waited for.
    pub(super) fn push_back(&mut self, request: TraceRequest) {
        let last = self.by_position.last_key_value();
        let position = last.map_or(0, |(position, _)| *position + 1);
        self.insert(position, request);
    }

    fn insert(&mut self, position: i64, request: TraceRequest) {
        self.take(request.slot);
        self.position_of.insert(request.slot, position);
        self.by_position.insert(position, request);
    }

    /// Whose turn it is.
    pub(super) fn pop_front(&mut self) -> Option<TraceRequest> {
        let (_, request) = self.by_position.pop_first()?;
        self.position_of.remove(&request.slot);
        Some(request)
    }

    /// What a slot waits for.
    pub(super) fn get(&self, slot: Slot) -> Option<&TraceRequest> {
        self.by_position.get(self.position_of.get(&slot)?)
    }

    /// What a slot waits for, which it does not any more.
    pub(super) fn take(&mut self, slot: Slot) -> Option<TraceRequest> {
        let position = self.position_of.remove(&slot)?;
        self.by_position.remove(&position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slots and ports in the order of their turns.
    fn order(mut queue: TraceQueue) -> Vec<(u32, u16)> {
        let requests = std::iter::from_fn(|| queue.pop_front());
        requests
            .map(|request| (request.slot.0, request.port))
            .collect()
    }

    #[test]
    fn each_slot_waits_once_and_front_requests_are_served_first() {
        let request = |slot, port| TraceRequest::new(Slot(slot), port);
        let mut queue = TraceQueue::default();
        (0..4).for_each(|slot| queue.push_back(request(slot, 1)));
        queue.push_front(request(2, 2));
        queue.push_front(request(3, 3));
        queue.push_back(request(0, 4));
        assert_eq!(
            queue
                .get(Slot(2))
                .map(|waiting_request| waiting_request.port),
            Some(2)
        );
        assert_eq!(
            queue
                .take(Slot(1))
                .map(|waiting_request| waiting_request.port),
            Some(1)
        );
        assert!(queue.get(Slot(1)).is_none() && queue.take(Slot(1)).is_none());
        assert_eq!(order(queue), [(3, 3), (2, 2), (0, 4)]);
    }

    #[test]
    fn path_changes_of_all_flows_leave_one_queued_trace_per_slot() {
        let mut queue = TraceQueue::default();
        for port in 0..4 {
            for slot in 0..50_000 {
                queue.push_front(TraceRequest::new(Slot(slot), port));
            }
        }
        let order = order(queue);
        assert_eq!(order.len(), 50_000);
        assert!(order.is_sorted_by_key(|(slot, _)| std::cmp::Reverse(*slot)));
        assert!(order.iter().all(|(_, port)| *port == 3));
    }
}
