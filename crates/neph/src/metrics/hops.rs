//! Metrics of `neph hops` while live points record: delays and alarms by segment and direction. The
//! evaluating thread writes them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use neph_capture::Direction;
use neph_capture::path::alarms::SegmentChange;
use neph_export::{Histogram, Metric, MetricSource, Value};

use super::definitions::live::{HOPS_ALARM_ACTIVE, HOPS_ALARMS_RAISED, HOPS_DELAY};

/// A segment and a direction.
type SegmentDirection = (String, &'static str);

/// The state of an alarm.
#[derive(Clone, Copy, Debug, Default)]
struct AlarmState {
    is_raised: bool,
    raise_count: u64,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    delays: BTreeMap<SegmentDirection, Histogram>,
    alarms: BTreeMap<(SegmentDirection, String), AlarmState>,
}

/// The metrics of live points; clones share the same values.
#[derive(Clone, Debug, Default)]
pub(crate) struct HopsMetrics(Arc<Mutex<Counts>>);

impl HopsMetrics {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the delay of a packet.
    pub(crate) fn add_delay(&self, segment: &str, direction: Direction, delay_ns: i64) {
        let segment_direction = (segment.to_owned(), direction.name());
        let delay_ns = u64::try_from(delay_ns).unwrap_or(0);
        self.lock()
            .delays
            .entry(segment_direction)
            .or_default()
            .add(delay_ns, 1);
    }

    /// Adds the start or the end of an alarm.
    pub(crate) fn add_alarm(&self, alarm: &SegmentChange) {
        let segment_direction = (alarm.segment.clone(), alarm.direction.name());
        let mut counts = self.lock();
        let state = counts
            .alarms
            .entry((segment_direction, alarm.change.rule.clone()));
        let state = state.or_default();
        state.is_raised = alarm.change.is_raised;
        state.raise_count += u64::from(alarm.change.is_raised);
    }
}

impl MetricSource for HopsMetrics {
    fn snapshot(&self) -> Vec<Metric> {
        let counts = self.lock().clone();
        let [mut delay, mut alarm, mut alarms] =
            [&HOPS_DELAY, &HOPS_ALARM_ACTIVE, &HOPS_ALARMS_RAISED].map(Metric::new);
        for ((segment, direction), histogram) in &counts.delays {
            let value = Value::Histogram(Box::new(histogram.clone()));
            delay.add(&[segment, direction], value);
        }
        for (((segment, direction), rule), state) in &counts.alarms {
            let labels = [segment, *direction, rule];
            alarm.add(&labels, Value::Count(state.is_raised.into()));
            alarms.add(&labels, Value::Count(state.raise_count));
        }
        vec![delay, alarm, alarms]
    }
}

#[cfg(test)]
mod tests {
    use neph_export::Page;
    use neph_model::alarm::Change;
    use neph_model::{Span, Wall};

    use super::*;

    #[test]
    fn delays_and_alarms_have_segment_and_direction() {
        let metrics = HopsMetrics::default();
        metrics.add_delay("a - b", Direction::Forward, 2_000_000);
        for is_raised in [true, false, true] {
            metrics.add_alarm(&SegmentChange {
                at: Wall::from_unix_nanos(0),
                change: Change {
                    rule: "segment > 1ms p50".to_owned(),
                    at: Span::ZERO,
                    is_raised,
                    above_limit: 1,
                    total: 1,
                    limit: Span::ZERO,
                },
                segment: "a - b".to_owned(),
                direction: Direction::Forward,
                bound: 0,
            });
        }
        let page = Page::of(&metrics.snapshot()).text();
        let direction = Direction::Forward.name();
        let labels = format!("segment=\"a - b\",direction=\"{direction}\"");
        let rule_labels = format!("{labels},rule=\"segment > 1ms p50\"");
        for line in [
            format!("neph_hops_delay_seconds_sum{{{labels}}} 0.002"),
            format!("neph_hops_alarm{{{rule_labels}}} 1"),
            format!("neph_hops_alarms_total{{{rule_labels}}} 2"),
        ] {
            assert!(
                page.lines().any(|page_line| page_line == line),
                "{line}\n{page}"
            );
        }
    }
}
