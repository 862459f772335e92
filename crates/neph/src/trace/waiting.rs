//! A line that counts seconds on the terminal while a trace runs. A trace takes long if routers or
//! the target reply once per second.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::output;

/// Update interval of the line.
const TICK: Duration = Duration::from_secs(1);

/// Counts until it is dropped, then clears the line.
#[derive(Debug)]
pub(super) struct ProgressLine {
    counting: Option<(Sender<()>, JoinHandle<()>)>,
}

impl ProgressLine {
    /// Shows progress on a terminal; otherwise nothing.
    pub(super) fn begin() -> Self {
        if !output::is_lively() {
            return Self { counting: None };
        }
        let (end, ended) = mpsc::channel();
        let count = move || {
            for second in 1_u32.. {
                if ended.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
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
        let counting = thread.spawn(count).ok().map(|thread| (end, thread));
        Self { counting }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.counting.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}
