//! Reports to the service manager that started this process, as systemd's `sd_notify`, without its library.
//!
//! Owns the socket (`NOTIFY_SOCKET`) and the interval of the watchdog (`WATCHDOG_USEC`). When something is
//! reported, the caller decides. Other service managers and container engines speak the same protocol:
//! lines `NAME=VALUE` in one datagram.

use std::env;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// How long a report may wait for room: a service manager that reads nothing must not stop this process.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of a status, at most.
const LONGEST_STATUS: usize = 256;

/// The service manager that waits for reports of this process.
#[derive(Debug)]
pub struct ServiceManager {
    socket: UnixDatagram,
    watchdog: Option<Duration>,
}

/// What is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report<'a> {
    /// The start is over, with this status.
    Ready(&'a str),
    /// A status, in a few words.
    Status(&'a str),
    /// The end has begun.
    Stopping,
    /// All loops turn.
    Alive,
}

impl ServiceManager {
    /// The one that the environment names; `None` without `NOTIFY_SOCKET`. It is connected at once, so that
    /// it can be reported to when privileges are given up.
    ///
    /// # Errors
    /// The socket is of a kind that is not known, or no socket is there.
    pub fn find() -> io::Result<Option<Self>> {
        let Some(path) = env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) else {
            return Ok(None);
        };
        let watchdog = watchdog(
            env::var("WATCHDOG_USEC").ok().as_deref(),
            env::var("WATCHDOG_PID").ok().as_deref(),
        );
        Self::at(&path, watchdog).map(Some)
    }

    /// The one at this socket: a path, or a name in the abstract namespace behind `@`. It ends the process
    /// that reports nothing for as long as `watchdog`.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn at(path: &OsStr, watchdog: Option<Duration>) -> io::Result<Self> {
        let address = match path.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(path)?,
            _ => {
                let reason = "a path or a name behind @ is expected";
                return Err(io::Error::new(ErrorKind::InvalidInput, reason));
            }
        };
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address)?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { socket, watchdog })
    }

    /// How long it waits for a sign of life; `None` if it waits for none.
    pub const fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Reports this.
    ///
    /// # Errors
    /// The socket is gone, or was full for a second.
    pub fn report(&self, report: Report<'_>) -> io::Result<()> {
        let text = match report {
            Report::Ready(status) => format!("READY=1\nSTATUS={}", one_line(status)),
            Report::Status(status) => format!("STATUS={}", one_line(status)),
            Report::Stopping => "STOPPING=1".to_owned(),
            Report::Alive => "WATCHDOG=1".to_owned(),
        };
        self.socket.send(text.as_bytes()).map(drop)
    }
}

/// The interval, where it is meant for this process.
fn watchdog(microseconds: Option<&str>, process: Option<&str>) -> Option<Duration> {
    let is_ours = process.is_none_or(|id| id.parse() == Ok(std::process::id()));
    let interval = microseconds?.parse().ok().map(Duration::from_micros);
    interval.filter(|interval| is_ours && !interval.is_zero())
}

/// A second line would be another report.
fn one_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    &line[..line.floor_char_boundary(LONGEST_STATUS)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 1024];
        let patience = Some(Duration::from_secs(20));
        socket.set_read_timeout(patience).expect("a socket");
        let count = socket.recv(&mut bytes).expect("a report");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    fn send_all(manager: &ServiceManager, socket: &UnixDatagram) {
        for (report, text) in [
            (
                Report::Ready("listens at [::]:1"),
                "READY=1\nSTATUS=listens at [::]:1",
            ),
            (Report::Status("a\nREADY=1"), "STATUS=a"),
            (Report::Alive, "WATCHDOG=1"),
            (Report::Stopping, "STOPPING=1"),
        ] {
            manager.report(report).expect("the socket is read");
            assert_eq!(read(socket), text);
        }
    }

    #[test]
    fn reports_reach_a_socket_with_a_path() {
        let path = env::temp_dir().join(format!("neph-notify-{}", std::process::id()));
        let socket = UnixDatagram::bind(&path).expect("a socket");
        let manager = ServiceManager::at(path.as_os_str(), None);
        std::fs::remove_file(&path).expect("a socket");
        send_all(&manager.expect("it is there"), &socket);
    }

    #[test]
    fn reports_reach_a_socket_with_an_abstract_name() {
        let name = format!("neph-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("a socket");
        let path = format!("@{name}");
        let manager = ServiceManager::at(OsStr::new(&path), None).expect("it is there");
        send_all(&manager, &socket);
    }

    #[test]
    fn invalid_notify_sockets_are_errors() {
        for path in ["vsock:2:1", "notify", "/no/such/socket", "@neph-no-such"] {
            assert!(
                ServiceManager::at(OsStr::new(path), None).is_err(),
                "{path}"
            );
        }
    }

    #[test]
    fn the_watchdog_is_for_the_process_that_is_named() {
        let pid = std::process::id().to_string();
        let second = Some(Duration::from_secs(1));
        assert_eq!(watchdog(Some("1000000"), Some(&pid)), second);
        assert_eq!(watchdog(Some("1000000"), None), second);
        assert_eq!(watchdog(Some("1000000"), Some("1")), None);
        assert_eq!(watchdog(Some("0"), None), None);
        assert_eq!(watchdog(Some("soon"), None), None);
        assert_eq!(watchdog(None, None), None);
    }
}
