//! Judging segments while their points are recorded, window by window: a thread that reads the captures behind those
//! who write them, and the samples that agents send.
//!
//! Owns the thread, and how a delay between two clocks counts. Which segments and rules are judged so is left's; where
//! packets come from is source's; what is in a window is windows'. All of it is judged again at the end.

mod left;
mod source;

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use neph_capture::path::alarms::{Delay, Found, Rules, Standing};
use neph_capture::path::windows::{Crossed, Waiting, Window, Windows};
use neph_capture::{Direction, DuplicateFilter, Hops, Mapping};
use neph_model::{Span, Stop, Wall};
use neph_sys::clock::{self, Pair};
use neph_text::Outside;
use neph_wire::dissect::dissect;

use super::tail::Tail;
use super::{LivePackets, Point, Recorded, Wanted};
use crate::IdlePriority;
use left::{Left, Live, divide};
use source::{Clocks, Samples, Source};

/// How often it is looked whether a window is complete, and whether all is over.
const OFTEN: Duration = Duration::from_millis(100);
/// Nobody loses anything while a window waits: only then is it fetched from the times that are idle.
const PATIENCE: Span = Span::from_secs(2);
/// Delays are waited for that are as long as this and twice the largest limit, up to a most: what is
/// waited for is in memory. Rules with limits of the most are judged at the end.
const WAITED: Span = Span::from_secs(1);
const WAITED_MOST: Span = Span::from_secs(10);
/// The clock was set if it moved by so much more or less than time passed.
const SET: i64 = 250_000_000;
/// Samples that wait to be taken in, at most; and how many are between two looks at windows.
const SAMPLES: usize = 64;

/// Who hears of alarms while points record.
pub trait AlarmListener: Send + 'static {
    /// An alarm was raised, or is over.
    fn hear(&mut self, found: Found);

    /// Whether delays are wanted: then packets are followed also where there is no rule.
    fn wants_delays(&self) -> bool {
        false
    }

    /// A packet crossed a segment in so many nanoseconds. Only of segments that are judged while points record.
    fn crossed(&mut self, _segment: &str, _way: Direction, _took: i64) {}
}

/// What is judged while points record.
#[derive(Debug)]
pub struct JudgingSpec<'p, T> {
    /// The points, in the order of the path.
    pub points: &'p [Point],
    /// The rules.
    pub rules: &'p Rules,
    /// Translators' rules, each with the place of the point behind it.
    pub mappings: &'p [(usize, Mapping)],
    /// Who hears of alarms.
    pub listener: T,
    /// Prints a sentence.
    pub say: fn(&str),
}

/// The thread that judges.
#[derive(Debug)]
pub struct Judging<T> {
    packets: SyncSender<LivePackets>,
    /// Points whose samples are wanted.
    sampled: Vec<usize>,
    over: Stop,
    thread: JoinHandle<T>,
}

/// What it knows.
#[derive(Debug)]
struct Judge<T> {
    /// The points that it reads.
    places: Vec<Place>,
    clocks: Clocks,
    /// Translators' rules, by the place among these.
    mappings: Vec<(usize, Mapping)>,
    waiting: Waiting,
    standings: Vec<Standing>,
    /// The names of the segments that are judged while points record, by their place in the path.
    segments: Vec<Option<String>>,
    /// When the first of them saw its first packet.
    began: Option<i64>,
    over: Stop,
    listener: T,
    say: fn(&str),
}

/// A point whose packets are read while it records.
#[derive(Debug)]
struct Place {
    /// Its place in the path.
    point: usize,
    name: String,
    is_at_agent: bool,
}

impl<T: AlarmListener> Judging<T> {
    /// Begins to wait for captures of these points. Prints what it leaves to the end.
    pub fn begin(spec: JudgingSpec<'_, T>) -> Self {
        let (over, say) = (Stop::new(), spec.say);
        let (judge, left) = Judge::of(spec, &over);
        left.print(say);
        let (packets, received) = sync_channel(SAMPLES);
        Self {
            packets,
            sampled: judge.sampled(),
            over,
            thread: thread::spawn(move || judge.run(&received)),
        }
    }

    /// Where the captures will be, of all points.
    pub fn hear(&self, recorded: &[Recorded]) {
        let files = recorded.iter().map(|point| point.file.clone());
        // One that has nothing to judge does not listen.
        let _ = self.packets.send(LivePackets::Captures(files.collect()));
    }

    /// Where samples of packets are taken, if any are wanted.
    pub fn samples(&self) -> Option<Wanted<'_>> {
        (!self.sampled.is_empty()).then_some(Wanted {
            points: &self.sampled,
            to: &self.packets,
        })
    }

    /// The recording is over; who has heard of alarms.
    pub fn end(self) -> T {
        self.over.set();
        drop(self.packets);
        let ended = self.thread.join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<T: AlarmListener> Judge<T> {
    /// Of these points; and what is left to the end.
    fn of(spec: JudgingSpec<'_, T>, over: &Stop) -> (Self, Left) {
        let points = spec.points.iter().enumerate();
        let places: Vec<Place> = points
            .filter(|(_, point)| !point.is_remote())
            .map(|(place, point)| Place {
                point: place,
                name: point.name.clone(),
                is_at_agent: point.is_at_agent(),
            })
            .collect();
        let mappings = spec.mappings.iter().filter_map(|(point, mapping)| {
            let among = places.iter().position(|place| place.point == *point)?;
            Some((among, *mapping))
        });
        let mappings = mappings.collect();
        let (live, left) = divide(spec.points, spec.rules);
        let Live {
            standings,
            segments,
        } = live;
        let mut judge = Self {
            places,
            clocks: Clocks::default(),
            mappings,
            waiting: Waiting {
                longest: waited(&standings).nanos(),
                readable: Waiting::HERE,
            },
            standings,
            segments,
            began: None,
            over: over.clone(),
            listener: spec.listener,
            say: spec.say,
        };
        if !judge.sampled().is_empty() {
            judge.waiting.readable = Waiting::AT_AGENTS;
        }
        (judge, left)
    }

    /// Points at agents whose samples it takes to judge segments, or to tell of them, while points record.
    fn sampled(&self) -> Vec<usize> {
        let is_wanted = |segment: usize| {
            let mut standings = self.standings.iter();
            let is_live = self.segments.get(segment).is_some_and(Option::is_some);
            standings.any(|one| one.segment() == segment) || is_live && self.listener.wants_delays()
        };
        let at_agents = self.places.iter().filter(|place| place.is_at_agent);
        let is_any = (0..self.segments.len()).any(is_wanted);
        let wanted = at_agents.map(|place| place.point).filter(|point| {
            // By the first point everything has its time.
            let before = point.checked_sub(1);
            is_wanted(*point) || before.map_or(is_any, is_wanted)
        });
        wanted.collect()
    }

    /// Whether there is anything to judge, or to tell, while points record.
    fn is_at_work(&self) -> bool {
        !self.standings.is_empty() || self.listener.wants_delays()
    }

    fn run(mut self, packets: &Receiver<LivePackets>) -> T {
        if !self.is_at_work() {
            return self.listener;
        }
        // None where the recording came to nothing.
        if let Ok(LivePackets::Captures(files)) = packets.recv() {
            let source = |place: &Place| match files.get(place.point) {
                Some(file) if !place.is_at_agent => Source::Capture(Tail::of(file.clone())),
                _ => Source::Samples(Samples::of(place.point)),
            };
            let sources: Vec<Source> = self.places.iter().map(source).collect();
            if let Err(why) = self.follow(sources, packets) {
                (self.say)(&format!(
                    "neph hops: {why}; alarms are judged when the recording is over, and metrics stay as they are"
                ));
            }
        }
        self.listener
    }

    /// Until all is over, or why it cannot go on.
    fn follow(
        &mut self,
        mut sources: Vec<Source>,
        packets: &Receiver<LivePackets>,
    ) -> Result<(), String> {
        let idle_priority = IdlePriority::with_patience(PATIENCE);
        let mut before = clock::pair();
        let mut windows = Windows::begin(before.wall.0, self.waiting);
        while !self.over.is_set() {
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

    /// Takes in a sample. A point of which none can be taken any more is waited for no longer; the others go on.
    fn take(&mut self, sent: LivePackets, sources: &mut [Source]) {
        let LivePackets::Sample(point, sample) = sent else {
            return;
        };
        let mut places = self.places.iter().zip(sources);
        let of_point = places.find(|(place, _)| place.point == point);
        if let Some((place, Source::Samples(samples))) = of_point
            && let Err(why) = samples.take(&sample, &mut self.clocks)
        {
            (self.say)(&format!(
                "neph hops: {}: {}; alarms on its segments are judged when the recording is over, and their \
                 metrics stay as they are",
                place.name,
                Outside::text(&why)
            ));
        }
    }

    fn look(&mut self, window: &Window, sources: &mut [Source]) -> Result<(), String> {
        let mut hops = Hops::at(sources.len());
        for (place, mapping) in &self.mappings {
            hops.map(*place, *mapping);
        }
        for (place, source) in sources.iter_mut().enumerate() {
            let mut duplicates = DuplicateFilter::default();
            let read = source.read(
                &window.read,
                window.next_from(),
                &self.clocks,
                |at, record| {
                    if self.over.is_set() {
                        return ControlFlow::Break(());
                    }
                    if let Some(packet) = dissect(record.link, record.bytes, record.length) {
                        let interface = record.link.interface(record.bytes);
                        let interface = interface.unwrap_or(record.interface);
                        if !duplicates.is_copy(Wall::from_unix_nanos(at), interface, &packet) {
                            hops.see(place, at, &packet);
                        }
                    }
                    ControlFlow::Continue(())
                },
            );
            read.map_err(|error| error.to_string())?;
        }
        if !self.over.is_set() {
            self.judge(window, hops, sources);
        }
        Ok(())
    }

    fn judge(&mut self, window: &Window, hops: Hops, sources: &[Source]) {
        let segments = 0..sources.len().saturating_sub(1);
        let bounds: Vec<Option<Span>> = segments
            .map(|segment| self.clocks.bound(sources, segment))
            .collect();
        let one_clock: Vec<bool> = bounds.iter().map(Option::is_none).collect();
        let followed = hops.end_of_window(&one_clock);
        let first = || followed.extent(0).map(|(first, _)| first.unix_nanos());
        self.began = self.began.or_else(first);
        // What passed before the first point saw anything is judged at the end.
        let Some(began) = self.began else {
            return;
        };
        for crossed in window.crossed(&followed) {
            let segment = self.places[crossed.segment].point;
            if let Some(Some(name)) = self.segments.get(segment) {
                self.listener.crossed(name, crossed.direction, crossed.took);
            }
            let delay = at_least(
                &crossed,
                bounds[crossed.segment].unwrap_or(Span::ZERO),
                began,
            );
            for standing in &mut self.standings {
                if standing.is_of(segment, crossed.direction)
                    && let Some(found) = standing.count(delay, began)
                {
                    self.listener.hear(found);
                }
            }
        }
    }
}

/// A delay as it counts: between two clocks the least that it can be, so that no alarm is the clocks'.
fn at_least(crossed: &Crossed, bound: Span, began: i64) -> Delay {
    let bound = bound.nanos();
    Delay {
        since: crossed.entered.saturating_sub(began),
        took: crossed.took.saturating_sub(bound).max(0),
        bound,
    }
}

/// How long packets are waited for.
fn waited(standings: &[Standing]) -> Span {
    let limit = standings.iter().map(|standing| standing.rule().limit).max();
    let limit = limit.unwrap_or(Span::ZERO);
    (limit + limit + WAITED).min(WAITED_MOST)
}

/// Whether somebody set the clock between these moments.
const fn is_set(before: Pair, now: Pair) -> bool {
    now.offset()
        .saturating_sub(before.offset())
        .saturating_abs()
        > SET
}

#[cfg(test)]
mod tests;
