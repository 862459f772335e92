//! Whether a service is ready: what is asked, and for how long.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use neph_sys::clock;
use neph_sys::deadline::Deadline;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::process::{self, ChildOptions};

use crate::topology::{Ready, ReadyCheck};

/// How often a service that is not ready yet is asked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How long one question over the network may take.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a service is waited for: its time, and as long as anybody wants the lab.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitLimit<'s> {
    deadline: Deadline,
    stop: &'s AtomicBool,
}

impl<'s> WaitLimit<'s> {
    pub(super) fn new(ready: &Ready, stop: &'s AtomicBool) -> Self {
        let deadline = Deadline::after(ready.timeout.to_duration());
        Self { deadline, stop }
    }

    fn is_over(self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.deadline.has_passed()
    }
}

/// Asks until the answer is yes, the service has ended or patience is over; in the service's
/// namespace.
pub(super) fn wait_until_ready(
    check: &ReadyCheck,
    addresses: &[IpAddr],
    wait_limit: WaitLimit<'_>,
    is_up: impl Fn() -> bool,
) -> bool {
    while is_up() && !wait_limit.is_over() {
        if is_ready(check, addresses, wait_limit) {
            return true;
        }
        clock::nap(CHECK_INTERVAL);
    }
    false
}

fn is_ready(check: &ReadyCheck, addresses: &[IpAddr], wait_limit: WaitLimit<'_>) -> bool {
    match check {
        ReadyCheck::Tcp(port) => {
            let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
            let mut candidates = addresses.iter().chain(std::iter::once(&loopback));
            candidates.any(|ip| {
                TcpStream::connect_timeout(&SocketAddr::new(*ip, *port), ANSWER_TIMEOUT).is_ok()
            })
        }
        ReadyCheck::Command(command_line) => succeeds(command_line, wait_limit).unwrap_or(false),
    }
}

/// Whether a program ends with status 0 in time; it is killed when patience is over.
fn succeeds(command_line: &[String], wait_limit: WaitLimit<'_>) -> io::Result<bool> {
    let mut command = process::command(&command_line[0]);
    command
        .args(&command_line[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    ChildOptions::default()
        .dies_with_thread()
        .arrange(&mut command);
    let mut child = command.spawn()?;
    if let Ok(ended) = process::descriptor(child.id()) {
        let mut awaited = [Awaited::readable(ended.as_fd())];
        while !awaited[0].is_readable() && !wait_limit.is_over() {
            ppoll::wait(&mut awaited, Some(CHECK_INTERVAL))?;
        }
        if !awaited[0].is_readable() {
            child.kill()?;
        }
    }
    child.wait().map(|status| status.success())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use neph_sys::deadline::{Stopwatch, wait_until};

    use super::*;

    #[test]
    fn an_unready_program_is_waited_for_until_the_lab_is_stopped() {
        let stop = AtomicBool::new(false);
        let deadline = Deadline::after(Duration::from_secs(50));
        let wait_limit = WaitLimit {
            deadline,
            stop: &stop,
        };
        let folder = tempfile::tempdir().expect("a folder");
        let marker_file = folder.path().join("asked");
        let script = format!("touch {}; exec sleep 60", marker_file.display());
        let check = ReadyCheck::Command(["sh", "-c", &script].map(str::to_owned).to_vec());
        let begun = Stopwatch::start();
        thread::scope(|scope| {
            let check_thread = scope.spawn(|| wait_until_ready(&check, &[], wait_limit, || true));
            let is_asked = wait_until(Duration::from_secs(20), || marker_file.exists());
            stop.store(true, Ordering::Relaxed);
            assert!(is_asked && !check_thread.join().expect("it ends"));
        });
        assert!(begun.elapsed() < Duration::from_secs(20), "given up");
    }
}
