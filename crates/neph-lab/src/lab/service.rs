//! A service that runs: its thread, its output, its end.
//!
//! Owns starting, the ready check and stopping. The thread lives in the service's namespace as
//! long as the service does, because the kernel ends the service when its starter goes: a lab
//! whose process is killed has no services a moment later.

use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use neph_model::Span;
use neph_sys::place::Place;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::process::{self, Birth, Request};

use super::LabError;
use crate::program;
use crate::topology::{Ready, ReadyCheck, Service, Site};

/// Lines of a log that are told when its service ended.
const LAST_LINES: usize = 5;
/// How often a service that is not ready yet is asked.
const ASKING: Duration = Duration::from_millis(20);
/// How long one question may take.
const ANSWERING: Duration = Duration::from_millis(500);

/// What a service does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceState {
    /// It runs, and is not known to be ready.
    Up,
    /// It runs and answered its ready check, or has none.
    Ready,
    /// It ended; with this status, none if by a signal.
    Ended(Option<i32>),
}

/// A service of a lab that is up.
#[derive(Debug)]
pub(super) struct Running {
    name: String,
    site: String,
    log: PathBuf,
    state: Arc<Mutex<ServiceState>>,
    /// Closing it stops the service.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

/// A service's state, seen from elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) name: String,
    pub(super) site: String,
    state: Arc<Mutex<ServiceState>>,
}

impl Watched {
    /// The state in a word, and the status that it ended with.
    pub(super) fn told(&self) -> (&'static str, Option<i32>) {
        match *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            ServiceState::Up => ("up", None),
            ServiceState::Ready => ("ready", None),
            ServiceState::Ended(status) => ("ended", status),
        }
    }
}

impl Running {
    /// Starts `service` at `place`, which is at `site`, and waits until it is ready; `folder` is
    /// the lab's own.
    pub(super) fn start(
        service: &Service,
        place: Place,
        site: &Site,
        folder: &Path,
    ) -> Result<Self, LabError> {
        let log = service
            .log
            .clone()
            .unwrap_or_else(|| folder.join(format!("{}.log", service.name)));
        let failed = |source| not_run(service, source);
        let output = File::create(&log).map_err(|source| LabError::Log {
            service: service.name.clone(),
            log: log.clone(),
            source,
        })?;
        let (stopped, stop) = io::pipe().map_err(failed)?;
        let state = Arc::new(Mutex::new(ServiceState::Up));
        let (tell, told) = std::sync::mpsc::channel();
        let (own, seen) = (service.clone(), Arc::clone(&state));
        let work = move || {
            let spawned = spawn(&own, &place, output);
            match spawned {
                Err(error) => drop(tell.send(Err(error))),
                Ok(child) => {
                    // Nobody listens only if the starter is gone, and its pipe with it.
                    let _ = tell.send(Ok(place));
                    watch(child, &stopped, own.grace, &seen);
                }
            }
        };
        let thread = thread::Builder::new()
            .name(format!("service-{}", service.name))
            .spawn(work)
            .map_err(failed)?;
        let gone = |_| failed(io::Error::other("its thread ended"));
        let place = told.recv().map_err(gone)??;
        let running = Self {
            name: service.name.clone(),
            site: site.name.clone(),
            log,
            state,
            stop: Some(stop),
            thread: Some(thread),
        };
        let addresses: Vec<IpAddr> = site.addresses().collect();
        running.await_ready(service.ready.as_ref(), &place, &addresses)?;
        Ok(running)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its state, for others to look at while it runs.
    pub(super) fn watched(&self) -> Watched {
        Watched {
            name: self.name.clone(),
            site: self.site.clone(),
            state: Arc::clone(&self.state),
        }
    }

    pub(super) fn state(&self) -> ServiceState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a service that ended early did so: its status and the last lines of its log.
    pub(super) fn ended_early(&self) -> Option<LabError> {
        match self.state() {
            ServiceState::Ended(status) if status != Some(0) => Some(self.not_up(match status {
                Some(status) => format!("ended with status {status}"),
                None => "was killed".to_owned(),
            })),
            _ => None,
        }
    }

    fn await_ready(
        &self,
        ready: Option<&Ready>,
        place: &Place,
        addresses: &[IpAddr],
    ) -> Result<(), LabError> {
        let Some(ready) = ready else {
            self.now_ready();
            return Ok(());
        };
        let deadline = Instant::now() + ready.timeout.to_duration();
        let is_up = || self.state() == ServiceState::Up;
        let answered = place.run(|| {
            while is_up() && Instant::now() < deadline {
                if answers(&ready.check, addresses, deadline) {
                    return true;
                }
                thread::sleep(ASKING);
            }
            false
        })?;
        match self.state() {
            ServiceState::Ended(Some(0)) => Err(self.not_up("ended before it was ready".into())),
            ServiceState::Ended(_) => Err(self
                .ended_early()
                .unwrap_or_else(|| self.not_up("ended".into()))),
            _ if answered => {
                self.now_ready();
                Ok(())
            }
            _ => Err(self.not_up(format!("was not ready after {}", ready.timeout))),
        }
    }

    fn now_ready(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == ServiceState::Up {
            *state = ServiceState::Ready;
        }
    }

    fn not_up(&self, what: String) -> LabError {
        LabError::Service {
            service: self.name.clone(),
            what,
            log: last_lines(&self.log),
        }
    }

    /// Stops it, and waits until it has ended.
    pub(super) fn stop(mut self) {
        self.stop_now();
    }

    fn stop_now(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop_now();
    }
}

fn spawn(service: &Service, place: &Place, output: File) -> Result<Child, LabError> {
    place.enter_namespace()?;
    let failed = |source| not_run(service, source);
    let mut command = Command::new(&service.command[0]);
    command
        .args(&service.command[1..])
        .envs(&service.environment)
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(failed)?)
        .stderr(output)
        .process_group(0);
    place.arrange(Birth::default().dies_with_thread(), &mut command)?;
    command.spawn().map_err(failed)
}

fn not_run(service: &Service, source: io::Error) -> LabError {
    LabError::NotStarted {
        service: service.name.clone(),
        source: program::not_run(&service.command[0], source),
    }
}

/// Waits for the service's end, or for the word to end it; ends it then.
fn watch(mut child: Child, stop: &PipeReader, grace: Span, state: &Mutex<ServiceState>) {
    let pid = child.id();
    let ended = process::descriptor(pid);
    if let Ok(ended) = &ended {
        let mut awaited = [ended.as_fd(), stop.as_fd()].map(Awaited::readable);
        let _ = ppoll::wait(&mut awaited, None);
        if !awaited[0].is_readable() {
            let _ = process::ask_group(pid, Request::End);
            let mut last = [Awaited::readable(ended.as_fd())];
            let _ = ppoll::wait(&mut last, Some(grace.to_duration()));
        }
    }
    // Its children as well: a master's workers are in its group. Before it is waited for, so that
    // the number is still its own.
    let _ = process::ask_group(pid, Request::Kill);
    let status = child.wait().ok().and_then(|status| status.code());
    *state.lock().unwrap_or_else(PoisonError::into_inner) = ServiceState::Ended(status);
}

/// Whether the check is passed; asked in the service's namespace.
fn answers(check: &ReadyCheck, addresses: &[IpAddr], deadline: Instant) -> bool {
    match check {
        ReadyCheck::Tcp(port) => {
            let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
            let mut all = addresses.iter().chain(std::iter::once(&loopback));
            all.any(|ip| {
                TcpStream::connect_timeout(&SocketAddr::new(*ip, *port), ANSWERING).is_ok()
            })
        }
        ReadyCheck::Command(words) => says_yes(words, deadline).unwrap_or(false),
    }
}

/// Whether a program ends with status 0 in time; it is killed when the time is over.
fn says_yes(words: &[String], deadline: Instant) -> io::Result<bool> {
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Birth::default().dies_with_thread().arrange(&mut command);
    let mut child = command.spawn()?;
    let ended = process::descriptor(child.id());
    if let Ok(ended) = &ended {
        let mut awaited = [Awaited::readable(ended.as_fd())];
        let left = deadline.saturating_duration_since(Instant::now());
        ppoll::wait(&mut awaited, Some(left))?;
        if !awaited[0].is_readable() {
            child.kill()?;
        }
    }
    child.wait().map(|status| status.success())
}

/// The last lines of a log, in one line.
fn last_lines(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    match last {
        [] => format!("it wrote nothing ({})", log.display()),
        _ => format!("{} ({})", last.join(" | "), log.display()),
    }
}
