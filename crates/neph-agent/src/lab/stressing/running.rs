//! One load that runs: `neph execute`, in a guest through its console, otherwise as a process in the
//! site's share of the machine.
//!
//! Owns starting it, waiting until it works, and its end. A process of this machine ends with this one,
//! even if that is killed; one of a guest ends with its guest.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::mpsc;
use std::thread;

use neph_lab::{Console, Lab, LabError};
use neph_model::{Instant, Local, Order, SiteLoad, Span};
use neph_sys::place::{PlaceError, Placement};
use neph_sys::ppoll::{self, Awaited};
use neph_sys::process::{self, ChildOptions, Request};

use neph_load::RUNNING_LINE;

/// A load that was started.
#[derive(Debug)]
pub(super) struct RunningLoad {
    /// What was requested.
    pub(super) requested: SiteLoad,
    /// It did not work in the time that it had for that.
    pub(super) is_late: bool,
    process: LoadProcess,
}

#[derive(Debug)]
enum LoadProcess {
    Guest(Remote),
    Here(LocalLoad),
}

/// A process of a guest.
#[derive(Debug)]
struct Remote {
    /// Its number there.
    process: u32,
    /// The file of its results, without the extension; a pipe next to it has its messages.
    file: String,
}

/// A process of this machine.
#[derive(Debug)]
struct LocalLoad {
    child: Child,
    /// Its messages, until the time to wait for them is over.
    stderr: Option<ChildStderr>,
    /// Keeps the thread that started it: the kernel ends the process with that one.
    _starter: mpsc::Sender<()>,
}

/// What kept a load from being made.
#[derive(Debug, thiserror::Error)]
pub(super) enum StressError {
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("start neph execute: {0}")]
    NotStarted(#[from] io::Error),
    #[error("it does not say which process it is")]
    NoProcessId,
}

impl RunningLoad {
    /// Starts it by this order; `number` distinguishes it from the others.
    pub(super) fn start(
        requested: &SiteLoad,
        lab: &Lab,
        number: usize,
        order: &Order,
    ) -> Result<Self, StressError> {
        let process = match Lab::console(lab.name(), &requested.site)? {
            Some(console) => LoadProcess::Guest(Remote::start(console, number, order)?),
            None => LoadProcess::Here(LocalLoad::start(lab.placement(&requested.site)?, order)?),
        };
        let requested = requested.clone();
        Ok(Self {
            requested,
            is_late: false,
            process,
        })
    }

    /// Waits until it works, at most until then; whether it does.
    pub(super) fn works_by(
        &mut self,
        until: Instant<Local>,
        lab: &Lab,
    ) -> Result<bool, StressError> {
        match &mut self.process {
            LoadProcess::Guest(remote) => {
                let console = Lab::console(lab.name(), &self.requested.site)?;
                console.map_or(Ok(false), |console| remote.works_by(until, console))
            }
            LoadProcess::Here(here) => Ok(here.works_by(until)?),
        }
    }

    /// Ends it; returns its report.
    pub(super) fn end(mut self, lab: &Lab) -> Result<Vec<u8>, StressError> {
        match &mut self.process {
            LoadProcess::Guest(remote) => {
                let console = Lab::console(lab.name(), &self.requested.site)?;
                console.map_or_else(|| Ok(Vec::new()), |console| remote.end(console))
            }
            LoadProcess::Here(here) => Ok(here.end()?),
        }
    }
}

impl Remote {
    fn start(mut console: Console, number: usize, order: &Order) -> Result<Self, StressError> {
        let file = format!("/tmp/stress{number}");
        let line = format!(
            "rm -f {file}.*; mkfifo {file}.state; printf %s '{}' >{file}.order; neph execute - \
             <{file}.order >{file}.json 2<>{file}.state & echo $!",
            shell_quoted(order)?
        );
        let mut output = Vec::new();
        console.run(&line, &mut output).map_err(LabError::from)?;
        let process = String::from_utf8_lossy(&output).trim().parse();
        let process = process.map_err(|_| StressError::NoProcessId)?;
        Ok(Self { process, file })
    }

    /// Asks for no processor meanwhile: a load that has all of it would be kept from its target.
    fn works_by(&self, until: Instant<Local>, mut console: Console) -> Result<bool, StressError> {
        let remaining = (until - neph_probe::now()).nanos();
        let seconds = remaining.div_euclid(1_000_000_000).max(0) + 1;
        let line = format!(
            "while read -r -t {seconds} line; do [ \"$line\" = '{RUNNING_LINE}' ] && exit; done \
             <>{}.state; exit 1",
            self.file
        );
        let status = console.run(&line, &mut io::sink());
        Ok(status.map_err(LabError::from)? == 0)
    }

    fn end(&self, mut console: Console) -> Result<Vec<u8>, StressError> {
        let Self { process, file } = self;
        let line = format!(
            "kill {process}; for try in $(seq 3000); do [ -s {file}.json ] && break; \
             kill -0 {process} || break; usleep 10000; done 2>/dev/null; cat {file}.json"
        );
        let mut output = Vec::new();
        console.run(&line, &mut output).map_err(LabError::from)?;
        Ok(output)
    }
}

/// An order as a shell takes it between single quotes.
fn shell_quoted(order: &Order) -> io::Result<String> {
    let text = serde_json::to_string(order)?;
    Ok(text.replace('\'', "\\u0027"))
}

impl LocalLoad {
    /// On a thread that lives as long as this: a signal of the kernel reaches the process at its end.
    fn start(placement: Placement, order: &Order) -> Result<Self, StressError> {
        let mut command = process::command(std::env::current_exe()?);
        command
            .args(["execute", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child_options = ChildOptions::default().leads_session().dies_with_thread();
        placement.arrange(child_options, &mut command)?;
        let (starter, ended) = mpsc::channel::<()>();
        let (report, receiver) = mpsc::channel();
        let start = move || {
            let spawned = placement.enter_namespace().map_err(StressError::from);
            let spawned = spawned.and_then(|()| Ok(command.spawn()?));
            // The caller waits for it.
            let _ = report.send(spawned);
            // Nothing is ever sent: it is over when the sender is gone.
            let _ = ended.recv();
        };
        thread::Builder::new()
            .name("stress".to_owned())
            .spawn(start)?;
        let thread_error = |_| io::Error::other("its thread ended");
        let mut child = receiver.recv().map_err(thread_error)??;
        // It is shorter than the room of a pipe, so writing does not wait.
        let order = serde_json::to_vec(order).map_err(io::Error::from)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(&order)?;
        }
        Ok(Self {
            stderr: child.stderr.take(),
            child,
            _starter: starter,
        })
    }

    fn works_by(&mut self, until: Instant<Local>) -> io::Result<bool> {
        let Some(stderr) = &mut self.stderr else {
            return Ok(false);
        };
        let mut printed = Vec::new();
        loop {
            let remaining = (until - neph_probe::now()).max(Span::ZERO);
            let mut poll_fds = [Awaited::readable(stderr.as_fd())];
            ppoll::wait_through(&mut poll_fds, Some(remaining.to_duration()))?;
            if !poll_fds[0].has_something() {
                return Ok(false);
            }
            let mut chunk = [0; 4096];
            let count = stderr.read(&mut chunk)?;
            printed.extend_from_slice(&chunk[..count]);
            let printed = String::from_utf8_lossy(&printed);
            if count == 0 || printed.lines().any(|line| line == RUNNING_LINE) {
                return Ok(count > 0);
            }
        }
    }

    fn end(&mut self) -> io::Result<Vec<u8>> {
        process::ask(self.child.id(), Request::End)?;
        let mut output = Vec::new();
        if let Some(mut out) = self.child.stdout.take() {
            out.read_to_end(&mut output)?;
        }
        self.child.wait()?;
        Ok(output)
    }
}

impl Drop for LocalLoad {
    /// Without asking, if it still runs.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{LoadOrder, LoadSpec};

    use super::*;

    #[test]
    fn an_order_is_quoted_for_the_shell() {
        let load = LoadSpec::Flow {
            to: "it's; rm -rf $HOME:80".to_owned(),
            rate: None,
        };
        let duration = Span::from_secs(1);
        let work = load.into();
        let order = Order::Load(LoadOrder { work, duration });
        let text = shell_quoted(&order).expect("plain data");
        let printed = process::command("sh")
            .args(["-c", &format!("printf %s '{text}'")])
            .output();
        let printed = printed.expect("sh").stdout;
        assert_eq!(
            serde_json::from_slice::<Order>(&printed).expect("whole"),
            order
        );
    }
}
