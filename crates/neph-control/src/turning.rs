//! A loop of the controller: whether it is to go on, and that it does.

use neph_model::Stop;
use neph_sys::pulse::Pulse;

/// What a loop asks at each turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turning<'a> {
    /// Ends it.
    pub(crate) stop: &'a Stop,
    /// Is read by the watchdog.
    pub(crate) pulse: &'a Pulse,
}

impl Turning<'_> {
    /// Whether to take another turn.
    pub(crate) fn goes_on(self) -> bool {
        self.pulse.beat();
        !self.stop.is_set()
    }
}
