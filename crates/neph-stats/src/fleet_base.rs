//! The base latencies of many flows together, streaming. First the common part of all flows is removed. Then
//! each flow's level is evaluated, with the levels of the others.
//!
//! Samples may come in any order across flows, and in the order of sending within a flow. They wait for
//! [`FleetDetectionSettings::settle`], are sorted by time, and are evaluated in batches.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::base_latency::Detection;
use crate::baseline_drift::BaselineDrift;
use crate::beginning::Beginning;
use crate::congestion::{CommonShift, Congestion, MIN_FLOWS, Reading};
use crate::fleet_detection::FleetDetection;
use crate::flow_level::{FleetContext, FlowLevel};
use crate::jitter_shape::JitterShape;
use crate::level_detection::{Finding, LevelDetection};
use crate::levels::Levels;
use crate::time_intervals::TimeIntervals;

/// Most samples in a batch.
const MAX_FLOWS: usize = 64;
/// In smaller fleets a batch takes long to gather and has few flows. It shows when queues existed, but not
/// their size, so nothing is removed. With 64 flows, on seeds that were not used for tuning, removing it made
/// 3158 of 149,300 reported changes wrong, and not removing it 325 of 145,800.
const MIN_MOVED: usize = 128;
/// How many batches are remembered for late samples.
const MAX_REMEMBERED_BATCHES: usize = 512;

/// Queues with less than this between them are reported as one, in nanoseconds.
const MIN_QUEUE_GAP_NS: i64 = 1_000_000_000;

/// Parameters of the evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetDetectionSettings {
    /// The source's rule.
    pub detection: Detection,
    /// A level that no other flow has must last this long to be reported; longer than queues last. In
    /// nanoseconds.
    pub hold: i64,
    /// How long samples wait for those of other flows, in nanoseconds. At least the message timeout, if a
    /// lost message delays the following ones.
    pub settle: i64,
}

impl Default for FleetDetectionSettings {
    /// The source's rule; 30 s; 500 ms.
    fn default() -> Self {
        Self {
            detection: Detection::default(),
            hold: 30_000_000_000,
            settle: 500_000_000,
        }
    }
}

/// The base latencies of a fleet of flows to one endpoint.
#[derive(Debug)]
pub struct FleetBase {
    settings: FleetDetectionSettings,
    flows: Vec<Option<FlowLevel>>,
    /// The least sample of each flow.
    min_samples: Vec<i64>,
    /// How many earlier flows had each number.
    nths: Vec<u32>,
    levels: Levels,
    shape: JitterShape,
    congestion: Congestion,
    drift: BaselineDrift,
    beginning: Beginning,
    waiting: BinaryHeap<Reverse<(i64, u32, Option<i64>)>>,
    all_flows: Vec<(i64, u32, i64)>,
    newest: i64,
    past: VecDeque<(i64, CommonShift)>,
    queued: TimeIntervals,
    detections: VecDeque<FleetDetection>,
    alive: usize,
}

impl FleetBase {
    /// A fleet without samples. Flows are numbered from 0 without large gaps.
    pub fn new(settings: FleetDetectionSettings) -> Self {
        let tolerance = settings.detection.tolerance();
        Self {
            settings,
            flows: Vec::new(),
            min_samples: Vec::new(),
            nths: Vec::new(),
            levels: Levels::new(tolerance),
            shape: JitterShape::new(),
            congestion: Congestion::new(tolerance, settings.hold),
            drift: BaselineDrift::new(tolerance),
            beginning: Beginning::new(tolerance, settings.hold),
            waiting: BinaryHeap::new(),
            all_flows: Vec::new(),
            newest: i64::MIN,
            past: VecDeque::new(),
            queued: TimeIntervals::new(MIN_QUEUE_GAP_NS),
            detections: VecDeque::new(),
            alive: 0,
        }
    }

    /// Adds a sample of a flow, sent at `at`, both in nanoseconds. Do not push lost messages.
    pub fn push(&mut self, flow: u32, at: i64, sample: i64) {
        self.waiting.push(Reverse((at, flow, Some(sample))));
        self.advance(at);
    }

    /// From `at` on, this number belongs to a new flow.
    pub fn restart(&mut self, flow: u32, at: i64) {
        self.waiting.push(Reverse((at, flow, None)));
        self.advance(at);
    }

    /// Time has passed until `now`, with or without samples.
    pub fn advance(&mut self, now: i64) {
        self.newest = self.newest.max(now);
        let due = self.newest.saturating_sub(self.settings.settle);
        self.release(due);
        let old = |&(at, ..): &(i64, u32, i64)| at < due.saturating_sub(self.settings.settle);
        if self.all_flows.first().is_some_and(old) {
            self.close();
        }
    }

    /// Evaluates all waiting samples, as no more come.
    pub fn finish(&mut self) {
        self.release(i64::MAX);
        self.close();
    }

    /// The oldest finding that was not taken yet. Findings of one flow come in order of time.
    pub fn next_detection(&mut self) -> Option<FleetDetection> {
        self.detections.pop_front()
    }

    /// A flow's current base, in nanoseconds, without the drift of all flows.
    pub fn base(&self, flow: u32) -> Option<i64> {
        self.flows.get(flow as usize)?.as_ref()?.base()
    }

    /// The slow drift of all flows since the beginning, in nanoseconds: a sample minus this lies at its
    /// flow's base.
    pub fn drifted(&self) -> i64 {
        self.drift.value_ns()
    }

    /// The lowest and the highest drift so far, in nanoseconds.
    pub const fn drift_range(&self) -> (i64, i64) {
        self.drift.range()
    }

    /// How many earlier flows had this number. All findings about these are reported, except that a change of
    /// theirs may still be corrected.
    pub fn nth(&self, flow: u32) -> u32 {
        self.nths.get(flow as usize).copied().unwrap_or(0)
    }

    /// Intervals in which all flows shared a delay that is no path, in the order of time, in nanoseconds. If
    /// it lasts longer than [`FleetDetectionSettings::hold`], it was a move of all flows and is not included.
    pub fn queued(&self) -> &[(i64, i64)] {
        self.queued.known()
    }

    /// Whether there were so many that some are reported as one, with the time between them.
    pub const fn queues_are_joined(&self) -> bool {
        self.queued.is_joined()
    }

    fn release(&mut self, due: i64) {
        while let Some(&Reverse((at, flow, sample))) = self.waiting.peek() {
            if at > due {
                break;
            }
            self.waiting.pop();
            let Some(sample) = sample else {
                self.close();
                self.forget(flow, at);
                continue;
            };
            let sample = sample.saturating_sub(self.drift.value_ns());
            if let Some(common) = self.common_at(at) {
                self.push_decided(at, flow, sample, common);
                continue;
            }
            self.all_flows.push((at, flow, sample));
            if self.all_flows.len() >= (self.alive / 4).clamp(MIN_FLOWS, MAX_FLOWS) {
                self.close();
            }
        }
    }

    /// The common part at a moment whose batch is already closed.
    fn common_at(&self, at: i64) -> Option<CommonShift> {
        let next = self.past.partition_point(|&(until, _)| until < at);
        self.past.get(next).map(|&(_, common)| common)
    }

    fn forget(&mut self, flow: u32, at: i64) {
        self.beginning.forget(flow);
        let index = flow as usize;
        if self.nths.len() <= index {
            self.nths.resize(index + 1, 0);
        }
        self.nths[index] += 1;
        if let Some(slot) = self.flows.get_mut(index)
            && let Some(mut level) = slot.take()
        {
            level.leave(&mut self.levels, at);
            self.min_samples[index] = i64::MAX;
            self.alive -= 1;
        }
    }

    /// Evaluates the gathered batch.
    fn close(&mut self) {
        let mut all_flows = std::mem::take(&mut self.all_flows);
        let (Some(&(from, ..)), Some(&(until, ..))) = (all_flows.first(), all_flows.last()) else {
            return;
        };
        let reading = |&(_, flow, sample): &(i64, u32, i64)| {
            let base = self.base(flow)?;
            Some(Reading { sample, base })
        };
        let readings: Vec<Reading> = all_flows.iter().filter_map(reading).collect();
        let queued = if self.beginning.is_over() {
            None
        } else {
            // Bases that were measured in a queue lie near the paths below it: a level within the tolerance
            // is no path yet.
            let paths = self.levels.paths(until);
            let near = self.settings.detection.tolerance() / 2;
            let known = |level: i64| paths.iter().any(|path| (path.level - level).abs() <= near);
            self.beginning.was_queued((from, until), &readings, known)
        };
        if let Some(since) = queued {
            self.restart_all(since, until);
        }
        let mut common = if queued.is_some() || self.alive < MIN_FLOWS {
            CommonShift::Calm
        } else {
            let known = |level: i64| self.levels.nearest_known_level(level);
            self.congestion.observe(until, &readings, known)
        };
        if let CommonShift::Lasting { by, since } = common {
            if self.alive >= MIN_MOVED {
                self.shift_all(by, since, until);
            }
            // With the moments in which they were moving.
            self.queued.cut(since.saturating_sub(MIN_QUEUE_GAP_NS));
            common = CommonShift::Calm;
        }
        if common != CommonShift::Calm {
            self.queued.add(from, until);
            if self.congestion.is_ongoing() {
                self.drift.pause(until);
            }
        }
        if self.alive < MIN_MOVED {
            common = CommonShift::Calm;
        }
        if self.past.len() == MAX_REMEMBERED_BATCHES {
            self.past.pop_front();
        }
        self.past.push_back((until, common));
        for (at, flow, sample) in all_flows.drain(..) {
            self.push_decided(at, flow, sample, common);
        }
        self.all_flows = all_flows;
    }

    fn push_decided(&mut self, at: i64, flow: u32, sample: i64, common: CommonShift) {
        let (index, nth) = (flow as usize, self.nth(flow));
        if self.flows.len() <= index {
            self.flows.resize_with(index + 1, || None);
            self.min_samples.resize(index + 1, i64::MAX);
        }
        self.min_samples[index] = self.min_samples[index].min(sample);
        let alive = &mut self.alive;
        let level = self.flows[index].get_or_insert_with(|| {
            *alive += 1;
            FlowLevel::new()
        });
        let without_shift = match common {
            CommonShift::Calm | CommonShift::Lasting { .. } => sample,
            CommonShift::Steady(by) => sample.saturating_sub(by),
            CommonShift::Moving => return level.gap(),
        };
        let mut context = FleetContext {
            detection: &self.settings.detection,
            hold: self.settings.hold,
            levels: &mut self.levels,
            shape: &mut self.shape,
            drift: &mut self.drift,
            flows: self.alive,
        };
        let is_astray = level.is_astray(without_shift, context.detection.tolerance());
        let detection = level.push(at, without_shift, &mut context);
        self.drift.record_sample(at, flow, is_astray);
        if let Some(detection) = detection {
            let filtered = self.beginning.filter_detection(FleetDetection {
                flow,
                nth,
                detection,
            });
            self.detections.push_back(filtered);
        }
    }

    /// All samples so far were measured in a queue from `since` to `until`: all results are withdrawn.
    fn restart_all(&mut self, since: i64, until: i64) {
        for (flow, slot) in (0_u32..).zip(&mut self.flows) {
            let Some(level) = slot else { continue };
            if let Some(base) = level.base() {
                self.beginning.withdraw_base(flow, base);
            }
            *level = FlowLevel::new();
        }
        let back = self.beginning.withdraw_changes(until);
        self.detections.extend(back);
        let tolerance = self.settings.detection.tolerance();
        self.levels = Levels::new(tolerance);
        self.shape = JitterShape::new();
        self.congestion = Congestion::new(tolerance, self.settings.hold);
        self.drift.restart();
        self.queued.cut(since);
        self.queued.add(since, until);
    }

    /// Every flow moved by the same amount and stayed there: one change of all of them.
    fn shift_all(&mut self, by: i64, since: i64, certain: i64) {
        let moved_slot = self.levels.shift(by);
        let tolerance = self.settings.detection.tolerance();
        for (flow, slot) in self.flows.iter_mut().enumerate() {
            let Some(level) = slot else { continue };
            let proven = level.is_proven(since, self.settings.hold);
            let held = level.had_level_at(since);
            let before = level.base();
            level.shift(by, &moved_slot);
            let (Some(after), true) = (level.base(), held) else {
                continue;
            };
            let number = u32::try_from(flow).unwrap_or(u32::MAX);
            if by < 0 && after.saturating_add(tolerance) < self.min_samples[flow] {
                // It never had so small a sample: it did not move with the others.
                level.leave(&mut self.levels, certain);
                *level = FlowLevel::new();
                self.beginning
                    .withdraw_base(number, after.saturating_sub(by));
                continue;
            }
            let finding = if by < 0 && !proven {
                Finding::Correction
            } else {
                Finding::Change
            };
            let detection = LevelDetection {
                finding,
                at: since,
                certain,
                before,
                after,
            };
            let nth = self.nths.get(flow).copied().unwrap_or(0);
            let flow = number;
            let shifted = FleetDetection {
                flow,
                nth,
                detection,
            };
            self.detections.push_back(shifted);
        }
    }
}

#[cfg(test)]
mod tests;
