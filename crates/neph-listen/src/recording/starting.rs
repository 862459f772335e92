//! Starts a recording: points at agents first, then those over ssh, then the local ones.
//!
//! Owns the order, and that a point on another host records before the next one starts. Does not
//! own the points' threads (see `threads`).

use std::thread::{Scope, ScopedJoinHandle};

use super::agents::{AgentPoints, Agents};
use super::captured::{fetch, listen, open_these};
use super::course::Tally;
use super::point_text::{Host, Interface, Point, PointLocation};
use super::remote::RemotePoint;
use super::running::has_begun;
use super::started_capture::{Outcome, SharedState, StartedCapture};
use crate::{CaptureInterface, ListenError};

pub(super) type Threads<'scope> = Vec<(usize, ScopedJoinHandle<'scope, Outcome>)>;

/// The started points.
pub(super) struct Started<'scope> {
    /// Local points and points over ssh, each with its index.
    pub(super) threads: Threads<'scope>,
    /// One thread for all points at agents.
    at_agents: Option<ScopedJoinHandle<'scope, Vec<(usize, Outcome)>>>,
    /// Starts captures at agents.
    agents: Option<Box<dyn Agents>>,
    pub(super) called: Vec<RemotePoint>,
}

impl<'scope> Started<'scope> {
    /// No started points; `agents` starts captures at agents.
    pub(super) const fn new(agents: Option<Box<dyn Agents>>) -> Self {
        Self {
            threads: Vec::new(),
            at_agents: None,
            agents,
            called: Vec::new(),
        }
    }

    /// Starts the points at agents, then those over ssh, then the local ones.
    ///
    /// # Errors
    /// Why not all were started; `None` if a point ended early and has its own error.
    pub(super) fn start<'env>(
        &mut self,
        scope: &'scope Scope<'scope, 'env>,
        started: Vec<StartedCapture<'env>>,
        mut capture_interface: Vec<CaptureInterface>,
        shared: SharedState<'env>,
    ) -> Result<(), Option<ListenError>> {
        let (mut here, mut away, mut at_agents) = (Vec::new(), Vec::new(), Vec::new());
        for (index, started) in started.into_iter().enumerate() {
            match &started.point.location {
                PointLocation::Local(_) => here.push((index, started)),
                PointLocation::Remote(host, interface) => {
                    away.push((index, started, RemoteInterface { host, interface }));
                }
                PointLocation::Agent(..) => at_agents.push((index, started)),
            }
        }
        if !away.is_empty() || !at_agents.is_empty() {
            // Otherwise local packets would fill the ring and be lost while ssh asks for a
            // password.
            capture_interface.clear();
            self.order(scope, at_agents, shared)?;
            for (index, started, interface) in away {
                let tally = started.tally;
                let (ssh, thread) = call(scope, started, interface, shared)?;
                self.called.push(ssh);
                self.threads.push((index, thread));
                // One at a time, because each ssh may ask for a password.
                await_begin(tally, shared)?;
            }
            let here: Vec<&Point> = here.iter().map(|(_, started)| started.point).collect();
            capture_interface = open_these(here.into_iter(), shared.options)?;
        }
        for ((index, started), capture_interface) in here.into_iter().zip(capture_interface) {
            let thread = scope.spawn(move || listen(started, capture_interface, shared));
            self.threads.push((index, thread));
        }
        Ok(())
    }

    /// Starts the captures at agents; waits until all have started.
    fn order<'env>(
        &mut self,
        scope: &'scope Scope<'scope, 'env>,
        points: Vec<(usize, StartedCapture<'env>)>,
        shared: SharedState<'env>,
    ) -> Result<(), Option<ListenError>> {
        let Some(mut agents) = self.agents.take() else {
            return Ok(());
        };
        let tallies: Vec<&Tally> = points.iter().map(|(_, started)| started.tally).collect();
        self.at_agents = Some(scope.spawn(move || {
            let mut course = AgentPoints::of(points, shared);
            agents.capture(course.captures(), &mut course);
            course.finish()
        }));
        for tally in tallies {
            await_begin(tally, shared)?;
        }
        Ok(())
    }

    /// Waits for all points; returns their results in the order of the points.
    pub(super) fn join(self) -> Vec<Outcome> {
        let threads = self.threads.into_iter();
        let mut outcomes: Vec<(usize, Outcome)> = threads
            .map(|(index, thread)| (index, joined(thread)))
            .collect();
        outcomes.extend(self.at_agents.map(joined).into_iter().flatten());
        outcomes.sort_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

/// Waits until a point is recorded.
fn await_begin(tally: &Tally, shared: SharedState<'_>) -> Result<(), Option<ListenError>> {
    if has_begun(tally, shared.stop)? {
        Ok(())
    } else {
        Err(None)
    }
}

/// An interface of another host.
#[derive(Clone, Copy)]
struct RemoteInterface<'p> {
    host: &'p Host,
    interface: &'p Interface,
}

/// Connects to another host; a thread receives its capture.
fn call<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    started: StartedCapture<'env>,
    remote: RemoteInterface<'env>,
    shared: SharedState<'env>,
) -> Result<(RemotePoint, ScopedJoinHandle<'scope, Outcome>), ListenError> {
    let (ssh, output) = RemotePoint::begin(remote.host, remote.interface, shared.options)?;
    let host = remote.host;
    let thread = scope.spawn(move || fetch(started, host, output, shared));
    Ok((ssh, thread))
}

pub(super) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
