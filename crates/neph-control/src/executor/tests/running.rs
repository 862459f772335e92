//! A test agent on a separate thread that reconnects over any link.

use std::path::PathBuf;
use std::thread::JoinHandle;

use neph_agent::LocalExecutor;
use neph_agent::remote::{Identity, Link, ServeError, Worker, serve};
use neph_model::{Span, Stop};

use super::agent::guard;

/// Runs until it is dropped.
#[derive(Debug)]
pub(super) struct Running {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts the agent of this identity with its results in `folder`; `connect` creates a link if
    /// it can.
    pub(super) fn start(
        identity: Identity,
        folder: PathBuf,
        connect: impl Fn(&Identity) -> Option<Box<dyn Link>> + Send + 'static,
    ) -> Self {
        let stop = Stop::new();
        let ended = stop.clone();
        let thread = std::thread::spawn(move || {
            let agent = identity.name().expect("it is enrolled");
            let guard = guard(&folder, &agent, identity.authority());
            let executor = LocalExecutor::new().with_permit(guard.permit().clone());
            let mut worker = Worker::new(&folder, executor, "1", guard).expect("writable");
            while !ended.is_set() {
                let Some(mut link) = connect(&identity) else {
                    worker.work(Span::from_millis(20)).expect("writable");
                    continue;
                };
                match serve(&mut worker, link.as_mut(), &ended) {
                    Ok(()) | Err(ServeError::Link(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ended well");
        }
    }
}
