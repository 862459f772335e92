//! Evaluates segments during a recording, window by window: a thread reads the growing captures,
//! and the samples that agents send.
//!
//! Owns the thread, and the delay that counts between two clocks. Does not own which segments and
//! rules are evaluated (`left`), the source of packets (`source`) or the contents of windows
//! (`windows`). Everything is evaluated again at the end.

mod source;
mod standings;

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use neph_capture::path::alarms::{Delay, RuleState, Rules, SegmentChange};
use neph_capture::path::windows::{SegmentDelay, Window, WindowDelays, Windows};
use neph_capture::{Direction, DuplicateFilter, Hops, Mapping};
use neph_model::{Span, Stop, Wall};
use neph_sys::clock::{self, Pair};
use neph_text::PrintableText;
use neph_wire::dissect::dissect;

use super::tail::Tail;
use super::{LivePackets, Point, PointRecording, Wanted};
use crate::IdlePriority;
use source::{Clocks, Samples, Source};
use standings::{FinalEvaluation, LiveStandings, divide};

/// Interval between checks for a complete window and for the end.
const OFTEN: Duration = Duration::from_millis(100);
/// How long a window may wait without loss; only then does the thread leave idle priority.
const PATIENCE: Span = Span::from_secs(2);
/// How long packets are awaited: this and twice the largest limit, up to a maximum, since waiting
/// packets are in memory. Rules whose limit reaches the maximum are evaluated at the end.
const WAITED: Span = Span::from_secs(1);
const WAITED_MOST: Span = Span::from_secs(10);
/// The clock was set if it moved by this much more or less than time passed.
const SET: i64 = 250_000_000;
/// Maximum number of waiting samples, and of samples that are read between two windows.
const SAMPLES: usize = 64;

/// Receives alarms during a recording.
pub trait AlarmListener: Send + 'static {
    /// An alarm was raised or cleared.
    fn hear(&mut self, found: SegmentChange);

    /// Whether delays are wanted: then packets are matched even without a rule.
    fn wants_delays(&self) -> bool {
        false
    }

    /// A packet took `took` nanoseconds for a segment that is evaluated during the recording.
    fn crossed(&mut self, _segment: &str, _way: Direction, _took: i64) {}
}

/// The parameters of an evaluation during a recording.
#[derive(Debug)]
pub struct LiveEvaluationSpec<'p, T> {
    /// The points, in the order of the path.
    pub points: &'p [Point],
    /// The rules.
    pub rules: &'p Rules,
    /// NAT mappings, each with the index of the point after the NAT.
    pub mappings: &'p [(usize, Mapping)],
    /// The receiver of alarms.
    pub listener: T,
    /// Prints a sentence.
    pub say: fn(&str),
}

/// The evaluating thread.
#[derive(Debug)]
pub struct LiveEvaluation<T> {
    packets: SyncSender<LivePackets>,
    /// Points whose samples are wanted.
    sampled: Vec<usize>,
    stop: Stop,
    thread: JoinHandle<T>,
}

/// The state of the evaluation.
#[derive(Debug)]
struct LiveEvaluator<T> {
    /// The points that are read.
    places: Vec<LivePoint>,
    clocks: Clocks,
    /// NAT mappings, by the index into `places`.
    mappings: Vec<(usize, Mapping)>,
    waiting: WindowDelays,
    standings: Vec<RuleState>,
    /// Names of the segments that are evaluated during the recording, by their index in the path.
    segments: Vec<Option<String>>,
    /// The time of the first packet at the first point.
    began: Option<i64>,
    stop: Stop,
    listener: T,
    say: fn(&str),
}

/// A point whose packets are read during the recording.
#[derive(Debug)]
struct LivePoint {
    /// Its index in the path.
    point: usize,
    name: String,
    is_at_agent: bool,
}

impl<T: AlarmListener> LiveEvaluation<T> {
    /// Waits for captures of these points. Prints what is evaluated only at the end.
    pub fn begin(spec: LiveEvaluationSpec<'_, T>) -> Self {
        let (stop, say) = (Stop::new(), spec.say);
        let (evaluator, left) = LiveEvaluator::of(spec, &stop);
        left.print(say);
        let (packets, received) = sync_channel(SAMPLES);
        Self {
            packets,
            sampled: evaluator.sampled(),
            stop,
            thread: thread::spawn(move || evaluator.run(&received)),
        }
    }

    /// Passes the paths of all points' future captures.
    pub fn hear(&self, recorded: &[PointRecording]) {
        let files = recorded.iter().map(|point| point.file.clone());
        // The thread has ended if there is nothing to evaluate.
        let _ = self.packets.send(LivePackets::Captures(files.collect()));
    }

    /// Where to send samples of packets, if any are wanted.
    pub fn samples(&self) -> Option<Wanted<'_>> {
        (!self.sampled.is_empty()).then_some(Wanted {
            points: &self.sampled,
            to: &self.packets,
        })
    }

    /// Ends the evaluation; returns the receiver of alarms.
    pub fn end(self) -> T {
        self.stop.set();
        drop(self.packets);
        let ended = self.thread.join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<T: AlarmListener> LiveEvaluator<T> {
    /// The evaluation of these points, and what is left to the end.
    fn of(spec: LiveEvaluationSpec<'_, T>, stop: &Stop) -> (Self, FinalEvaluation) {
        let points = spec.points.iter().enumerate();
        let places: Vec<LivePoint> = points
            .filter(|(_, point)| !point.is_remote())
            .map(|(index, point)| LivePoint {
                point: index,
                name: point.name.clone(),
                is_at_agent: point.is_at_agent(),
            })
            .collect();
        let mappings = spec.mappings.iter().filter_map(|(point, mapping)| {
            let among = places
                .iter()
                .position(|live_point| live_point.point == *point)?;
            Some((among, *mapping))
        });
        let mappings = mappings.collect();
        let (live, left) = divide(spec.points, spec.rules);
        let LiveStandings {
            standings,
            segments,
        } = live;
        let mut evaluator = Self {
            places,
            clocks: Clocks::default(),
            mappings,
            waiting: WindowDelays {
                longest_nanos: waited(&standings).nanos(),
                readable_after_nanos: WindowDelays::READABLE_LOCALLY_NANOS,
            },
            standings,
            segments,
            began: None,
            stop: stop.clone(),
            listener: spec.listener,
            say: spec.say,
        };
        if !evaluator.sampled().is_empty() {
            evaluator.waiting.readable_after_nanos = WindowDelays::READABLE_AT_AGENTS_NANOS;
        }
        (evaluator, left)
    }

    /// Points at agents whose samples are needed to evaluate or to report segments.
    fn sampled(&self) -> Vec<usize> {
        let is_wanted = |segment: usize| {
            let mut standings = self.standings.iter();
            let is_live = self.segments.get(segment).is_some_and(Option::is_some);
            standings.any(|rule_state| rule_state.segment() == segment)
                || is_live && self.listener.wants_delays()
        };
        let at_agents = self.places.iter().filter(|point| point.is_at_agent);
        let is_any = (0..self.segments.len()).any(is_wanted);
        let wanted = at_agents.map(|point| point.point).filter(|point| {
            // All times are relative to the first point.
            let before = point.checked_sub(1);
            is_wanted(*point) || before.map_or(is_any, is_wanted)
        });
        wanted.collect()
    }

    /// Whether there is anything to evaluate or to report during the recording.
    fn is_at_work(&self) -> bool {
        !self.standings.is_empty() || self.listener.wants_delays()
    }

    fn run(mut self, packets: &Receiver<LivePackets>) -> T {
        if !self.is_at_work() {
            return self.listener;
        }
        // None if the recording failed.
        if let Ok(LivePackets::Captures(files)) = packets.recv() {
            let source = |live_point: &LivePoint| match files.get(live_point.point) {
                Some(file) if !live_point.is_at_agent => Source::Capture(Tail::of(file.clone())),
                _ => Source::Samples(Samples::of(live_point.point)),
            };
            let sources: Vec<Source> = self.places.iter().map(source).collect();
            if let Err(reason) = self.follow(sources, packets) {
                (self.say)(&format!(
                    "neph hops: {reason}; alarms are judged when the recording is over, and metrics stay as they are"
                ));
            }
        }
        self.listener
    }

    /// Runs until the end; the error is the reason why the evaluation cannot continue.
    fn follow(
        &mut self,
        mut sources: Vec<Source>,
        packets: &Receiver<LivePackets>,
    ) -> Result<(), String> {
        let idle_priority = IdlePriority::with_patience(PATIENCE);
        let mut before = clock::pair();
        let mut windows = Windows::begin(before.wall.0, self.waiting);
        while !self.stop.is_set() {
            let now = clock::pair();
            if is_set(before, now) {
                return Err("the clock was set, or the machine slept".to_owned());
            }
            before = now;
            for sent in packets.try_iter().take(SAMPLES) {
                self.take(sent, &mut sources);
            }
            if let Some(window) = windows.next(now.wall.0) {
                self.look(&window, &mut sources)?;
            } else {
                idle_priority.caught_up();
                clock::nap(OFTEN);
            }
        }
        Ok(())
    }

    /// Receives a sample. After an error its point is ignored; the others continue.
    fn take(&mut self, sent: LivePackets, sources: &mut [Source]) {
        let LivePackets::Sample(point, sample) = sent else {
            return;
        };
        let mut places = self.places.iter().zip(sources);
        let of_point = places.find(|(live_point, _)| live_point.point == point);
        if let Some((live_point, Source::Samples(samples))) = of_point
            && let Err(reason) = samples.take(&sample, &mut self.clocks)
        {
            (self.say)(&format!(
                "neph hops: {}: {}; alarms on its segments are judged when the recording is over, and their \
                 metrics stay as they are",
                live_point.name,
                PrintableText::text(&reason)
            ));
        }
    }

    fn look(&mut self, window: &Window, sources: &mut [Source]) -> Result<(), String> {
        let mut hops = Hops::with_points(sources.len());
        for (index, mapping) in &self.mappings {
            hops.add_nat_rule(*index, *mapping);
        }
        for (index, source) in sources.iter_mut().enumerate() {
            let mut duplicates = DuplicateFilter::default();
            let read = source.read(
                &window.read_range,
                window.next_from(),
                &self.clocks,
                |at, record| {
                    if self.stop.is_set() {
                        return ControlFlow::Break(());
                    }
                    if let Some(packet) = dissect(record.link, record.bytes, record.length) {
                        let interface = record.link.interface(record.bytes);
                        let interface = interface.unwrap_or(record.interface);
                        if !duplicates.is_copy(Wall::from_unix_nanos(at), interface, &packet) {
                            hops.add_packet(index, at, &packet);
                        }
                    }
                    ControlFlow::Continue(())
                },
            );
            read.map_err(|error| error.to_string())?;
        }
        if !self.stop.is_set() {
            self.evaluate(window, hops, sources);
        }
        Ok(())
    }

    fn evaluate(&mut self, window: &Window, hops: Hops, sources: &[Source]) {
        let segments = 0..sources.len().saturating_sub(1);
        let bounds: Vec<Option<Span>> = segments
            .map(|segment| self.clocks.bound(sources, segment))
            .collect();
        let one_clock: Vec<bool> = bounds.iter().map(Option::is_none).collect();
        let followed = hops.end_of_window(&one_clock);
        let first = || {
            followed
                .packet_extent(0)
                .map(|(first, _)| first.unix_nanos())
        };
        self.began = self.began.or_else(first);
        // Packets before the first packet of the first point are evaluated at the end.
        let Some(began) = self.began else {
            return;
        };
        for segment_delay in window.segment_delays(&followed) {
            let segment = self.places[segment_delay.segment].point;
            if let Some(Some(name)) = self.segments.get(segment) {
                self.listener
                    .crossed(name, segment_delay.direction, segment_delay.delay_nanos);
            }
            let delay = at_least(
                &segment_delay,
                bounds[segment_delay.segment].unwrap_or(Span::ZERO),
                began,
            );
            for rule_state in &mut self.standings {
                if rule_state.includes(segment, segment_delay.direction)
                    && let Some(found) = rule_state.count(delay, began)
                {
                    self.listener.hear(found);
                }
            }
        }
    }
}

/// The delay that counts: the least possible one, so that the clock error bound never causes an
/// alarm.
fn at_least(segment_delay: &SegmentDelay, bound: Span, began: i64) -> Delay {
    let bound = bound.nanos();
    Delay {
        entered_nanos: segment_delay.entered_at.saturating_sub(began),
        delay_nanos: segment_delay.delay_nanos.saturating_sub(bound).max(0),
        bound,
    }
}

/// How long packets are awaited.
fn waited(standings: &[RuleState]) -> Span {
    let limit = standings
        .iter()
        .map(|rule_state| rule_state.rule().limit)
        .max();
    let limit = limit.unwrap_or(Span::ZERO);
    (limit + limit + WAITED).min(WAITED_MOST)
}

/// Whether the clock was set between these two readings.
const fn is_set(before: Pair, now: Pair) -> bool {
    now.offset()
        .saturating_sub(before.offset())
        .saturating_abs()
        > SET
}

#[cfg(test)]
mod tests;
