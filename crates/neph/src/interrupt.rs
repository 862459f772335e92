//! Ctrl-C, `kill` and a closed terminal: the first signal ends the measurement and keeps all
//! results, the second ends neph.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use neph_model::Stop;
use neph_sys::process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::exit::Failure;
use crate::output;

/// Exit status after a second ctrl-C.
const INTERRUPTED_STATUS: i32 = 130;

/// The message when a second ctrl-C ends neph: what happens to the results so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecondInterruptMessage(Arc<Mutex<Option<String>>>);

impl SecondInterruptMessage {
    /// Sets the message, or removes it.
    pub(crate) fn set(&self, text: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn print(&self) {
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = &*text {
            output::say(text);
        }
    }
}

/// A flag that ctrl-C and similar signals set.
pub(crate) fn stop_on_ctrl_c() -> Result<Stop, Failure> {
    let stop = Stop::new();
    for signal in [SIGINT, SIGTERM] {
        // The order matters: at the second signal the flag is already set, and neph exits.
        flag::register_conditional_shutdown(signal, INTERRUPTED_STATUS, stop.flag())
            .and_then(|_| flag::register(signal, stop.flag()))
            .map_err(signal_failure(signal))?;
    }
    stop_when_terminal_closes(&stop)?;
    Ok(stop)
}

/// As above; on the second signal neph prints its final message before it exits.
pub(crate) fn stop_on_ctrl_c_with_message(
    second_interrupt: &SecondInterruptMessage,
) -> Result<Stop, Failure> {
    let stop = Stop::new();
    let (mut signals, handler) = UnixStream::pair()
        .map_err(|error| Failure::refused(format!("listen for signals: {error}")))?;
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, stop.flag())
            .and_then(|_| low_level::pipe::register(signal, handler.try_clone()?))
            .map_err(signal_failure(signal))?;
    }
    stop_when_terminal_closes(&stop)?;
    let second_interrupt = second_interrupt.clone();
    // A signal handler must not print: each signal writes a byte to this pipe.
    thread::spawn(move || {
        if signals.read_exact(&mut [0; 2]).is_ok() {
            second_interrupt.print();
            low_level::exit(INTERRUPTED_STATUS);
        }
    });
    Ok(stop)
}

fn signal_failure(signal: i32) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::refused(format!("listen for signal {signal}: {error}"))
}

fn stop_when_terminal_closes(stop: &Stop) -> Result<(), Failure> {
    // Processes under nohup continue. The kernel and the shell each send a signal for a closed
    // terminal, so the second signal does not come from the user.
    if !process::outlives_terminal() {
        flag::register(SIGHUP, stop.flag()).map_err(signal_failure(SIGHUP))?;
    }
    Ok(())
}
