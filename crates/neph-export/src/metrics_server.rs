//! The HTTP server for Prometheus (`--prometheus`): serves one request at a time, on its own
//! thread.
//!
//! The measuring thread writes the page on request, between two packets: they share no data.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use neph_model::Span;
use neph_sys::clock::{self, RawNanos};
use neph_wire::http::{Connection, ResponseLine, parse_request};

use crate::exposition::Page;
use crate::metric::MetricSource;
use crate::protobuf;

/// Timeout for reading a request, and for the response.
const PATIENCE: Span = Span::from_secs(2);
/// A page is reused for this time, so that frequent requests do not delay the measurement.
const FRESH: Span = Span::from_secs(1);
const LONGEST_HEAD: usize = 8 << 10;

/// Receives the page for a request.
type PageRequest = SyncSender<Page>;

/// The server, at the measuring thread.
#[derive(Debug)]
pub struct MetricsServer {
    page_requests: Receiver<PageRequest>,
    /// The last page, and when it was written.
    page: Option<(RawNanos, Page)>,
}

/// Parses `ADDRESS:PORT`, or a port of the loopback interface.
///
/// # Errors
/// It is neither.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse()
        .map_err(|_| "write ADDRESS:PORT, or a port of the loopback interface".to_owned())
}

impl MetricsServer {
    /// Starts the server; also returns its address.
    ///
    /// # Errors
    /// The address is in use, or is not one of this host.
    pub fn open(address: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let port = BoundPort::bind(address)?;
        let bound = port.address;
        let (request_sender, page_requests) = sync_channel(1);
        port.answer(move |patience| request_page(&request_sender, patience))?;
        Ok((
            Self {
                page_requests,
                page: None,
            },
            bound,
        ))
    }

    /// Answers a waiting request with the page.
    pub fn answer(&mut self, page: impl FnOnce() -> Page) {
        let Ok(request_stream) = self.page_requests.try_recv() else {
            return;
        };
        let now = clock::raw();
        self.page = self
            .page
            .take()
            .filter(|(written, _)| now.0 - written.0 < FRESH.nanos())
            .or_else(|| Some((now, page())));
        let page = self.page.as_ref().map(|(_, page)| page.clone());
        // An error means that the request has timed out.
        let _ = request_stream.try_send(page.unwrap_or_default());
    }
}

/// Requests a page from the measuring thread; `None` after the timeout.
fn request_page(request_sender: &SyncSender<PageRequest>, patience: Duration) -> Option<Page> {
    let (answer, waiting) = sync_channel(1);
    request_sender.try_send(answer).ok()?;
    waiting.recv_timeout(patience).ok()
}

/// A bound port for Prometheus that is not served yet. A command binds it before it drops
/// privileges and starts threads.
#[derive(Debug)]
pub struct BoundPort {
    listener: TcpListener,
    address: SocketAddr,
}

impl BoundPort {
    /// Binds the address; port 0 selects a free port.
    ///
    /// # Errors
    /// The address is in use, or is not one of this host.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// The bound address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the exported metrics on a separate thread that ends with the process. Takes at most
    /// one snapshot per second.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn serve(self, exported: Arc<dyn MetricSource>) -> io::Result<()> {
        let mut last: Option<(RawNanos, Page)> = None;
        self.answer(move |_| {
            let now = clock::raw();
            let fresh = last
                .take()
                .filter(|(written, _)| now.0 - written.0 < FRESH.nanos());
            let page = || (now, Page::of(&exported.snapshot()));
            let (_, page) = last.insert(fresh.unwrap_or_else(page));
            Some(page.clone())
        })
    }

    fn answer(
        self,
        mut page: impl FnMut(Duration) -> Option<Page> + Send + 'static,
    ) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("prometheus".to_owned());
        // The thread ends with the process: it owns only the port.
        let started = thread.spawn(move || {
            for peer in self.listener.incoming().flatten() {
                // Ignores peers that disconnect, and malformed requests.
                let _ = serve(peer, &mut page);
            }
        });
        started.map(drop)
    }
}

fn serve(mut peer: TcpStream, page: &mut impl FnMut(Duration) -> Option<Page>) -> io::Result<()> {
    let request = read_request(&mut peer, Deadline::begin())?;
    let (mut status, mut body) = (request.status, Vec::new());
    if status == 200 {
        match page(Deadline::begin().remaining()?) {
            Some(page) if request.wants_protobuf => body = protobuf::written(&page),
            Some(page) => body = page.text().into_bytes(),
            None => status = 503,
        }
    }
    let kind = if request.wants_protobuf {
        protobuf::TYPE
    } else {
        "text/plain; version=0.0.4; charset=utf-8"
    };
    let head = ResponseLine {
        status,
        content_length: Some(body.len() as u64),
        connection: Connection::Close,
    };
    let mut response = Vec::new();
    head.encode(&[("Content-Type", kind)], &mut response)
        .map_err(io::Error::other)?;
    response.extend_from_slice(&body);
    let (end, mut remaining) = (Deadline::begin(), response.as_slice());
    while !remaining.is_empty() {
        peer.set_write_timeout(Some(end.remaining()?))?;
        let written = peer.write(remaining)?;
        remaining = remaining.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// The end of the timeout for a peer, independent of the bytes that are transferred.
#[derive(Clone, Copy)]
struct Deadline(RawNanos);

impl Deadline {
    fn begin() -> Self {
        Self(RawNanos(clock::raw().0 + PATIENCE.nanos()))
    }

    /// The remaining time.
    fn remaining(self) -> io::Result<Duration> {
        let remaining = u64::try_from(self.0.0 - clock::raw().0).unwrap_or(0);
        match remaining {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(Duration::from_nanos(remaining)),
        }
    }
}

/// A parsed request: the status of its response.
#[derive(Clone, Copy, Debug)]
struct Request {
    status: u16,
    /// Whether it prefers the protobuf format, as a Prometheus with native histograms does.
    wants_protobuf: bool,
}

impl Request {
    const fn refused(status: u16) -> Self {
        let wants_protobuf = false;
        Self {
            status,
            wants_protobuf,
        }
    }
}

/// Reads a request.
fn read_request(peer: &mut TcpStream, end: Deadline) -> io::Result<Request> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 1024];
    while bytes.len() < LONGEST_HEAD {
        peer.set_read_timeout(Some(end.remaining()?))?;
        let n = peer.read(&mut buffer)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..n]);
        match parse_request(&bytes) {
            Ok(None) => {}
            Ok(Some(head)) if head.method() != "GET" => return Ok(Request::refused(405)),
            Ok(Some(head)) if head.target() == "/metrics" => {
                return Ok(Request {
                    status: 200,
                    wants_protobuf: head
                        .headers()
                        .first("accept")
                        .is_some_and(names_protobuf_first),
                });
            }
            Ok(Some(_)) => return Ok(Request::refused(404)),
            Err(_) => return Ok(Request::refused(400)),
        }
    }
    Ok(Request::refused(431))
}

/// Whether an `Accept` header has the protobuf format of Prometheus first, as clients with native
/// histograms write it.
fn names_protobuf_first(accept: &[u8]) -> bool {
    let Ok(accept) = str::from_utf8(accept) else {
        return false;
    };
    let first = accept.split(',').next().unwrap_or_default();
    let mut parts = first.split(';').map(str::trim);
    let is_protobuf = parts.next() == Some("application/vnd.google.protobuf");
    let parts: Vec<&str> = parts.collect();
    is_protobuf
        && parts.contains(&"proto=io.prometheus.client.MetricFamily")
        && parts.contains(&"encoding=delimited")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Kind;

    fn send_request(
        metrics_server: &mut MetricsServer,
        address: SocketAddr,
        request: &str,
    ) -> String {
        let mut peer = TcpStream::connect(address).expect("connect");
        peer.write_all(request.as_bytes()).expect("ask");
        let request_sender = std::thread::spawn(move || {
            let mut answer = String::new();
            peer.read_to_string(&mut answer).map(|_| answer)
        });
        while !request_sender.is_finished() {
            metrics_server.answer(|| {
                let mut page = Page::default();
                page.head("neph_watch_flows", Kind::Gauge, "Flows.");
                page.value(&[], 3);
                page
            });
            std::thread::yield_now();
        }
        request_sender.join().expect("joined").expect("an answer")
    }

    #[test]
    fn the_metrics_server_answers_only_get_metrics() {
        let (mut metrics_server, address) =
            MetricsServer::open(address("0").expect("a port")).expect("a server");
        assert!(address.ip().is_loopback());
        let page = send_request(
            &mut metrics_server,
            address,
            "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
        );
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(page.ends_with("\nneph_watch_flows 3\n"), "{page}");
        let accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        for (accept, kind) in [
            (
                format!("{accept},text/plain;version=0.0.4;q=0.5"),
                "application/vnd.google.protobuf; ",
            ),
            (format!("text/plain,{accept}"), "text/plain; "),
        ] {
            let request = format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n");
            let page = send_request(&mut metrics_server, address, &request);
            assert!(page.contains(&format!("Content-Type: {kind}")), "{page}");
        }
        for (request, status) in [
            ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "405"),
            ("nonsense\r\n\r\n", "400"),
        ] {
            let answer = send_request(&mut metrics_server, address, request);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{answer}"
            );
        }
        assert!(super::address("::1:x").is_err());
    }
}
