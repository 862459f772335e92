//! A controller's history of an agent since the controller's start: policy, clock over time, last
//! orders.
//!
//! Owns its size: some kilobytes per agent. Nothing is stored on disk.

use std::collections::{BTreeMap, VecDeque};

use neph_agent::remote::{AgentClockOffset, FromAgent, OrderState, ToAgent};
use neph_model::{OrderId, Span, Wall};
use serde::{Deserialize, Serialize};

/// Time between two stored clock readings, and their maximum number.
const CLOCK_INTERVAL: Span = Span::from_secs(300);
const MAX_CLOCKS: usize = 48;
/// Maximum number of stored orders.
const MAX_ORDERS: usize = 10;

/// Offset of an agent's clock from the controller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockReading {
    /// Time of the reading, by the controller's clock.
    #[serde(rename = "at_unix_ns")]
    pub at: Wall,
    /// The offset.
    pub clock: AgentClockOffset,
}

/// Status of an order, as far as messages show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SeenState {
    /// Sent, without an answer yet.
    Sent,
    /// The agent carries it out.
    Running,
    /// It has ended; its result is not stored yet.
    Ended,
    /// It failed or was refused; that is not stored yet.
    Failed {
        /// The reason.
        reason: String,
    },
    /// Its result is stored.
    Stored,
    /// It failed or was refused; that is stored.
    StoredFailure {
        /// The reason.
        reason: String,
    },
}

/// An order in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenOrder {
    /// Its id.
    pub id: OrderId,
    /// Its kind.
    pub kind: String,
    /// Number of experiments; 1 for another order.
    pub parts: usize,
    /// When it was first sent.
    #[serde(rename = "sent_unix_ns")]
    pub sent: Wall,
    /// When its status last changed.
    #[serde(rename = "changed_unix_ns")]
    pub changed: Wall,
    /// Its status.
    pub state: SeenState,
}

/// History of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentHistory {
    /// Summary of its policy.
    pub policy: BTreeMap<String, String>,
    /// Clock readings, oldest first, one per five minutes.
    pub clocks: VecDeque<ClockReading>,
    /// Its last orders, oldest first.
    pub orders: VecDeque<SeenOrder>,
}

impl AgentHistory {
    /// Records a message to the agent.
    pub(crate) fn record_sent(&mut self, message: &ToAgent, now: Wall) {
        let ToAgent::Begin { id, grant } = message else {
            return;
        };
        if self.orders.iter().any(|order| order.id == *id) {
            return;
        }
        let Some(brief) = grant.brief() else {
            return;
        };
        while self.orders.len() >= MAX_ORDERS {
            self.orders.pop_front();
        }
        self.orders.push_back(SeenOrder {
            id: *id,
            kind: brief.kind,
            parts: brief.parts,
            sent: now,
            changed: now,
            state: SeenState::Sent,
        });
    }

    /// Records a message from the agent.
    pub(crate) fn record_received(&mut self, message: &FromAgent, now: Wall) {
        match message {
            FromAgent::Hello(hello) => self.policy.clone_from(&hello.policy),
            FromAgent::Beat(beat) => {
                let last = self.clocks.back().map(|last| last.at);
                let is_due = last.is_none_or(|last| last + CLOCK_INTERVAL <= now || now < last);
                if let Some(clock) = beat.clock.filter(|_| is_due) {
                    while self.clocks.len() >= MAX_CLOCKS {
                        self.clocks.pop_front();
                    }
                    self.clocks.push_back(ClockReading { at: now, clock });
                }
            }
            FromAgent::State { id, state } => {
                let mut orders = self.orders.iter_mut();
                if let Some(order) = orders.find(|order| order.id == *id) {
                    order.apply_state(state, now);
                }
            }
            FromAgent::Progress { .. } | FromAgent::Sample { .. } | FromAgent::Part(_) => {}
        }
    }

    /// Records that the agent was revoked: it has no results any more.
    pub(crate) fn record_revoked(&mut self, now: Wall) {
        for order in &mut self.orders {
            let is_open = matches!(
                order.state,
                SeenState::Sent | SeenState::Running | SeenState::Ended
            );
            if is_open {
                let reason = "the agent was revoked".to_owned();
                (order.state, order.changed) = (SeenState::StoredFailure { reason }, now);
            }
        }
    }
}

impl SeenOrder {
    fn apply_state(&mut self, state: &OrderState, now: Wall) {
        let state = match (state, &self.state) {
            (OrderState::Running { .. }, _) => SeenState::Running,
            (OrderState::Ended(ended), _) => {
                let failure = match &ended.result {
                    Ok(result) => result.failure(),
                    Err(error) => Some(error.to_string()),
                };
                failure.map_or(SeenState::Ended, |reason| SeenState::Failed { reason })
            }
            (OrderState::Forgotten, SeenState::Failed { reason }) => SeenState::StoredFailure {
                reason: reason.clone(),
            },
            (OrderState::Forgotten, SeenState::StoredFailure { .. }) | (OrderState::Unknown, _) => {
                return;
            }
            (OrderState::Forgotten, _) => SeenState::Stored,
        };
        if self.state != state {
            self.state = state;
            self.changed = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_agent::remote::{Beat, Ended};
    use neph_model::OrderFailed;

    use super::*;

    fn at(seconds: i64) -> Wall {
        Wall::from_unix_nanos(seconds * 1_000_000_000)
    }

    fn order(id: OrderId) -> SeenOrder {
        SeenOrder {
            id,
            kind: "traceroute".to_owned(),
            parts: 1,
            sent: at(0),
            changed: at(0),
            state: SeenState::Sent,
        }
    }

    #[test]
    fn clock_readings_are_stored_every_five_minutes_for_four_hours() {
        let mut observed = AgentHistory::default();
        for second in (0..6 * 3600).step_by(5) {
            let clock = AgentClockOffset {
                offset: Span::from_nanos(second),
                bound: Span::from_nanos(1),
            };
            let beat = Beat {
                sent: at(second),
                running: 0,
                clock: Some(clock),
                refusals: BTreeMap::new(),
            };
            observed.record_received(&FromAgent::Beat(beat), at(second));
        }
        let readings: Vec<i64> = observed
            .clocks
            .iter()
            .map(|clock_reading| clock_reading.at.unix_nanos())
            .collect();
        assert_eq!(readings.len(), MAX_CLOCKS);
        let steps = readings.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(steps.into_iter().all(|step| step == CLOCK_INTERVAL.nanos()));
    }

    #[test]
    fn the_open_orders_of_a_revoked_agent_have_failed() {
        let mut observed = AgentHistory::default();
        let stored = SeenOrder {
            state: SeenState::Stored,
            ..order(OrderId::new())
        };
        observed.orders.extend([stored, order(OrderId::new())]);
        observed.record_revoked(at(9));
        let states: Vec<_> = observed
            .orders
            .iter()
            .map(|order| (order.changed, &order.state))
            .collect();
        let reason = "the agent was revoked".to_owned();
        assert_eq!(
            states,
            [
                (at(0), &SeenState::Stored),
                (at(9), &SeenState::StoredFailure { reason })
            ]
        );
    }

    #[test]
    fn the_history_of_an_order_runs_from_sent_to_stored() {
        let id = OrderId::new();
        let mut observed = AgentHistory::default();
        observed.orders.push_back(order(id));
        let running = OrderState::Running { prepared: None };
        let failed = OrderState::Ended(Box::new(Ended {
            prepared: None,
            result: Err(OrderFailed::new("begin", "no")),
            files: Vec::new(),
        }));
        let mut states = Vec::new();
        let steps = [running.clone(), running, failed, OrderState::Forgotten];
        for (second, state) in (1..).zip(steps) {
            let other = OrderId::new();
            for id in [other, id] {
                let state = state.clone();
                observed.record_received(&FromAgent::State { id, state }, at(second));
            }
            let order = &observed.orders[0];
            states.push((order.changed, order.state.clone()));
        }
        let reason = "begin failed: no".to_owned();
        let failure = SeenState::Failed {
            reason: reason.clone(),
        };
        let expected = [
            (at(1), SeenState::Running),
            (at(1), SeenState::Running),
            (at(3), failure),
            (at(4), SeenState::StoredFailure { reason }),
        ];
        assert_eq!(states, expected);
        assert_eq!(observed.orders.len(), 1);
    }
}
