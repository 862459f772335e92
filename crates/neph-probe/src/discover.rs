//! Finds out before a measurement whether a target is a neph reflector or a third-party server, and whether
//! it reads the same clock as this host.
//!
//! Sends an HTTP HEAD on a separate connection. If there is no answer soon, it sends a GET on a second one,
//! as some servers ignore HEAD.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use neph_model::{Instant, Local, Span, Target, TlsVersion};
use neph_sys::place::Placement;
use neph_wire::http::{Connection, RequestLine, parse_response};
use rustls::ClientConfig;

use crate::ProbeError;
use crate::channel::{Channel, ChannelError};
use crate::fault;
use crate::refused::{REFUSED_HEADER, Refusals};
use crate::spec::Trust;
use crate::stamp_clock::now;
use crate::tls;

/// The response header of a reflector.
pub(crate) const REFLECTOR_HEADER: &str = "Neph-Reflector";
/// The response header with the identity of the reflector's clock.
pub(crate) const CLOCK_HEADER: &str = "Neph-Clock";

/// Least time to wait for an answer to HEAD.
const HEAD_PATIENCE: Span = Span::from_millis(300);
/// That time as a multiple of the connect time: TLS and the answer take three round trips.
const HEAD_ROUND_TRIPS: i64 = 6;

/// The result for a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and most combinations occur"
)]
pub struct Discovery {
    /// It is a neph reflector, which returns its timestamps.
    pub reflector: bool,
    /// It reads the same clock as this host: same kernel, same time namespace.
    pub same_clock: bool,
    /// It accepted the connection, whatever followed.
    pub accepted: bool,
    /// Its host refused the connection: the port is closed.
    pub closed: bool,
    /// What its caps refused to this host so far.
    pub refused: Option<Refusals>,
    /// HTTP status of the answer.
    pub http: Option<u16>,
    /// The header `Location` of a redirect, as written.
    pub redirect: Option<String>,
    /// Why there was no answer.
    pub silence: Option<String>,
    /// Its untrusted certificate: a second attempt would not help.
    pub untrusted: bool,
}

/// How to ask.
#[derive(Clone, Debug)]
pub struct DiscoveryOptions {
    /// TLS versions, where the scheme requires TLS.
    pub tls_version: Option<TlsVersion>,
    /// How the certificate is checked.
    pub trust: Trust,
    /// Time limit in all, from the beginning of the connection to the answer.
    pub patience: Span,
    /// The place (a lab's site) to ask from.
    pub site: Option<Placement>,
}

/// Asks at `target`, which is at `address`. No answer is a result too.
///
/// # Errors
/// When the namespace cannot be entered, or TLS is not possible as requested.
pub fn discover(
    target: &Target,
    address: SocketAddr,
    options: &DiscoveryOptions,
) -> Result<Discovery, ProbeError> {
    if !target.kind().is_identified() {
        return Ok(Discovery::default());
    }
    let config = target
        .is_secure()
        .then(|| tls::client_config(options.tls_version, &options.trust))
        .transpose()?;
    let ask = || ask(target, address, options.patience, config.as_ref());
    match &options.site {
        None => Ok(ask()),
        Some(site) => Ok(site.run(ask)?),
    }
}

fn ask(
    target: &Target,
    address: SocketAddr,
    patience: Span,
    config: Option<&Arc<ClientConfig>>,
) -> Discovery {
    let silent = |accepted: bool, error: &io::Error| Discovery {
        accepted,
        closed: !accepted && error.kind() == io::ErrorKind::ConnectionRefused,
        untrusted: is_untrusted(error),
        silence: Some(if fault::is_late(error) {
            format!("no answer in {patience}")
        } else {
            fault::error_text(error)
        }),
        ..Discovery::default()
    };
    let started = now();
    let deadline = started + patience;
    let connect = |remaining: Span| TcpStream::connect_timeout(&address, remaining.to_duration());
    let stream = match connect(patience) {
        Err(error) => return silent(false, &error),
        Ok(stream) => stream,
    };
    let patience_of_head = HEAD_PATIENCE.max((now() - started).times(HEAD_ROUND_TRIPS));
    let first = deadline.min(now() + patience_of_head);
    let answered = converse(stream, target, "HEAD", first, config).or_else(|error| {
        let remaining = deadline - now();
        if !fault::is_late(&error) || remaining <= Span::ZERO {
            return Err(error);
        }
        converse(connect(remaining)?, target, "GET", deadline, config)
    });
    answered.unwrap_or_else(|error| silent(true, &error))
}

fn is_untrusted(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(ChannelError::Untrusted(_)))
}

fn converse(
    mut stream: TcpStream,
    target: &Target,
    method: &str,
    deadline: Instant<Local>,
    config: Option<&Arc<ClientConfig>>,
) -> io::Result<Discovery> {
    let mut channel = match config {
        Some(config) => {
            let client = tls::client(config, target.certificate_name());
            Channel::tls(client.map_err(io::Error::other)?)
        }
        None => Channel::Plain,
    };
    let mut request = Vec::new();
    RequestLine {
        method,
        target: target.path(),
        host: &target.host_header(),
        content_length: None,
        connection: Connection::Close,
    }
    .encode(&[("User-Agent", "neph")], &mut request)
    .map_err(io::Error::other)?;
    let reply = exchange(&mut stream, &mut channel, &request, deadline)?;
    Ok(read_head(&reply))
}

/// Sends `request` through the channel and reads until a head is complete or the peer ends.
fn exchange(
    stream: &mut TcpStream,
    channel: &mut Channel,
    request: &[u8],
    deadline: Instant<Local>,
) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut reply = Vec::new();
    let mut requested = false;
    let mut buffer = [0; 4096];
    channel.speak(&mut out).map_err(io::Error::other)?;
    loop {
        let remaining = deadline - now();
        if remaining <= Span::ZERO {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(remaining.to_duration()))?;
        stream.set_write_timeout(Some(remaining.to_duration()))?;
        if !requested && channel.is_ready() {
            channel.seal(request, &mut out).map_err(io::Error::other)?;
            requested = true;
        }
        stream.write_all(&out)?;
        out.clear();
        if matches!(parse_response(&reply), Ok(Some(_)) | Err(_)) {
            return Ok(reply);
        }
        if channel.has_ended() {
            return Ok(reply);
        }
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(reply);
        }
        channel
            .open(&buffer[..count], &mut reply, &mut out)
            .map_err(io::Error::other)?;
    }
}

fn read_head(reply: &[u8]) -> Discovery {
    let Ok(Some(head)) = parse_response(reply) else {
        return Discovery {
            accepted: true,
            ..Discovery::default()
        };
    };
    let is_reflector = head.headers().only(REFLECTOR_HEADER).is_some();
    let clock = head.headers().only(CLOCK_HEADER);
    Discovery {
        reflector: is_reflector,
        same_clock: is_reflector
            && clock_identity()
                .is_some_and(|clock_identity| clock == Some(clock_identity.as_bytes())),
        accepted: true,
        refused: head.headers().only(REFUSED_HEADER).and_then(Refusals::read),
        http: Some(head.status()),
        redirect: is_redirect(head.status())
            .then(|| head.headers().only("Location"))
            .flatten()
            .and_then(|location| str::from_utf8(location).ok())
            .map(str::to_owned),
        ..Discovery::default()
    }
}

/// Equal for two processes exactly if they read the same `CLOCK_MONOTONIC_RAW`: a hash of the kernel's boot
/// identity and the time namespace. `None` where a sandbox hides the boot identity: two hosts must not appear
/// to share a clock.
fn clock_identity() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let boot = Some(boot.trim()).filter(|boot| !boot.is_empty())?;
    // Without time namespaces (before Linux 5.6) all processes read the same clock.
    let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    (boot, namespace).hash(&mut hasher);
    Some(format!("{:016x}", hasher.finish()))
}

/// [`clock_identity`] in the form of the reflector's header.
pub(crate) fn reported_identity() -> Arc<str> {
    clock_identity().map_or_else(|| "unknown".into(), Into::into)
}

/// Whether a status is a redirect (RFC 9110, section 15.4; 304 and 300 are not).
pub(crate) const fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers GET and ignores HEAD.
    #[test]
    fn discovery_falls_back_from_head_to_get() {
        let listener = TcpListener::bind("127.86.2.2:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let server = std::thread::spawn(move || {
            let mut open = Vec::new();
            let mut methods = Vec::new();
            for mut stream in listener.incoming().take(2).flatten() {
                let mut requested = [0; 512];
                let count = stream.read(&mut requested).expect("a request");
                let is_get = requested[..count].starts_with(b"GET ");
                methods.push(is_get);
                if is_get {
                    let reply = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
                    stream.write_all(reply).expect("somebody listens");
                }
                open.push(stream);
            }
            methods
        });
        let options = DiscoveryOptions {
            tls_version: None,
            trust: Trust::Public,
            patience: Span::from_secs(2),
            site: None,
        };
        let target = Target::parse(&format!("http://{address}")).expect("a target");
        let started = now();
        let discovery = discover(&target, address, &options).expect("no namespace to enter");
        assert_eq!((discovery.http, discovery.silence), (Some(404), None));
        assert!(now() - started < Span::from_secs(1), "{}", now() - started);
        assert_eq!(server.join().expect("it ends"), [false, true]);
    }

    #[test]
    fn a_port_without_a_listener_is_closed_but_a_silent_one_is_open() {
        // A separate address: no other test takes the port when it is free again.
        let listener = TcpListener::bind("127.86.2.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let options = DiscoveryOptions {
            tls_version: None,
            trust: Trust::Public,
            patience: Span::from_millis(100),
            site: None,
        };
        let accepted_and_closed = || {
            let target = Target::parse(&format!("http://{address}")).expect("a target");
            let discovery = discover(&target, address, &options).expect("no namespace to enter");
            (discovery.accepted, discovery.closed)
        };
        assert_eq!(accepted_and_closed(), (true, false));
        drop(listener);
        assert_eq!(accepted_and_closed(), (false, true));
    }
}
