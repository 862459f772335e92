//! Records one interface into a capture.

use std::time::Duration;

use crate::{CaptureCounters, CaptureInterface, IdlePriority, ListenError, Writing};

/// Maximum time until the end is noticed.
const PATIENCE: Duration = Duration::from_millis(50);

/// Writes packets until a write fails or `is_over` returns true; it gets the counters and the size
/// of the capture. Packets that arrived before the end are written, too.
pub fn record(
    capture_interface: &mut CaptureInterface,
    writing: &mut Writing,
    mut is_over: impl FnMut(CaptureCounters, u64) -> bool,
) -> Result<(), ListenError> {
    let mut fault = Ok(());
    let idle_priority = IdlePriority::begin(capture_interface.gauge());
    while fault.is_ok()
        && !capture_interface.is_full()
        && !writing.is_refused()
        && !is_over(capture_interface.counters(), writing.bytes())
    {
        if capture_interface.has_all() {
            idle_priority.caught_up();
        }
        fault = capture_interface.wait(PATIENCE);
        if capture_interface.take_some(|packet, _| writing.packet(packet)) {
            writing.flush();
            capture_interface.count();
        }
    }
    drop(idle_priority);
    capture_interface.take_rest(|packet, _| writing.packet(packet));
    writing.flush();
    fault
}
