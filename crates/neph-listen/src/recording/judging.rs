//! Judging segments while their points are recorded: a thread that reads the captures behind those who
//! write them, window by window.
//!
//! Owns which segments are judged so: those of this machine's interfaces with no point elsewhere before
//! them, whose stamps are of the first point's clock from the beginning; and by which rules: those whose
//! limits are shorter than what is waited for. What is in a window is windows', what came of all of it is
//! judged again at the end.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use neph_capture::path::alarms::{Delay, Found, Rules, Standing};
use neph_capture::path::passages::segment_names;
use neph_capture::path::windows::{Window, Windows};
use neph_capture::{Hops, Mapping, Twice, Way};
use neph_model::{Span, Stop, Wall};
use neph_sys::clock::{self, Pair};
use neph_wire::dissect::dissect;

use super::tail::Tail;
use super::{Point, Recorded};
use crate::Courtesy;

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

/// Who hears of alarms while points record.
pub trait Hears: Send + 'static {
    /// An alarm was raised, or is over.
    fn hear(&mut self, found: Found);

    /// Whether delays are wanted: then packets are followed also where there is no rule.
    fn wants_delays(&self) -> bool {
        false
    }

    /// A packet crossed a segment in so many nanoseconds. Only of segments that are judged while points record.
    fn crossed(&mut self, _segment: &str, _way: Way, _took: i64) {}
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
    pub hears: T,
    /// Prints a sentence.
    pub say: fn(&str),
}

/// The thread that judges.
#[derive(Debug)]
pub struct Judging<T> {
    captures: Sender<Vec<PathBuf>>,
    over: Stop,
    thread: JoinHandle<T>,
}

/// What it knows.
#[derive(Debug)]
struct Judge<T> {
    /// Of the points that it reads: the place of each in the path.
    places: Vec<usize>,
    /// Translators' rules, by the place among these.
    mappings: Vec<(usize, Mapping)>,
    longest: i64,
    standings: Vec<Standing>,
    /// The names of the segments that are judged while points record, by their place in the path.
    segments: Vec<Option<String>>,
    /// When the first of them saw its first packet.
    began: Option<i64>,
    over: Stop,
    hears: T,
    say: fn(&str),
}

/// What is judged when the recording is over, and not before.
#[derive(Debug, Default)]
struct Left {
    /// Segments that rules are about.
    segments: Vec<String>,
    /// Rules about other segments, as they were typed.
    rules: Vec<String>,
}

impl<T: Hears> Judging<T> {
    /// Begins to wait for captures of these points. Prints what it leaves to the end.
    pub fn begin(spec: JudgingSpec<'_, T>) -> Self {
        let (over, say) = (Stop::new(), spec.say);
        let (judge, left) = Judge::of(spec, &over);
        left.print(say);
        let (captures, heard) = channel();
        Self {
            captures,
            over,
            thread: thread::spawn(move || judge.run(&heard)),
        }
    }

    /// Where the captures will be, of all points.
    pub fn hear(&self, recorded: &[Recorded]) {
        let files = recorded.iter().map(|point| point.file.clone());
        // One that has nothing to judge does not listen.
        let _ = self.captures.send(files.collect());
    }

    /// The recording is over; who has heard of alarms.
    pub fn end(self) -> T {
        self.over.set();
        drop(self.captures);
        let ended = self.thread.join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Left {
    fn print(&self, say: fn(&str)) {
        if !self.segments.is_empty() {
            say(&format!(
                "neph hops: alarms on {} are judged when the recording is over: while it lasts only \
                 interfaces of this machine with no point elsewhere before them are known to have the \
                 first point's clock",
                self.segments.join(", ")
            ));
        }
        for rule in &self.rules {
            say(&format!(
                "neph hops: --alarm '{rule}' is judged when the recording is over: while it lasts no \
                 packet is waited for longer than {} s",
                WAITED_MOST.nanos() / 1_000_000_000
            ));
        }
    }
}

impl<T: Hears> Judge<T> {
    /// Of these points; and what is left to the end.
    fn of(spec: JudgingSpec<'_, T>, over: &Stop) -> (Self, Left) {
        let (points, rules) = (spec.points, spec.rules);
        let names: Vec<String> = points.iter().map(|point| point.name.clone()).collect();
        let places = (0..points.len()).filter(|place| points[*place].is_here());
        let places: Vec<usize> = places.collect();
        let mappings = spec.mappings.iter().filter_map(|(point, mapping)| {
            let among = places.iter().position(|place| place == point)?;
            Some((among, *mapping))
        });
        let mappings = mappings.collect();
        // Alarms stand by the first point's clock.
        let is_here = |segment: usize| points[..=segment + 1].iter().all(Point::is_here);
        let segments = segment_names(&names).into_iter().enumerate();
        let heard = segments.clone();
        let heard = heard.map(|(segment, name)| is_here(segment).then_some(name));
        let heard = heard.collect();
        let left = segments.filter(|(segment, _)| !is_here(*segment) && rules.are_about(*segment));
        let mut left = Left {
            segments: left.map(|(_, name)| name).collect(),
            rules: Vec::new(),
        };
        let mut standings = rules.standings(&names, is_here);
        standings.retain(|standing| {
            let is_late = standing.limit() >= WAITED_MOST;
            if is_late && !left.rules.iter().any(|rule| rule == standing.rule()) {
                left.rules.push(standing.rule().to_owned());
            }
            !is_late
        });
        let judge = Self {
            places,
            mappings,
            longest: waited(&standings).nanos(),
            standings,
            segments: heard,
            began: None,
            over: over.clone(),
            hears: spec.hears,
            say: spec.say,
        };
        (judge, left)
    }

    fn run(mut self, captures: &Receiver<Vec<PathBuf>>) -> T {
        if self.standings.is_empty() && !self.hears.wants_delays() {
            return self.hears;
        }
        // None where the recording came to nothing.
        if let Ok(files) = captures.recv() {
            let files = self.places.iter().filter_map(|place| files.get(*place));
            let tails: Vec<Tail> = files.cloned().map(Tail::of).collect();
            if let Err(why) = self.follow(tails) {
                (self.say)(&format!(
                    "neph hops: {why}; alarms are judged when the recording is over, and metrics stay as they are"
                ));
            }
        }
        self.hears
    }

    /// Until all is over, or why it cannot go on.
    fn follow(&mut self, mut tails: Vec<Tail>) -> Result<(), String> {
        let courtesy = Courtesy::with_patience(PATIENCE);
        let mut before = clock::pair();
        let mut windows = Windows::begin(before.wall.0, self.longest);
        while !self.over.is_set() {
            let now = clock::pair();
            if is_set(before, now) {
                return Err("the clock was set, or the machine slept".to_owned());
            }
            before = now;
            if let Some(window) = windows.next(now.wall.0) {
                self.look(&window, &mut tails)?;
            } else {
                courtesy.caught_up();
                clock::nap(OFTEN);
            }
        }
        Ok(())
    }

    fn look(&mut self, window: &Window, tails: &mut [Tail]) -> Result<(), String> {
        let mut hops = Hops::at(tails.len());
        for (place, mapping) in &self.mappings {
            hops.map(*place, *mapping);
        }
        for (place, tail) in tails.iter_mut().enumerate() {
            let mut twice = Twice::default();
            let read = tail.read(&window.read, window.next_from(), |at, record| {
                if self.over.is_set() {
                    return ControlFlow::Break(());
                }
                if let Some(packet) = dissect(record.link, record.bytes, record.length) {
                    let interface = record.link.interface(record.bytes);
                    let interface = interface.unwrap_or(record.interface);
                    if !twice.is_copy(Wall::from_unix_nanos(at), interface, &packet) {
                        hops.see(place, at, &packet);
                    }
                }
                ControlFlow::Continue(())
            });
            read.map_err(|error| format!("read {}: {error}", tail.name()))?;
        }
        if !self.over.is_set() {
            self.judge(window, hops);
        }
        Ok(())
    }

    fn judge(&mut self, window: &Window, hops: Hops) {
        let followed = hops.end_of_window();
        let first = || followed.extent(0).map(|(first, _)| first.unix_nanos());
        self.began = self.began.or_else(first);
        // What passed before the first point saw anything is judged at the end.
        let Some(began) = self.began else {
            return;
        };
        for crossed in window.crossed(&followed) {
            let delay = Delay {
                since: crossed.entered.saturating_sub(began),
                took: crossed.took,
                // One clock, and stamps of nanoseconds.
                bound: 0,
            };
            let segment = self.places[crossed.segment];
            if let Some(Some(name)) = self.segments.get(segment) {
                self.hears.crossed(name, crossed.way, crossed.took);
            }
            for standing in &mut self.standings {
                if standing.is_of(segment, crossed.way)
                    && let Some(found) = standing.count(delay, began)
                {
                    self.hears.hear(found);
                }
            }
        }
    }
}

/// How long packets are waited for.
fn waited(standings: &[Standing]) -> Span {
    let limit = standings.iter().map(Standing::limit).max();
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
