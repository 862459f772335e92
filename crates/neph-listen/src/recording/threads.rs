//! The points' threads: each writes one capture, and all end together.

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle, scope};
use std::time::Duration;

use neph_model::Wall;
use neph_sys::clock;
use neph_sys::deadline::wait_until;

use super::course::Tally;
use super::elsewhere::{Elsewhere, Output};
use super::folder::Folder;
use super::point::record;
use super::relay::relay;
use super::running::{Ending, has_begun, wait_for_end};
use super::spelling::{Host, Interface, Point, Spot};
use super::{Heard, Recorded, RecordingOptions};
use crate::ListenError;
use crate::{CaptureFile, Ears, Listening, Way, Writing};
use neph_text::counted::counted;

/// How long who is elsewhere may take to end.
const GRACE: Duration = Duration::from_secs(10);
/// A number that the kernel makes anew each time it starts.
const KERNEL: &str = "/proc/sys/kernel/random/boot_id";

/// What a point's thread leaves.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) recorded: Recorded,
    pub(super) fault: Option<ListenError>,
}

/// What all threads share.
#[derive(Clone, Copy)]
struct Shared<'a> {
    options: &'a RecordingOptions,
    is_over: &'a AtomicBool,
}

/// A capture that was begun, and for whom.
struct Begun<'a> {
    point: &'a Point,
    path: PathBuf,
    file: CaptureFile,
    tally: &'a Tally,
}

type Threads<'scope> = Vec<(usize, ScopedJoinHandle<'scope, Outcome>)>;

/// Runs all points from their beginning to their end.
pub(super) fn run(
    points: &[Point],
    options: &RecordingOptions,
    folder: &mut Folder,
    heard: Heard<'_>,
) -> Result<(Ending, Vec<Outcome>), ListenError> {
    let most = options.count.unwrap_or(u64::MAX);
    let tally = |_| Tally::new(most, options.limit.0);
    let tallies: Vec<Tally> = points.iter().map(tally).collect();
    let is_over = AtomicBool::new(false);
    let shared = Shared {
        options,
        is_over: &is_over,
    };
    // What cannot be opened is told before anybody is called.
    let mut ears = open_all(points, options)?;
    let begun = begin_all(points, &tallies, folder)?.into_iter();
    let is_here = |(_, begun): &(usize, Begun<'_>)| matches!(begun.point.spot, Spot::Here(_));
    let (here, away): (Vec<_>, Vec<_>) = begun.enumerate().partition(is_here);
    scope(|scope| {
        let (mut threads, mut called) = (Vec::new(), Vec::new());
        if !away.is_empty() {
            // Packets here would pile up, and be lost, while ssh asks for a password.
            ears.clear();
            for (place, begun) in away {
                let Spot::Elsewhere(host, interface) = &begun.point.spot else {
                    continue;
                };
                let tally = begun.tally;
                let (ssh, thread) = call(scope, begun, There { host, interface }, shared)?;
                called.push(ssh);
                threads.push((place, thread));
                // One after the other: each may ask.
                if !has_begun(tally, heard.stop)? {
                    // The others end now because of this one: that is no fault of theirs.
                    is_over.store(true, Ordering::Relaxed);
                    drop(called);
                    let faults = threads
                        .into_iter()
                        .filter_map(|(_, thread)| joined(thread).fault);
                    return Err(first(faults.collect()));
                }
            }
            ears = open_all(points, options)?;
        }
        for ((place, begun), ears) in here.into_iter().zip(ears) {
            threads.push((place, scope.spawn(move || listen(begun, ears, shared))));
        }
        say_begun(points, heard);
        let ending = wait_for_end(points, &tallies, options, heard);
        is_over.store(true, Ordering::Relaxed);
        called.iter_mut().for_each(Elsewhere::finish);
        wait(&threads);
        // Who holds on is killed.
        drop(called);
        threads.sort_by_key(|(place, _)| *place);
        let outcomes = threads.into_iter().map(|(_, thread)| joined(thread));
        Ok((ending, outcomes.collect()))
    })
}

/// An interface of another host.
#[derive(Clone, Copy)]
struct There<'p> {
    host: &'p Host,
    interface: &'p Interface,
}

/// Calls another host; a thread takes its capture.
fn call<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    begun: Begun<'env>,
    there: There<'env>,
    shared: Shared<'env>,
) -> Result<(Elsewhere, ScopedJoinHandle<'scope, Outcome>), ListenError> {
    let (ssh, output) = Elsewhere::begin(there.host, there.interface, shared.options)?;
    let host = there.host;
    let thread = scope.spawn(move || fetch(begun, host, output, shared));
    Ok((ssh, thread))
}

/// The interfaces here, opened, in the order of their points.
fn open_all(points: &[Point], options: &RecordingOptions) -> Result<Vec<Ears>, ListenError> {
    let wanted = options.choice.wanted();
    let open = |point: &Point| match &point.spot {
        Spot::Here(Interface { name, site }) => Some(Ears::open(&Listening {
            interface: name,
            site: site.as_deref(),
            elsewhere: "iface:INTERFACE@SITE",
            kept: options.snaplen,
            ring: options.ring,
            most: options.count.unwrap_or(u64::MAX),
            wanted: &wanted,
            way: Some(Way::Ring),
        })),
        Spot::Elsewhere(..) => None,
    };
    points.iter().filter_map(open).collect()
}

fn begin_all<'a>(
    points: &'a [Point],
    tallies: &'a [Tally],
    folder: &mut Folder,
) -> Result<Vec<Begun<'a>>, ListenError> {
    let begin = |(point, tally): (&'a Point, &'a Tally)| {
        let (path, file) = folder.capture(&point.name)?;
        Ok(Begun {
            point,
            path,
            file,
            tally,
        })
    };
    points.iter().zip(tallies).map(begin).collect()
}

fn say_begun(points: &[Point], heard: Heard<'_>) {
    let told = points.iter().map(|point| {
        let place = point.told();
        if place == point.name {
            place
        } else {
            format!("{} ({place})", point.name)
        }
    });
    let told: Vec<String> = told.collect();
    (heard.say)(&format!(
        "neph hops: recording {}; ctrl-C ends it",
        told.join(", ")
    ));
}

/// Waits until all threads are done, or nearly forever.
fn wait(threads: &Threads<'_>) {
    wait_until(GRACE, || {
        threads.iter().all(|(_, thread)| thread.is_finished())
    });
}

fn joined(thread: ScopedJoinHandle<'_, Outcome>) -> Outcome {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn first(faults: Vec<ListenError>) -> ListenError {
    let mut faults = faults.into_iter();
    faults.next().unwrap_or_else(|| {
        ListenError::refused("a point ended before it was recorded; try it alone with neph watch")
    })
}

fn now() -> Wall {
    Wall::from_unix_nanos(clock::wall().0)
}

/// Records an interface here.
fn listen(begun: Begun<'_>, mut ears: Ears, shared: Shared<'_>) -> Outcome {
    let Begun {
        point,
        path,
        file,
        tally,
    } = begun;
    let (link, kept) = ears.format();
    let mut writing = Writing::with_header(file, link, kept);
    tally.begun();
    let (from, mut until) = (now(), None);
    let recorded = record(&mut ears, &mut writing, |seen, bytes| {
        tally.counted(seen.packets, bytes);
        tally.lost(seen.lost);
        let is_over = tally.is_enough() || shared.is_over.load(Ordering::Relaxed);
        // What has passed by now is still taken.
        until = is_over.then(now);
        is_over
    });
    let until = until.filter(|_| !ears.is_full() && !writing.is_refused());
    let seen = ears.seen();
    let packets = writing.packets();
    tally.counted(seen.packets, writing.bytes());
    tally.ended();
    let kernel = fs::read_to_string(KERNEL).unwrap_or_default();
    Outcome {
        recorded: Recorded {
            name: point.name.clone(),
            file: path,
            host: kernel.trim().to_owned(),
            packets,
            lost: Some(seen.lost + seen.packets.saturating_sub(packets)),
            listened: until.map(|until| [from, until]),
        },
        fault: recorded.err().or_else(|| {
            let refused = writing.close().err()?;
            Some(unwritten(&point.name, packets, &refused, shared.options))
        }),
    }
}

/// Takes the capture of a point elsewhere.
fn fetch(begun: Begun<'_>, host: &Host, output: Output, shared: Shared<'_>) -> Outcome {
    let Begun {
        point,
        path,
        mut file,
        tally,
    } = begun;
    let ((relayed, was_asked), said) = output.read(|capture| {
        let relayed = relay(capture, &mut file, tally);
        let was_asked = shared.is_over.load(Ordering::Relaxed);
        tally.ended();
        (relayed, was_asked)
    });
    file.flush();
    let packets = file.packets();
    let destination = &host.destination;
    let fault = match (relayed, file.close()) {
        (Err(error), _) => Some(ListenError::refused(format!(
            "{}: {error}; what a login at {destination} prints must go to standard error",
            point.name
        ))),
        (Ok(()), Err(refused)) => Some(unwritten(&point.name, packets, &refused, shared.options)),
        (Ok(()), Ok(())) if was_asked => None,
        (Ok(()), Ok(())) => Some(ListenError::refused(format!(
            "{}: {}",
            point.name,
            said.why(destination)
        ))),
    };
    Outcome {
        recorded: Recorded {
            name: point.name.clone(),
            file: path,
            host: said.kernel().unwrap_or(destination).to_owned(),
            packets,
            lost: said.lost(),
            listened: None,
        },
        fault,
    }
}

/// What is to be said of a capture that takes no more. It may be gone when this is read: where there
/// was no room for it stays.
fn unwritten(
    name: &str,
    packets: u64,
    error: &io::Error,
    options: &RecordingOptions,
) -> ListenError {
    let (folder, other) = match &options.save {
        Some(folder) => (folder.clone(), "--save"),
        None => (env::temp_dir(), "TMPDIR, or --save FOLDER"),
    };
    ListenError::refused(format!(
        "{name}: write in {}: {error}; its capture ended with {}: make room there, name another folder \
         ({other}), or keep less of each packet (--snaplen)",
        folder.display(),
        counted(packets, "packet")
    ))
}
