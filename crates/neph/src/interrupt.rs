//! Ctrl-C and `kill`: the first ends the measurement and keeps everything, the second ends neph.

use neph_probe::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Failure;

/// A flag that ctrl-C sets.
pub(crate) fn stop_on_ctrl_c() -> Result<Stop, Failure> {
    let stop = Stop::new();
    for signal in [SIGINT, SIGTERM] {
        // In this order: at the second signal the flag is already set, and neph exits.
        flag::register_conditional_shutdown(signal, 130, stop.flag())
            .and_then(|_| flag::register(signal, stop.flag()))
            .map_err(|error| Failure::refused(format!("listen for signal {signal}: {error}")))?;
    }
    Ok(stop)
}
