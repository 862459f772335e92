//! Pushes metrics to an OTLP receiver over HTTP, on its own thread.
//!
//! Owns the push interval, and the messages about an unreachable receiver: one when it fails, one
//! when it recovers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use neph_model::Wall;
use neph_sys::clock;
use ureq::Agent;

use crate::http::{Notify, Resolve, Url, agent, exchange, url};
use crate::metric::MetricSource;
use crate::otlp::{Period, Resource, rejection, request};

/// Interval between pushes.
const EVERY: Duration = Duration::from_secs(15);
/// Timeout for the last push.
const LAST: Duration = Duration::from_secs(5);
/// The default path for metrics in the OTLP specification.
const PATH: &str = "/v1/metrics";

/// Parses `http://HOST:PORT` or `https://HOST:PORT` of a receiver; the default path is
/// `/v1/metrics`.
///
/// # Errors
/// It is no such URL: a message with the remedy.
pub fn otlp_url(text: &str) -> Result<Url, String> {
    url(text).map(|url| url.or_path(PATH))
}

/// The parameters of pushes.
#[derive(Clone, Debug)]
pub struct Push {
    /// The receiver.
    pub url: Url,
    /// The exporting program.
    pub resource: Resource,
    /// Prints a message.
    pub notify: fn(&str),
    /// Resolves a host and port to addresses.
    pub resolve: fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
}

/// A thread that pushes every 15 s until [`Self::finish`].
#[derive(Debug)]
pub struct Pushing {
    command: &'static str,
    notify: Notify,
    authority: String,
    /// Dropped to end the thread.
    stop: SyncSender<()>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl Pushing {
    /// Starts to push the exported metrics.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn begin(push: Push, exported: Arc<dyn MetricSource>) -> io::Result<Self> {
        Self::every(EVERY, push, exported)
    }

    fn every(interval: Duration, push: Push, exported: Arc<dyn MetricSource>) -> io::Result<Self> {
        let (stop, stopped) = sync_channel(0);
        let (running, ended) = sync_channel(0);
        let (command, notify) = (push.resource.service, push.notify);
        let authority = push.url.authority().to_owned();
        let thread = std::thread::Builder::new().name("otlp".to_owned());
        thread.spawn(move || {
            let _running: SyncSender<()> = running;
            let mut pusher = Pusher::new(push, exported);
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(interval) {
                pusher.push();
            }
            pusher.push();
        })?;
        Ok(Self {
            command,
            notify,
            authority,
            stop,
            ended,
        })
    }

    /// Pushes for the last time, and waits for it for at most 5 s.
    pub fn finish(self) {
        drop(self.stop);
        if self.ended.recv_timeout(LAST) == Err(RecvTimeoutError::Timeout) {
            (self.notify)(&format!(
                "{}: {} did not take the last metrics within {} s",
                self.command,
                self.authority,
                LAST.as_secs()
            ));
        }
    }
}

/// The state of the thread.
struct Pusher {
    push: Push,
    agent: Agent,
    exported: Arc<dyn MetricSource>,
    from: Wall,
    /// Whether the last push failed; that was reported.
    is_unreachable: bool,
}

impl Pusher {
    fn new(push: Push, exported: Arc<dyn MetricSource>) -> Self {
        let resolve: Resolve = push.resolve;
        Self {
            agent: agent(&push.url, resolve),
            push,
            exported,
            from: now(),
            is_unreachable: false,
        }
    }

    fn push(&mut self) {
        let period = Period {
            from: self.from,
            until: now(),
        };
        let request = request(self.push.resource, &self.exported.snapshot(), period);
        let answer = exchange(&self.agent, &self.push.url, &request.to_string());
        let answer = answer.and_then(|answer| match rejection(&answer) {
            Some(reason) => Err(io::Error::other(reason)),
            None => Ok(()),
        });
        let (command, authority) = (self.push.resource.service, self.push.url.authority());
        match answer {
            Ok(()) if self.is_unreachable => {
                (self.push.notify)(&format!("{command}: {authority} takes metrics"));
                self.is_unreachable = false;
            }
            Err(reason) if !self.is_unreachable => {
                let every = EVERY.as_secs();
                (self.push.notify)(&format!(
                    "{command}: push metrics to {authority}: {reason}; it is tried every {every} s, and reported when \
                     it succeeds"
                ));
                self.is_unreachable = true;
            }
            Ok(()) | Err(_) => {}
        }
    }
}

fn now() -> Wall {
    Wall::from_unix_nanos(clock::wall().0)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, ToSocketAddrs};
    use std::sync::Mutex;

    use super::*;
    use crate::metric::{Definition, Kind, Metric, Unit, Value};

    const RUNNING: Definition = Definition {
        name: "t_running",
        help: "Orders.",
        unit: Unit::None,
        kind: Kind::Gauge,
        label_names: &[],
    };

    struct RunningMetric;

    impl MetricSource for RunningMetric {
        fn snapshot(&self) -> Vec<Metric> {
            vec![Metric::of(&RUNNING, &[], Value::Count(3))]
        }
    }

    static REPORTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

    fn notify(text: &str) {
        REPORTS.lock().expect("no panic").push(text.to_owned());
    }

    fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }

    fn push(address: SocketAddr) -> Push {
        Push {
            url: otlp_url(&format!("http://{address}")).expect("a URL"),
            resource: Resource {
                service: "neph test",
                version: "1",
            },
            notify,
            resolve,
        }
    }

    /// Receives one request and answers it; returns its first line and its body.
    fn receive(listener: &TcpListener, status: &str) -> (String, String) {
        let (peer, _) = listener.accept().expect("accept");
        let mut reader = BufReader::new(peer.try_clone().expect("a clone"));
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first).expect("a line");
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            if line.trim().is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').expect("a field");
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().expect("a number");
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}");
        (&peer).write_all(answer.as_bytes()).expect("answer");
        (
            first.trim().to_owned(),
            String::from_utf8(body).expect("text"),
        )
    }

    #[test]
    fn a_url_without_a_path_gets_the_default_path() {
        let uri = |text: &str| otlp_url(text).expect("a URL").uri();
        assert_eq!(uri("http://x:4318"), "http://x:4318/v1/metrics");
        assert_eq!(
            uri("https://x/otlp/v1/metrics"),
            "https://x/otlp/v1/metrics"
        );
        assert!(otlp_url("x:4318").is_err());
    }

    #[test]
    fn metrics_are_pushed_at_the_end_and_an_unreachable_receiver_is_reported_once() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let address = listener.local_addr().expect("an address");
        let mut pusher = Pusher::new(push(address), Arc::new(RunningMetric));
        let receiving = std::thread::spawn(move || {
            let refused = ["503 Service Unavailable", "503 Service Unavailable"];
            for status in refused {
                receive(&listener, status);
            }
            for _ in 0..2 {
                receive(&listener, "200 OK");
            }
            receive(&listener, "200 OK")
        });
        for _ in 0..4 {
            pusher.push();
        }
        let minute = Duration::from_mins(1);
        let pushing =
            Pushing::every(minute, push(address), Arc::new(RunningMetric)).expect("a thread");
        pushing.finish();
        let (first, body) = receiving.join().expect("received");
        assert_eq!(first, "POST /v1/metrics HTTP/1.1");
        assert!(body.contains("\"asInt\":\"3\""), "{body}");
        let reports = REPORTS.lock().expect("no panic");
        assert_eq!(reports.len(), 2, "{reports:?}");
        assert!(
            reports[0].contains("answered \"HTTP/1.1 503\"; it is tried every 15 s"),
            "{reports:?}"
        );
        assert!(reports[1].ends_with("takes metrics"), "{reports:?}");
    }
}
