//! The points' threads: each writes one capture, and all end together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::Duration;

use neph_sys::deadline::wait_until;

use super::agents::Agents;
use super::captured::open_these;
use super::course::Tally;
use super::folder::Folder;
use super::point_text::Point;
use super::remote::RemotePoint;
use super::running::{Ending, wait_for_end};
use super::started_capture::{Outcome, SharedState, StartedCapture};
use super::starting::{Started, Threads};
use super::{Received, RecordingOptions};
use crate::ListenError;

/// How long a point on another host may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// Runs all points from start to end.
pub(super) fn run(
    points: &[Point],
    options: &RecordingOptions,
    folder: &mut Folder,
    agents: Option<Box<dyn Agents>>,
    received: Received<'_>,
) -> Result<(Ending, Vec<Outcome>), ListenError> {
    let max = options.count.unwrap_or(u64::MAX);
    let tally = |_| Tally::new(max, options.limit.0);
    let tallies: Vec<Tally> = points.iter().map(tally).collect();
    let is_over = AtomicBool::new(false);
    let shared = SharedState {
        options,
        is_over: &is_over,
        stop: received.stop,
        live: received.live,
    };
    // Reports interfaces that cannot be opened before other hosts are contacted.
    let capture_interface = open_these(points.iter(), options)?;
    let captures = begin_all(points, &tallies, folder)?;
    scope(|scope| {
        let mut started = Started::new(agents);
        if let Err(reason) = started.start(scope, captures, capture_interface, shared) {
            // The other points end because of this one, without an error of their own.
            is_over.store(true, Ordering::Relaxed);
            started.called.clear();
            let ended = started.join().into_iter();
            return Err(reason
                .unwrap_or_else(|| first(ended.filter_map(|outcome| outcome.fault).collect())));
        }
        report_begun(points, received);
        let ending = wait_for_end(points, &tallies, options, received);
        is_over.store(true, Ordering::Relaxed);
        started.called.iter_mut().for_each(RemotePoint::finish);
        wait(&started.threads);
        // Kills ssh processes that are still running.
        started.called.clear();
        Ok((ending, started.join()))
    })
}

fn begin_all<'a>(
    points: &'a [Point],
    tallies: &'a [Tally],
    folder: &mut Folder,
) -> Result<Vec<StartedCapture<'a>>, ListenError> {
    let begin = |(point, tally): (&'a Point, &'a Tally)| {
        let (path, file) = folder.capture(&point.name)?;
        Ok(StartedCapture {
            point,
            path,
            file,
            tally,
        })
    };
    points.iter().zip(tallies).map(begin).collect()
}

fn report_begun(points: &[Point], received: Received<'_>) {
    let names = points.iter().map(|point| {
        let location_name = point.description();
        if location_name == point.name {
            location_name
        } else {
            format!("{} ({location_name})", point.name)
        }
    });
    let names: Vec<String> = names.collect();
    (received.say)(&format!(
        "neph hops: recording {}; ctrl-C ends it",
        names.join(", ")
    ));
}

/// Waits until all threads have ended, up to a timeout.
fn wait(threads: &Threads<'_>) {
    wait_until(GRACE, || {
        threads.iter().all(|(_, thread)| thread.is_finished())
    });
}

fn first(faults: Vec<ListenError>) -> ListenError {
    let mut faults = faults.into_iter();
    faults.next().unwrap_or_else(|| {
        ListenError::refused("a point ended before it was recorded; try it alone with neph watch")
    })
}
