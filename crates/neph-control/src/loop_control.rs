//! Stop flag and pulse of a controller's loop.

use neph_model::Stop;
use neph_sys::pulse::Pulse;

/// Checked by a loop at each turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopControl<'a> {
    /// Ends the loop.
    pub(crate) stop: &'a Stop,
    /// Read by the watchdog.
    pub(crate) pulse: &'a Pulse,
}

impl LoopControl<'_> {
    /// Whether to continue; also pulses.
    pub(crate) fn should_continue(self) -> bool {
        self.pulse.beat();
        !self.stop.is_set()
    }
}
