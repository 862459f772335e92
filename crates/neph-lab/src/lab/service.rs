//! A running service: its thread, its output, its end.
//!
//! Owns starting and stopping; [`ready`] has the ready check, [`log`] the output. The thread lives in the
//! service's namespace as long as the service: the kernel ends the service with its starter. So a lab whose
//! process is killed has no services a moment later.

mod log;
mod ready;
mod watch;

use std::fs::{File, OpenOptions};
use std::io::{self, PipeWriter};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use neph_sys::files::NO_FOLLOW;
use neph_sys::place::Placement;
use neph_sys::process::{self, ChildOptions};

use super::LabError;
use crate::program;
use crate::topology::{Ready, Service, Site};
use log::Output;
use ready::WaitLimit;

/// The state of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceState {
    /// It runs, and is not known to be ready.
    Up,
    /// It runs and passed its ready check, or has none.
    Ready,
    /// It ended with this status; `None` if by a signal.
    Ended(Option<i32>),
}

/// A service of a lab that is up.
#[derive(Debug)]
pub(super) struct RunningService {
    name: String,
    site: String,
    log: PathBuf,
    state: Arc<Mutex<ServiceState>>,
    /// Closing it stops the service.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

/// The state of a service for other threads.
#[derive(Clone, Debug)]
pub(super) struct ServiceHandle {
    pub(super) name: String,
    pub(super) site: String,
    state: Arc<Mutex<ServiceState>>,
}

impl ServiceHandle {
    /// The state as a word, and the exit status.
    pub(super) fn status(&self) -> (&'static str, Option<i32>) {
        match *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            ServiceState::Up => ("up", None),
            ServiceState::Ready => ("ready", None),
            ServiceState::Ended(status) => ("ended", status),
        }
    }
}

impl RunningService {
    /// Starts `service` at `placement`, which is at `site`, and waits until it is ready; `folder` is that of the
    /// lab. Stops waiting when `stop_requested` is set.
    pub(super) fn start(
        service: &Service,
        placement: Placement,
        site: &Site,
        folder: &Path,
        stop_requested: &AtomicBool,
    ) -> Result<Self, LabError> {
        let failed = |source| start_error(service, source);
        let (log, output, writer) = open_log(service, folder)?;
        let (stop_reader, stop) = io::pipe().map_err(failed)?;
        let state = Arc::new(Mutex::new(ServiceState::Up));
        let (report, receiver) = std::sync::mpsc::channel();
        let (spawned_service, thread_state) = (service.clone(), Arc::clone(&state));
        let work = move || {
            let spawned = spawn(&spawned_service, &placement, writer);
            match spawned {
                Err(error) => drop(report.send(Err(error))),
                Ok(child) => {
                    // There is no receiver only if the starter has ended, and its pipe with it.
                    let _ = report.send(Ok(placement));
                    watch::watch(
                        child,
                        &stop_reader,
                        spawned_service.grace,
                        output,
                        &thread_state,
                    );
                }
            }
        };
        let thread = thread::Builder::new()
            .name(format!("service-{}", service.name))
            .spawn(work)
            .map_err(failed)?;
        let thread_ended = |_| failed(io::Error::other("its thread ended"));
        let placement = receiver.recv().map_err(thread_ended)??;
        let running = Self {
            name: service.name.clone(),
            site: site.name.clone(),
            log,
            state,
            stop: Some(stop),
            thread: Some(thread),
        };
        let addresses: Vec<IpAddr> = site.addresses().collect();
        let ready = service.ready.as_ref();
        let wait_limit = ready.map(|ready| (ready, WaitLimit::new(ready, stop_requested)));
        running.wait_until_ready(wait_limit, &placement, &addresses)?;
        Ok(running)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its state for other threads.
    pub(super) fn handle(&self) -> ServiceHandle {
        ServiceHandle {
            name: self.name.clone(),
            site: self.site.clone(),
            state: Arc::clone(&self.state),
        }
    }

    pub(super) fn state(&self) -> ServiceState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a service ended early: its status and the last lines of its log.
    pub(super) fn ended_early(&self) -> Option<LabError> {
        match self.state() {
            ServiceState::Ended(status) if status != Some(0) => {
                Some(self.not_ready_error(match status {
                    Some(status) => format!("ended with status {status}"),
                    None => "was killed".to_owned(),
                }))
            }
            _ => None,
        }
    }

    fn wait_until_ready(
        &self,
        ready: Option<(&Ready, WaitLimit<'_>)>,
        placement: &Placement,
        addresses: &[IpAddr],
    ) -> Result<(), LabError> {
        let Some((ready, wait_limit)) = ready else {
            self.mark_ready();
            return Ok(());
        };
        let is_up = || self.state() == ServiceState::Up;
        let is_ready = placement
            .run(|| ready::wait_until_ready(&ready.check, addresses, wait_limit, is_up))?;
        match self.state() {
            ServiceState::Ended(Some(0)) => {
                Err(self.not_ready_error("ended before it was ready".into()))
            }
            ServiceState::Ended(_) => Err(self
                .ended_early()
                .unwrap_or_else(|| self.not_ready_error("ended".into()))),
            _ if is_ready => {
                self.mark_ready();
                Ok(())
            }
            _ => Err(self.not_ready_error(format!("was not ready after {}", ready.timeout))),
        }
    }

    fn mark_ready(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == ServiceState::Up {
            *state = ServiceState::Ready;
        }
    }

    fn not_ready_error(&self, problem: String) -> LabError {
        LabError::ServiceFailed {
            service: self.name.clone(),
            problem,
            log: log::last_lines(&self.log),
        }
    }

    /// Stops it, and waits until it has ended.
    pub(super) fn stop(mut self) {
        self.stop_and_join();
    }

    fn stop_and_join(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for RunningService {
    fn drop(&mut self) {
        self.stop_and_join();
    }
}

/// Where the output of `service` is kept, what forwards it, and where the service writes. In /run, which is
/// memory, its size is limited; a file of the user has no limit.
fn open_log(
    service: &Service,
    folder: &Path,
) -> Result<(PathBuf, Option<Output>, OwnedFd), LabError> {
    let failed = |log: &Path, source| LabError::ServiceLog {
        service: service.name.clone(),
        log: log.to_owned(),
        source,
    };
    if let Some(log) = &service.log {
        let file = truncate_file(log).map_err(|source| failed(log, source))?;
        return Ok((log.clone(), None, file.into()));
    }
    let log = folder.join(format!("{}.log", service.name));
    let (output, writer) = Output::create(&log).map_err(|source| failed(&log, source))?;
    Ok((log, Some(output), writer.into()))
}

/// The user's file for output, truncated. Symbolic links are not followed, because this may be root.
fn truncate_file(log: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(NO_FOLLOW)
        .open(log)
}

fn spawn(service: &Service, placement: &Placement, output: OwnedFd) -> Result<Child, LabError> {
    placement.enter_namespace()?;
    let failed = |source| start_error(service, source);
    let mut command = process::command(&service.command[0]);
    command
        .args(&service.command[1..])
        .envs(&service.environment)
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(failed)?)
        .stderr(output)
        .process_group(0);
    placement.arrange(ChildOptions::default().dies_with_thread(), &mut command)?;
    command.spawn().map_err(failed)
}

fn start_error(service: &Service, source: io::Error) -> LabError {
    LabError::ServiceNotStarted {
        service: service.name.clone(),
        source: program::not_run(&service.command[0], source),
    }
}
