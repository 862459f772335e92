//! The clock for waiting and timestamps of a campaign.

use neph_campaign::Clock;
use neph_model::{Span, Stop, Wall};
use neph_sys::clock;

/// The clock of this host.
#[derive(Debug)]
pub(super) struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Wall {
        neph_probe::anchor().wall
    }

    fn wait_until(&self, deadline: Wall, stop: &Stop) {
        const MAX_PAUSE: Span = Span::from_millis(100);
        while !stop.is_set() {
            let remaining = Span::from_nanos(deadline.unix_nanos() - self.now().unix_nanos());
            if remaining <= Span::ZERO {
                return;
            }
            clock::nap(remaining.min(MAX_PAUSE).to_duration());
        }
    }
}
