//! The traces of a fleet's flows while they run: what [`Follow`] wants is traced, and given back to it.

use neph_flows::follow::{Follow, TraceId, Traced, Uncompared};
use neph_model::Fleet;
use neph_probe::{Place, ProbeError, Tracing, now, trace_flow};

/// What is to be traced, and what is being traced.
#[derive(Debug)]
pub(super) struct Tracers {
    follow: Follow,
    site: Option<Place>,
    running: Vec<(TraceId, Tracing)>,
}

impl Tracers {
    pub(super) fn new(fleet: &Fleet, site: Option<Place>) -> Self {
        Self {
            follow: Follow::new(fleet),
            site,
            running: Vec::new(),
        }
    }

    /// Which routes are wanted.
    pub(super) const fn wanted(&mut self) -> &mut Follow {
        &mut self.follow
    }

    /// Starts what is wanted, and hands over the routes that were found since.
    ///
    /// # Errors
    /// Where tracing is not permitted. A trace that fails otherwise is left out: the next one may
    /// find its way.
    pub(super) fn poll(&mut self) -> Result<Vec<Traced>, ProbeError> {
        while let Some(one) = self.follow.to_trace() {
            match trace_flow(one.target, one.kind, one.source_port, self.site.as_ref()) {
                Ok(tracing) => self.running.push((one.id, tracing)),
                Err(error @ ProbeError::RawForbidden { .. }) => return Err(error),
                Err(_) => self.follow.failed(one.id),
            }
        }
        while let Some(index) = self.running.iter().position(|(_, one)| one.is_finished()) {
            let (id, tracing) = self.running.swap_remove(index);
            match tracing.join() {
                Ok(traced) => self.follow.found(id, traced, now()),
                Err(error @ ProbeError::RawForbidden { .. }) => return Err(error),
                Err(_) => self.follow.failed(id),
            }
        }
        Ok(self.follow.reported(now()))
    }

    /// Nothing more comes: ends all traces, and hands over what is known of those that are over. And how
    /// many changes of each endpoint were not compared.
    pub(super) fn end(self) -> (Vec<Traced>, Vec<Uncompared>) {
        self.running.into_iter().for_each(|(_, one)| one.stop());
        self.follow.end()
    }
}
