//! A point on another host: ssh runs neph there, or tcpdump if neph is missing. That program writes
//! a capture to standard output.
//!
//! Owns the remote command line, its end (standard input is closed; after a timeout ssh is killed
//! through its pidfd), and the interpretation of its messages. Does not own passwords and host
//! keys: ssh asks at the terminal.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use neph_model::{CaptureOrder, Order};
use neph_sys::deadline::wait_until;
use neph_sys::process::{self, ChildOptions, Request, ask_through, descriptor};
use neph_text::PrintableText;

use super::RecordingOptions;
use super::point_text::{Host, Interface};
use crate::ListenError;

/// Precedes the boot ID of the remote kernel: points with the same boot ID have the same clock.
const KERNEL: &str = "neph-kernel ";
/// Maximum number of stored message lines.
const LINES: usize = 100;
/// Maximum length of a message line.
const LONGEST_LINE: u64 = 4096;
/// Maximum wait for the last messages.
const GRACE: Duration = Duration::from_secs(1);
/// The exit code of a shell that does not find a program.
const NOT_FOUND: i32 = 127;

/// A running ssh.
#[derive(Debug)]
pub(super) struct RemotePoint {
    /// The other end continues as long as it is open.
    stdin: Option<ChildStdin>,
    process: OwnedFd,
}

/// The output of ssh, read on its own thread.
#[derive(Debug)]
pub(super) struct Output {
    child: Child,
    pub(super) capture: ChildStdout,
    stderr: ChildStderr,
}

/// The messages of ssh, and its exit status.
#[derive(Debug, Default)]
pub(super) struct RemoteReport {
    lines: Vec<String>,
    status: Option<ExitStatus>,
}

impl RemotePoint {
    /// Starts ssh.
    pub(super) fn begin(
        host: &Host,
        interface: &Interface,
        options: &RecordingOptions,
    ) -> Result<(Self, Output), ListenError> {
        let mut command = process::command("ssh");
        if let Some(port) = host.port {
            command.args(["-p", &port.to_string()]);
        }
        command
            .args(["-T", "--", &host.destination])
            .arg(script(interface, options))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child_options = ChildOptions::default().dies_with_thread().ignores_ctrl_c();
        child_options.arrange(&mut command);
        let refused = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => ListenError::refused(
                "there is no ssh program here; install one (openssh-client), or capture there and give \
                 the files",
            ),
            _ => ListenError::refused(format!("start ssh: {error}")),
        };
        let mut child = command.spawn().map_err(refused)?;
        let process = descriptor(child.id()).map_err(refused)?;
        let stdin = child.stdin.take();
        let pipes = child.stdout.take().zip(child.stderr.take());
        let Some((capture, stderr)) = pipes else {
            return Err(ListenError::refused("start ssh: its output is not ours"));
        };
        let output = Output {
            child,
            capture,
            stderr,
        };
        Ok((Self { stdin, process }, output))
    }

    /// Requests the other end to finish.
    pub(super) fn finish(&mut self) {
        self.stdin = None;
    }

    /// Kills ssh.
    pub(super) fn kill(&self) {
        // An error means that it has ended: signalling an own child is permitted.
        let _ = ask_through(self.process.as_fd(), Request::Kill);
    }
}

impl Drop for RemotePoint {
    /// Kills ssh, so that no thread waits for it.
    fn drop(&mut self) {
        self.kill();
    }
}

impl Output {
    /// Passes the capture to `take`, and waits for the end.
    pub(super) fn read<T>(mut self, take: impl FnOnce(&mut ChildStdout) -> T) -> (T, RemoteReport) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (stderr, received) = (self.stderr, Arc::clone(&lines));
        let listening = std::thread::spawn(move || listen(stderr, &received));
        let taken = take(&mut self.capture);
        // A process that still writes gets a broken pipe.
        drop(self.capture);
        let status = self.child.wait().ok();
        // A process that ssh leaves (ControlPersist) may keep standard error open.
        wait_until(GRACE, || listening.is_finished());
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = std::mem::take(&mut *lines);
        (taken, RemoteReport { lines, status })
    }
}

/// Stores the last message lines.
fn listen(stderr: ChildStderr, received: &Mutex<Vec<String>>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        let read = (&mut stderr)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(read) if read > 0) {
            return;
        }
        let text = PrintableText::text(String::from_utf8_lossy(&line).trim()).into();
        line.clear();
        let mut lines = received.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES {
            // The boot ID is among the first lines.
            lines.remove(LINES / 2);
        }
        lines.push(text);
    }
}

impl RemoteReport {
    /// The boot ID of the remote kernel, new at each boot.
    pub(super) fn kernel(&self) -> Option<&str> {
        let lines = self.lines.iter();
        let mut kernels = lines.filter_map(|line| line.strip_prefix(KERNEL));
        kernels.next().filter(|kernel| !kernel.is_empty())
    }

    /// Packets that the other end reports as lost.
    pub(super) fn lost(&self) -> Option<u64> {
        let of = |line: &String| {
            let before = line
                .strip_suffix(" lost")
                .or_else(|| line.strip_suffix(" packets dropped by kernel"))
                .or_else(|| line.strip_suffix(" packet dropped by kernel"))?;
            before.rsplit(' ').next()?.parse().ok()
        };
        self.lines.iter().rev().find_map(of)
    }

    /// Why it ended by itself.
    pub(super) fn failure_reason(&self, destination: &str) -> String {
        let code = self.status.and_then(|status| status.code());
        if code == Some(NOT_FOUND) {
            return format!(
                "there is neither neph nor tcpdump at {destination}; install one there"
            );
        }
        let is_reporting = |line: &&String| {
            !line.is_empty() && !line.starts_with(KERNEL) && !line.contains("looking at")
        };
        match (self.lines.iter().rfind(is_reporting), code) {
            (Some(line), _) => format!("ssh {destination} ended: {line}"),
            (None, Some(code)) => format!("ssh {destination} ended with status {code}"),
            (None, None) => format!("ssh {destination} was killed"),
        }
    }
}

/// The remote shell command: runs sh, whatever the user's shell is. SIGTERM ends the capture when
/// standard input ends, also after a broken connection.
fn script(interface: &Interface, options: &RecordingOptions) -> String {
    let Interface { name, site } = interface;
    let (snaplen, packet_filter) = (options.snaplen, &options.packet_filter);
    let inside = site
        .as_ref()
        .map_or_else(String::new, |site| format!("ip netns exec {site} "));
    let order = packet_filter.order(CaptureOrder {
        site: site.clone(),
        ..CaptureOrder::of(name.clone(), snaplen, options.ring)
    });
    let order = serde_json::to_string(&Order::Capture(order)).unwrap_or_default();
    // Escaped for double quotes, because the whole script is in single quotes.
    let order = order.replace('"', "\\\"");
    let neph = format!("printf %s \"{order}\" | neph execute -");
    let expression = packet_filter.expression();
    let tcpdump = format!(
        "{inside}tcpdump -i {name} -n -U -w - -s {snaplen} --time-stamp-precision=nano \"{expression}\""
    );
    // tcpdump may delay packets by a second, so SIGTERM is sent after two.
    let script = [
        "exec 3<&0".to_owned(),
        format!("echo {KERNEL}$(cat /proc/sys/kernel/random/boot_id) >&2"),
        format!(
            "if command -v neph >/dev/null; then {neph} 3<&- & w=0; \
             else {tcpdump} </dev/null 3<&- & w=2; fi"
        ),
        "p=$!".to_owned(),
        "(cat <&3; sleep $w; kill -TERM $p) >/dev/null 2>&1 & k=$!".to_owned(),
        "exec 3<&- </dev/null".to_owned(),
        "wait $p; s=$?; kill $k 2>/dev/null; exit $s".to_owned(),
    ];
    format!("exec sh -c '{}'", script.join("; "))
}

#[cfg(test)]
mod tests {
    use neph_model::ByteSize;

    use super::*;
    use crate::PacketFilter;

    fn remote_report(lines: &[&str]) -> RemoteReport {
        RemoteReport {
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            status: None,
        }
    }

    #[test]
    fn losses_are_read_from_the_output_of_neph_and_tcpdump() {
        let neph = remote_report(&["neph-kernel 5-6", "neph watch: 9 packets in -, 17 lost"]);
        assert_eq!((neph.kernel(), neph.lost()), (Some("5-6"), Some(17)));
        let tcpdump = [
            "tcpdump: listening on eth0, link-type EN10MB",
            "120 packets captured",
            "120 packets received by filter",
            "3 packets dropped by kernel",
        ];
        assert_eq!(remote_report(&tcpdump).lost(), Some(3));
        let silent = remote_report(&["neph-kernel ", ""]);
        assert_eq!((silent.kernel(), silent.lost()), (None, None));
    }

    #[test]
    fn the_reason_of_a_failed_ssh_is_its_last_line() {
        let lines = ["neph-kernel 5", "", "root@db1: Permission denied.", ""];
        assert_eq!(
            remote_report(&lines).failure_reason("root@db1"),
            "ssh root@db1 ended: root@db1: Permission denied."
        );
        assert_eq!(
            remote_report(&["neph-kernel 5"]).failure_reason("db1"),
            "ssh db1 was killed"
        );
    }

    #[test]
    fn the_remote_command_contains_no_quote() {
        let interface = Interface {
            name: "eth0".to_owned(),
            site: Some("client".to_owned()),
        };
        let options = RecordingOptions {
            duration: None,
            count: None,
            save: None,
            limit: ByteSize(1 << 20),
            packet_filter: PacketFilter::default(),
            snaplen: 96,
            ring: ByteSize(2 << 20),
        };
        let script = script(&interface, &options);
        assert_eq!(script.matches('\'').count(), 2, "{script}");
        assert!(script.contains("ip netns exec client tcpdump"), "{script}");
        assert!(script.contains(r#"\"site\":\"client\""#), "{script}");
    }
}
