//! Records what one interface carries into a capture.

use std::time::Duration;

use crate::{Courtesy, Ears, ListenError, Seen, Writing};

/// That it is over is noticed after this long, at most.
const PATIENCE: Duration = Duration::from_millis(50);

/// Writes each packet until `is_over` says so, which is shown what was counted and the bytes of the
/// capture, or no more can be written. What arrived until then is written too.
pub fn record(
    ears: &mut Ears,
    writing: &mut Writing,
    mut is_over: impl FnMut(Seen, u64) -> bool,
) -> Result<(), ListenError> {
    let mut fault = Ok(());
    let courtesy = Courtesy::begin(ears.gauge());
    while fault.is_ok()
        && !ears.is_full()
        && !writing.is_refused()
        && !is_over(ears.seen(), writing.bytes())
    {
        if ears.has_all() {
            courtesy.caught_up();
        }
        fault = ears.wait(PATIENCE);
        if ears.take_some(|packet, _| writing.packet(packet)) {
            writing.flush();
            ears.count();
        }
    }
    drop(courtesy);
    ears.take_rest(|packet, _| writing.packet(packet));
    writing.flush();
    fault
}
