//! A line that counts seconds on the terminal while a trace runs. A trace takes long if routers or
//! the target reply once per second.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::output;

/// Update interval of the line.
const UPDATE_INTERVAL: Duration = Duration::from_secs(1);

/// Counts until it is dropped, then clears the line.
#[derive(Debug)]
pub(super) struct ProgressLine {
    worker: Option<(Sender<()>, JoinHandle<()>)>,
}

impl ProgressLine {
    /// Shows progress on a terminal; otherwise nothing.
    pub(super) fn begin() -> Self {
        if !output::can_rewrite() {
            return Self { worker: None };
        }
        let (stop_sender, stop_receiver) = mpsc::channel();
        let update_line = move || {
            for second in 1_u32.. {
                if stop_receiver.recv_timeout(UPDATE_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                output::rewrite(&format!(
                    "neph: tracing for {second} s; ctrl-C shows the results so far"
                ));
            }
            output::rewrite("");
        };
        let thread = thread::Builder::new().name("neph-waiting".to_owned());
        // Without a thread there is no progress line.
        let worker = thread
            .spawn(update_line)
            .ok()
            .map(|thread| (stop_sender, thread));
        Self { worker }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some((stop_sender, thread)) = self.worker.take() {
            drop(stop_sender);
            let _ = thread.join();
        }
    }
}
