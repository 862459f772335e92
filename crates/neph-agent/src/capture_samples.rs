//! Samples of a capture, reported while it is made.
//!
//! Owns the thread. Which packets a sample has is neph-listen's.

use std::path::PathBuf;
use std::thread::{self, Scope};
use std::time::Duration;

use neph_listen::IdlePriority;
use neph_listen::recording::{Sampling, kernel};
use neph_model::{PacketSample, Stop, Update};
use neph_sys::clock;

use crate::order_context::OrderContext;

/// That the capture is over is noticed after this long, at most.
const END_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// While it lives samples are reported.
#[derive(Debug)]
pub(crate) struct SamplerGuard(Stop);

impl Drop for SamplerGuard {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Begins to report samples of the capture at `path`. Where no thread can be begun there are none.
pub(crate) fn begin<'scope>(
    scope: &'scope Scope<'scope, '_>,
    path: PathBuf,
    context: &'scope OrderContext,
) -> SamplerGuard {
    let stop = Stop::new();
    let thread_stop = stop.clone();
    let thread = thread::Builder::new().name("neph-samples".to_owned());
    if let Err(reason) = thread.spawn_scoped(scope, move || report(path, context, &thread_stop)) {
        tracing::warn!("no samples of a capture: {reason}");
    }
    SamplerGuard(stop)
}

fn report(path: PathBuf, context: &OrderContext, stop: &Stop) {
    let kernel = kernel();
    let mut sampling = Sampling::of(path);
    // The processes under capture have priority.
    let idle_priority = IdlePriority::with_patience(Sampling::EVERY);
    let mut next_sample_at = clock::raw().0;
    while !stop.is_set() {
        idle_priority.caught_up();
        clock::nap(END_POLL_INTERVAL);
        if clock::raw().0 < next_sample_at {
            continue;
        }
        match sampling.sample() {
            Ok(None) => {}
            Ok(Some(pcap)) => context.report(Update::Sampled(PacketSample {
                kernel: kernel.clone(),
                clock: None,
                pcap,
            })),
            Err(reason) => {
                // The whole capture is judged in any case.
                tracing::warn!("no more samples of a capture: {reason}");
                return;
            }
        }
        // What could not be reported in time is in this one: the next is as long as any.
        next_sample_at = clock::raw().0 + Sampling::EVERY.nanos();
    }
}
