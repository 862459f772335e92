//! The door at which Prometheus asks (`--prometheus`): one request after the other, on a thread of its
//! own.
//!
//! Whoever watches writes the page when it is asked for, between two packets: nothing is shared.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use neph_model::Span;
use neph_sys::clock::{self, RawNanos};
use neph_wire::http::{Connection, ResponseLine, parse_request};

/// A request may take this long, and so may the answer.
const PATIENCE: Span = Span::from_secs(2);
/// A page is good for this long: who asks all the time does not keep from measuring.
const FRESH: Span = Span::from_secs(1);
const LONGEST_HEAD: usize = 8 << 10;

/// Somebody who waits for the page.
type Asker = SyncSender<String>;

/// The door, as who watches sees it.
#[derive(Debug)]
pub struct Door {
    askers: Receiver<Asker>,
    /// The last page, and when it was written.
    page: Option<(RawNanos, String)>,
}

/// `ADDRESS:PORT`, or a port of the loopback interface.
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

impl Door {
    /// Opens it; gives where, too.
    ///
    /// # Errors
    /// The address is taken, or no one of this host.
    pub fn open(address: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let listener = TcpListener::bind(address)?;
        let bound = listener.local_addr()?;
        let (asking, askers) = sync_channel(1);
        // It ends with the process: it holds nothing but the door.
        std::thread::spawn(move || {
            for peer in listener.incoming().flatten() {
                // Who breaks off or asks for nonsense is not served.
                let _ = serve(peer, &asking);
            }
        });
        Ok((Self { askers, page: None }, bound))
    }

    /// Gives the page to whoever waits for it.
    pub fn answer(&mut self, page: impl FnOnce() -> String) {
        let Ok(asker) = self.askers.try_recv() else {
            return;
        };
        let now = clock::raw();
        self.page = self
            .page
            .take()
            .filter(|(written, _)| now.0 - written.0 < FRESH.nanos())
            .or_else(|| Some((now, page())));
        let page = self.page.as_ref().map(|(_, page)| page.clone());
        // Who waits no more needs none.
        let _ = asker.try_send(page.unwrap_or_default());
    }
}

fn serve(mut peer: TcpStream, asking: &SyncSender<Asker>) -> io::Result<()> {
    let mut status = asked(&mut peer, Deadline::begin())?;
    let mut body = String::new();
    if status == 200 {
        let (answer, waiting) = sync_channel(1);
        let is_asked = asking.try_send(answer).is_ok();
        match waiting.recv_timeout(Deadline::begin().left()?) {
            Ok(page) if is_asked => body = page,
            _ => status = 503,
        }
    }
    let head = ResponseLine {
        status,
        content_length: Some(body.len() as u64),
        connection: Connection::Close,
    };
    let mut response = Vec::new();
    let kind = ("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    head.encode(&[kind], &mut response)
        .map_err(io::Error::other)?;
    response.extend_from_slice(body.as_bytes());
    let (end, mut rest) = (Deadline::begin(), response.as_slice());
    while !rest.is_empty() {
        peer.set_write_timeout(Some(end.left()?))?;
        let written = peer.write(rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// When the patience with a peer is over, however many bytes come or go until then.
#[derive(Clone, Copy)]
struct Deadline(RawNanos);

impl Deadline {
    fn begin() -> Self {
        Self(RawNanos(clock::raw().0 + PATIENCE.nanos()))
    }

    /// The time that is left.
    fn left(self) -> io::Result<Duration> {
        let left = u64::try_from(self.0.0 - clock::raw().0).unwrap_or(0);
        match left {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(Duration::from_nanos(left)),
        }
    }
}

/// Reads a request; gives the status that it deserves.
fn asked(peer: &mut TcpStream, end: Deadline) -> io::Result<u16> {
    let mut bytes = Vec::new();
    let mut some = [0; 1024];
    while bytes.len() < LONGEST_HEAD {
        peer.set_read_timeout(Some(end.left()?))?;
        let n = peer.read(&mut some)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&some[..n]);
        match parse_request(&bytes) {
            Ok(None) => {}
            Ok(Some(head)) if head.method() != "GET" => return Ok(405),
            Ok(Some(head)) if head.target() == "/metrics" => return Ok(200),
            Ok(Some(_)) => return Ok(404),
            Err(_) => return Ok(400),
        }
    }
    Ok(431)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(door: &mut Door, address: SocketAddr, request: &str) -> String {
        let mut peer = TcpStream::connect(address).expect("connect");
        peer.write_all(request.as_bytes()).expect("ask");
        let asking = std::thread::spawn(move || {
            let mut answer = String::new();
            peer.read_to_string(&mut answer).map(|_| answer)
        });
        while !asking.is_finished() {
            door.answer(|| "neph_watch_flows 3\n".to_owned());
            std::thread::yield_now();
        }
        asking.join().expect("joined").expect("an answer")
    }

    #[test]
    fn the_page_is_given_and_nothing_else() {
        let (mut door, address) = Door::open(address("0").expect("a port")).expect("a door");
        assert!(address.ip().is_loopback());
        let page = ask(
            &mut door,
            address,
            "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
        );
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(page.ends_with("\r\n\r\nneph_watch_flows 3\n"), "{page}");
        for (request, status) in [
            ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "405"),
            ("nonsense\r\n\r\n", "400"),
        ] {
            let answer = ask(&mut door, address, request);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{answer}"
            );
        }
        assert!(super::address("::1:x").is_err());
    }
}
