//! Traces the flows of a fleet while they run, as [`RouteTracker`] requests.

use neph_flows::follow::{RouteTracker, TraceId, Traced, Uncompared};
use neph_model::Fleet;
use neph_probe::{Placement, ProbeError, Tracing, now, trace_flow};

/// Requested and running traces.
#[derive(Debug)]
pub(super) struct Tracers {
    tracker: RouteTracker,
    site: Option<Placement>,
    running_traces: Vec<(TraceId, Tracing)>,
}

impl Tracers {
    pub(super) fn new(fleet: &Fleet, site: Option<Placement>) -> Self {
        Self {
            tracker: RouteTracker::new(fleet),
            site,
            running_traces: Vec::new(),
        }
    }

    /// The requested routes.
    pub(super) const fn tracker(&mut self) -> &mut RouteTracker {
        &mut self.tracker
    }

    /// Starts requested traces, and returns the routes found since the last call.
    ///
    /// # Errors
    /// Tracing is not permitted. A trace that fails for another reason is omitted: the next one may
    /// succeed.
    pub(super) fn poll(&mut self) -> Result<Vec<Traced>, ProbeError> {
        while let Some(order) = self.tracker.next_trace() {
            match trace_flow(
                order.target,
                order.kind,
                order.source_port,
                self.site.as_ref(),
            ) {
                Ok(tracing) => self.running_traces.push((order.id, tracing)),
                Err(error @ ProbeError::RawForbidden { .. }) => return Err(error),
                Err(_) => self.tracker.record_failure(order.id),
            }
        }
        while let Some(index) = self
            .running_traces
            .iter()
            .position(|(_, tracing)| tracing.is_finished())
        {
            let (id, tracing) = self.running_traces.swap_remove(index);
            match tracing.join() {
                Ok(traced) => self.tracker.record_result(id, traced, now()),
                Err(error @ ProbeError::RawForbidden { .. }) => return Err(error),
                Err(_) => self.tracker.record_failure(id),
            }
        }
        Ok(self.tracker.take_certain(now()))
    }

    /// Ends all traces and returns the finished routes, and the number of path changes per endpoint
    /// that were not compared.
    pub(super) fn end(self) -> (Vec<Traced>, Vec<Uncompared>) {
        self.running_traces
            .into_iter()
            .for_each(|(_, tracing)| tracing.stop());
        self.tracker.end()
    }
}
