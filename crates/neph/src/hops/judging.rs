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

use neph_capture::{Hops, Mapping, Twice};
use neph_model::{Span, Wall};
use neph_probe::Stop;
use neph_sys::clock::{self, Pair};
use neph_wire::dissect::dissect;

use super::alarms::{Delay, Rules, Standing};
use super::passages::segment_names;
use super::tail::Tail;
use super::told::Told;
use super::windows::{Window, Windows};
use super::{Args, nat};
use crate::exit::Failure;
use crate::output;
use crate::recording::{Point, Recorded};
use crate::watch::courtesy::Courtesy;

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

/// The thread.
#[derive(Debug)]
pub(super) struct Judging {
    captures: Sender<Vec<PathBuf>>,
    over: Stop,
    thread: JoinHandle<Told>,
}

/// What it knows.
#[derive(Debug)]
struct Judge {
    /// Of the points that it reads: the place of each in the path.
    places: Vec<usize>,
    /// Translators' rules, by the place among these.
    mappings: Vec<(usize, Mapping)>,
    longest: i64,
    standings: Vec<Standing>,
    /// When the first of them saw its first packet.
    began: Option<i64>,
    over: Stop,
    told: Told,
}

/// What is judged when the recording is over, and not before.
#[derive(Debug, Default)]
struct Left {
    /// Segments that rules are about.
    segments: Vec<String>,
    /// Rules about other segments, as they were typed.
    rules: Vec<String>,
}

impl Judging {
    /// Begins to wait for captures of these points. Says what it leaves to the end.
    ///
    /// # Errors
    /// A rule is written wrongly.
    pub(super) fn begin(args: &Args, points: &[Point], stop: &Stop) -> Result<Self, Failure> {
        let over = Stop::new();
        let (judge, left) = Judge::of(args, points, (stop, &over))?;
        left.say();
        let (captures, heard) = channel();
        Ok(Self {
            captures,
            over,
            thread: thread::spawn(move || judge.run(&heard)),
        })
    }

    /// Where the captures will be, of all points.
    pub(super) fn hear(&self, recorded: &[Recorded]) {
        let files = recorded.iter().map(|point| point.file.clone());
        // One that has nothing to judge does not listen.
        let _ = self.captures.send(files.collect());
    }

    /// The recording is over; what was told.
    pub(super) fn end(self) -> Told {
        self.over.set();
        drop(self.captures);
        let ended = self.thread.join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Left {
    fn say(&self) {
        if !self.segments.is_empty() {
            output::say(&format!(
                "neph hops: alarms on {} are judged when the recording is over: while it lasts only \
                 interfaces of this machine with no point elsewhere before them are known to have the \
                 first point's clock",
                self.segments.join(", ")
            ));
        }
        for rule in &self.rules {
            output::say(&format!(
                "neph hops: --alarm '{rule}' is judged when the recording is over: while it lasts no \
                 packet is waited for longer than {WAITED_MOST}"
            ));
        }
    }
}

impl Judge {
    /// Of these points; and what is left to the end.
    fn of(
        args: &Args,
        points: &[Point],
        (stop, over): (&Stop, &Stop),
    ) -> Result<(Self, Left), Failure> {
        let names: Vec<String> = points.iter().map(|point| point.name.clone()).collect();
        let places = (0..points.len()).filter(|place| points[*place].is_here());
        let places: Vec<usize> = places.collect();
        let mut mappings = Vec::new();
        for rule in &args.nat {
            let (point, mapping) = nat(rule, &names)?;
            let among = places.iter().position(|place| *place == point);
            mappings.extend(among.map(|among| (among, mapping)));
        }
        let rules = Rules::parse(&args.alarms, &names)?;
        // Alarms stand by the first point's clock.
        let is_here = |segment: usize| points[..=segment + 1].iter().all(Point::is_here);
        let segments = segment_names(&names).into_iter().enumerate();
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
            began: None,
            over: over.clone(),
            told: Told::nothing(args, stop),
        };
        Ok((judge, left))
    }

    fn run(mut self, captures: &Receiver<Vec<PathBuf>>) -> Told {
        if self.standings.is_empty() {
            return self.told;
        }
        // None where the recording came to nothing.
        if let Ok(files) = captures.recv() {
            let files = self.places.iter().filter_map(|place| files.get(*place));
            let tails: Vec<Tail> = files.cloned().map(Tail::of).collect();
            if let Err(why) = self.follow(tails) {
                output::say(&format!(
                    "neph hops: {why}; alarms are judged when the recording is over"
                ));
            }
        }
        self.told
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
            for standing in &mut self.standings {
                if standing.is_of(segment, crossed.way)
                    && let Some(found) = standing.count(delay, began)
                {
                    self.told.tell_live(found);
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
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::Parser;
    use neph_sys::clock::{RawNanos, WallNanos};
    use neph_wire::capture::{RAW_IP, pcap_header, pcap_record};

    use super::*;

    const MILLI: i64 = 1_000_000;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// Of a command line of live points.
    fn judge(line: &str) -> (Judge, Left) {
        let args = Line::try_parse_from(line.split(' ')).expect("options").args;
        let points = args.points.iter();
        let points =
            points.map(|text| Point::parse(text).expect("a good one").expect("a live one"));
        let points: Vec<Point> = points.collect();
        Judge::of(&args, &points, (&Stop::new(), &Stop::new())).expect("a good rule")
    }

    #[test]
    fn segments_between_interfaces_here_are_judged_and_others_left() {
        let line = "neph a=iface:lo b=iface:lo c=ssh:host/eth0 --alarm";
        let rule = |subject: &str| format!("{line}={subject}>2ms\u{a0}p99");
        let (any, left) = judge(&rule("segment"));
        assert_eq!(
            (any.standings.len(), left.segments),
            (2, vec!["b - c".to_owned()])
        );
        let (one, left) = judge(&rule("a\u{a0}-\u{a0}b"));
        assert_eq!((one.standings.len(), left.segments.len()), (2, 0));
        assert_eq!(left.rules.len(), 0);
    }

    #[test]
    fn a_limit_as_long_as_any_packet_is_waited_for_is_left_and_makes_none_wait() {
        let line = "neph a=iface:lo b=iface:lo c=ssh:host/eth0";
        let (short, left) = judge(&format!(
            "{line} --alarm=segment>2ms\u{a0}p99 --alarm=segment>10s\u{a0}p50 --alarm=b\u{a0}-\u{a0}c>20s\u{a0}p50"
        ));
        assert_eq!(left.rules, ["segment>10s\u{a0}p50"]);
        assert_eq!(left.segments, ["b - c"]);
        assert_eq!(short.standings.len(), 2);
        assert_eq!(short.longest, 1_004 * MILLI);
        let (long, left) = judge("neph a=iface:lo b=iface:lo --alarm=segment>9999ms\u{a0}p50");
        assert!(left.rules.is_empty());
        assert_eq!(long.longest, 10_000 * MILLI);
    }

    #[test]
    fn behind_a_point_elsewhere_no_segment_has_the_first_points_clock_yet() {
        let line = "neph a=ssh:host/eth0 b=iface:lo c=iface:lo --alarm=segment>2ms\u{a0}p99";
        let (judge, left) = judge(line);
        assert!(judge.standings.is_empty());
        assert_eq!(left.segments, ["a - b", "b - c"]);
    }

    /// Datagrams one way each 100 ms from a second on, in a point that they pass so much later.
    fn capture(path: &Path, later: i64) {
        let mut bytes = pcap_header(RAW_IP, 64).to_vec();
        for number in 10..60_u8 {
            let mut packet = vec![0x45, 0, 0, 28, 0, number, 0x40, 0, 64, 17, 0, 0];
            packet.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9, 0, 8, 0, 0]);
            bytes.extend(pcap_record(i64::from(number) * 100 * MILLI + later, 28, 28));
            bytes.extend(packet);
        }
        fs::write(path, bytes).expect("a file");
    }

    #[test]
    fn a_window_of_slow_packets_raises_it_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let line =
            "neph a=iface:lo b=iface:lo --alarm=segment\u{a0}>\u{a0}2ms\u{a0}p50\u{a0}for\u{a0}1s";
        let (mut judge, _) = judge(line);
        let tails = [("a.pcap", 0), ("b.pcap", 5 * MILLI)].map(|(name, later)| {
            let path = folder.path().join(name);
            capture(&path, later);
            Tail::of(path)
        });
        let mut tails = Vec::from(tails);
        let mut windows = Windows::begin(1_000 * MILLI, judge.longest);
        let mut alarmed = Vec::new();
        while let Some(window) = windows.next(9_000 * MILLI) {
            judge.look(&window, &mut tails).expect("captures");
            alarmed.push(judge.told.is_alarmed());
        }
        // Of the second after the first packet it is known when another one came: in the first window.
        assert_eq!(alarmed, [true; 3]);
        assert_eq!(judge.began, Some(1_000 * MILLI));
        assert_eq!(judge.told.found().len(), 1);
    }

    #[test]
    fn a_clock_that_runs_otherwise_is_not_set_and_one_that_jumps_is() {
        let at = |raw: i64, wall: i64| Pair {
            raw: RawNanos(raw * MILLI),
            wall: WallNanos(wall * MILLI),
            doubt: 0,
        };
        assert!(!is_set(at(0, 5_000), at(100, 5_110)));
        assert!(is_set(at(0, 5_000), at(100, 4_800)));
        assert!(is_set(at(0, 5_000), at(100, 9_000)));
    }
}
