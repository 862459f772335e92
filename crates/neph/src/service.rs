//! Reports to a service manager: readiness, status, and the watchdog.
//!
//! Owns the thread that answers the watchdog. It answers only while every loop of the command runs:
//! the service manager ends and restarts a process that hangs. `notify` of neph-sys sends the
//! reports.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use neph_model::Stop;
use neph_sys::clock;
use neph_sys::notify::{Report, ServiceManager};
use neph_sys::pulse::Pulse;

use crate::output;

/// Interval at which the thread checks whether to end.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Watchdog messages per timeout of the service manager.
const BEATS_PER_TIMEOUT: u32 = 4;

/// The connection to the service manager. Without a service manager nothing is reported.
#[derive(Debug)]
pub(crate) struct Service {
    command: &'static str,
    manager: Option<Arc<ServiceManager>>,
    watchdog: Option<(Stop, JoinHandle<()>)>,
}

impl Service {
    /// Finds the service manager; call this before privileges are dropped. If it cannot be reached,
    /// the command continues.
    pub(crate) fn find(command: &'static str) -> Self {
        let manager = ServiceManager::find().unwrap_or_else(|error| {
            output::say(&format!(
                "neph {command}: nothing is reported to the service manager: NOTIFY_SOCKET: {error}"
            ));
            None
        });
        Self {
            command,
            manager: manager.map(Arc::new),
            watchdog: None,
        }
    }

    /// Reports that the start is complete. From now on the watchdog is answered while all these
    /// loops run.
    pub(crate) fn report_ready(&mut self, status: &str, loops: Vec<Pulse>) {
        self.report(Report::Ready(status));
        let Some(manager) = &self.manager else {
            return;
        };
        let Some(interval) = manager.watchdog() else {
            return;
        };
        let watchdog_thread = Watchdog {
            command: self.command,
            manager: Arc::clone(manager),
            interval,
            loops,
        };
        let stop = Stop::new();
        let thread_stop = stop.clone();
        let builder = thread::Builder::new().name("watchdog".to_owned());
        match builder.spawn(move || watchdog_thread.run(&thread_stop)) {
            Ok(thread) => self.watchdog = Some((stop, thread)),
            Err(error) => output::say(&format!(
                "neph {}: the watchdog is not answered: {error}",
                self.command
            )),
        }
    }

    /// Reports the current status in a few words.
    pub(crate) fn report_status(&self, status: &str) {
        self.report(Report::Status(status));
    }

    fn report(&self, report: Report<'_>) {
        if let Some(manager) = &self.manager {
            // Errors are ignored: the service manager may have ended.
            let _ = manager.report(report);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.report(Report::Stopping);
        if let Some((stop, thread)) = self.watchdog.take() {
            stop.set();
            let _ = thread.join();
        }
    }
}

/// State of the watchdog thread.
struct Watchdog {
    command: &'static str,
    manager: Arc<ServiceManager>,
    interval: Duration,
    loops: Vec<Pulse>,
}

impl Watchdog {
    fn run(&self, stop: &Stop) {
        let beat_interval = self.interval / BEATS_PER_TIMEOUT;
        let mut elapsed = beat_interval;
        let mut is_silent = false;
        while !stop.is_set() {
            if elapsed >= beat_interval {
                elapsed = Duration::ZERO;
                is_silent = self.check_loops(is_silent);
            }
            let pause = STOP_CHECK_INTERVAL.min(beat_interval);
            clock::nap(pause);
            elapsed += pause;
        }
    }

    /// Answers the watchdog if all loops run. Returns whether a loop hangs.
    fn check_loops(&self, was_silent: bool) -> bool {
        let silent_loop = self
            .loops
            .iter()
            .find(|pulse| pulse.silence() > self.interval / 2);
        match silent_loop {
            None => {
                let _ = self.manager.report(Report::Alive);
            }
            Some(pulse) if !was_silent => output::say(&format!(
                "neph {}: {} is blocked for {:.0} s; the watchdog is not answered until it continues",
                self.command,
                pulse.name(),
                pulse.silence().as_secs_f64()
            )),
            Some(_) => {}
        }
        silent_loop.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    use neph_sys::deadline::wait_until;

    use super::*;

    /// A service manager that receives messages.
    struct Manager {
        socket: UnixDatagram,
        service: Service,
    }

    impl Manager {
        fn new(name: &str, watchdog: Duration) -> Self {
            let name = format!("neph-service-{name}-{}", std::process::id());
            let address = SocketAddr::from_abstract_name(&name).expect("a name");
            let socket = UnixDatagram::bind_addr(&address).expect("a socket");
            socket.set_nonblocking(true).expect("a socket");
            let path = format!("@{name}");
            let manager = ServiceManager::at(OsStr::new(&path), Some(watchdog)).expect("there");
            let service = Service {
                command: "test",
                manager: Some(Arc::new(manager)),
                watchdog: None,
            };
            Self { socket, service }
        }

        /// Whether this message arrives within 20 s; earlier messages are skipped.
        fn receives(&self, text: &str) -> bool {
            let mut bytes = [0; 512];
            wait_until(Duration::from_secs(20), || {
                let count = self.socket.recv(&mut bytes).unwrap_or(0);
                &bytes[..count] == text.as_bytes()
            })
        }

        fn drain(&self) {
            let mut bytes = [0; 512];
            while self.socket.recv(&mut bytes).is_ok() {}
        }
    }

    #[test]
    fn readiness_status_and_end_are_reported() {
        let mut manager = Manager::new("all", Duration::from_mins(1));
        manager
            .service
            .report_ready("listens", vec![Pulse::new("loop")]);
        assert!(manager.receives("READY=1\nSTATUS=listens"));
        assert!(manager.receives("WATCHDOG=1"), "at once");
        manager.service.report_status("busy");
        assert!(manager.receives("STATUS=busy"));
        let Manager { socket, service } = manager;
        drop(service);
        let mut bytes = [0; 512];
        let count = socket.recv(&mut bytes).expect("it waits");
        assert_eq!(&bytes[..count], b"STOPPING=1");
    }

    #[test]
    fn the_watchdog_is_answered_only_while_all_loops_run() {
        let interval = Duration::from_millis(400);
        let mut manager = Manager::new("watchdog", interval);
        let (running_loop, blocked_loop) = (Pulse::new("turns"), Pulse::new("stands"));
        let stop = Stop::new();
        let (beating_loop, thread_stop) = (running_loop.clone(), stop.clone());
        let beat_thread = thread::spawn(move || {
            wait_until(Duration::from_mins(2), || {
                beating_loop.beat();
                thread_stop.is_set()
            })
        });
        manager
            .service
            .report_ready("", vec![running_loop, blocked_loop.clone()]);
        assert!(manager.receives("WATCHDOG=1"));
        // The loop hangs from now on: messages sent before that was detected are skipped.
        assert!(wait_until(Duration::from_secs(20), || blocked_loop
            .silence()
            > interval));
        manager.drain();
        assert!(wait_until(Duration::from_secs(20), || blocked_loop
            .silence()
            > interval * 3));
        let mut bytes = [0; 512];
        assert!(
            manager.socket.recv(&mut bytes).is_err(),
            "nothing is answered"
        );
        blocked_loop.beat();
        assert!(manager.receives("WATCHDOG=1"), "it turns");
        stop.set();
        assert!(beat_thread.join().expect("it ends"), "it was asked to end");
    }
}
