//! Samples of a capture, reported while it is made.
//!
//! Owns the thread. Which packets a sample has is neph-listen's.

use std::path::PathBuf;
use std::time::Duration;

use neph_listen::Courtesy;
use neph_listen::recording::{Sampling, kernel};
use neph_model::{PacketSample, Stop, Update};
use neph_sys::clock;

use crate::desk::Desk;

/// That the capture is over is noticed after this long, at most.
const PATIENCE: Duration = Duration::from_millis(50);

/// Reports samples of the capture at `path` until it is `over`.
pub(crate) fn report(path: PathBuf, desk: &Desk, over: &Stop) {
    let kernel = kernel();
    let mut sampling = Sampling::of(path);
    // Who is captured comes first.
    let courtesy = Courtesy::with_patience(Sampling::EVERY);
    let mut due = clock::raw().0;
    while !over.is_set() {
        courtesy.caught_up();
        clock::nap(PATIENCE);
        if clock::raw().0 < due {
            continue;
        }
        due += Sampling::EVERY.nanos();
        match sampling.sample() {
            Ok(None) => {}
            Ok(Some(pcap)) => desk.tell(Update::Sampled(PacketSample {
                kernel: kernel.clone(),
                clock: None,
                pcap,
            })),
            Err(why) => {
                // The whole capture is judged in any case.
                tracing::warn!("no more samples of a capture: {why}");
                return;
            }
        }
    }
}
