//! Ctrl-C, `kill` and a terminal that is closed: the first ends the measurement and keeps
//! everything, the second ends neph.

use neph_probe::Stop;
use neph_sys::process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Failure;

/// A flag that ctrl-C sets, and its like.
pub(crate) fn stop_on_ctrl_c() -> Result<Stop, Failure> {
    let stop = Stop::new();
    let refused =
        |signal: i32| move |error| Failure::refused(format!("listen for signal {signal}: {error}"));
    for signal in [SIGINT, SIGTERM] {
        // In this order: at the second signal the flag is already set, and neph exits.
        flag::register_conditional_shutdown(signal, 130, stop.flag())
            .and_then(|_| flag::register(signal, stop.flag()))
            .map_err(refused(signal))?;
    }
    // What nohup starts is to go on. A closed terminal is told by the kernel and by the shell, so
    // that its second signal is nobody's impatience.
    if !process::outlives_terminal() {
        flag::register(SIGHUP, stop.flag()).map_err(refused(SIGHUP))?;
    }
    Ok(stop)
}
