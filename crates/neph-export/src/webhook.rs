//! Alarms for another program: a POST for each, on a thread of its own, so that a slow receiver keeps
//! nothing waiting.
//!
//! Owns the queue and the limits. HTTP is ureq's; where a host is, the caller finds out.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use rustls::crypto::ring;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::tls::TlsConfig;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error};

/// Connecting, sending and the answer may take this long each.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is not told yet at the end may take this long.
const FAREWELL: Duration = Duration::from_secs(10);
/// Alarms that wait to be told; more are not.
const WAITING: usize = 64;
/// The head of an answer, at most.
const LONGEST_HEAD: usize = 8 << 10;
/// Addresses of a host that are tried, at most.
const MOST_ADDRESSES: usize = 16;

/// Where alarms are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    scheme: &'static str,
    /// Name or address, and port.
    authority: String,
    port: u16,
    target: String,
}

/// `http://HOST[:PORT][/PATH]`, or the same with `https://`.
///
/// # Errors
/// It is none, in a sentence with what to write.
pub fn url(text: &str) -> Result<Url, String> {
    const WRITE: &str = "write http://HOST:PORT/PATH, or https://HOST/PATH";
    let schemes = [("http", 80), ("https", 443)];
    let known = schemes.into_iter().find_map(|(scheme, port)| {
        let rest = text.strip_prefix(scheme)?.strip_prefix("://")?;
        Some((scheme, port, rest))
    });
    let (scheme, default_port, rest) = known.ok_or(WRITE)?;
    let (authority, target) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, "/"),
    };
    // The last colon, unless it is within an address of IPv6.
    let port = match authority.rsplit_once(':') {
        Some((_, port)) if !authority.ends_with(']') => port
            .parse()
            .map_err(|_| format!("'{port}' is no port; {WRITE}"))?,
        _ => default_port,
    };
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !plain(authority) || !plain(target) || authority.contains('@') {
        return Err(WRITE.to_owned());
    }
    Ok(Url {
        scheme,
        authority: authority.to_owned(),
        port,
        target: target.to_owned(),
    })
}

/// Takes a sentence for people.
type Say = fn(&str);
/// Gives the addresses of a host and port, in the order in which they are to be tried.
type Find = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// A thread that tells.
#[derive(Debug)]
pub struct Webhook {
    /// The command that tells.
    who: &'static str,
    say: Say,
    authority: String,
    alarms: SyncSender<String>,
    /// Hangs up when all were told.
    telling: Receiver<()>,
}

impl Webhook {
    /// Tells in the name of a command, `neph watch`.
    pub fn begin(url: Url, who: &'static str, say: Say, find: Find) -> Self {
        let (alarms, told) = sync_channel::<String>(WAITING);
        let authority = url.authority.clone();
        let (ended, telling) = sync_channel(0);
        // It ends with the process if its hearer is silent for longer than is waited for.
        std::thread::spawn(move || {
            let _ended: SyncSender<()> = ended;
            let agent = agent(&url, find);
            for body in told {
                if let Err(error) = post(&agent, &url, &body) {
                    let authority = &url.authority;
                    say(&format!("{who}: tell {authority} of an alarm: {error}"));
                }
            }
        });
        Self {
            who,
            say,
            authority,
            alarms,
            telling,
        }
    }

    /// Posts a document of JSON, while its caller goes on.
    pub fn tell(&self, alarm: String) {
        if self.alarms.try_send(alarm).is_err() {
            (self.say)(&format!(
                "{}: an alarm was not told: too many wait for the webhook",
                self.who
            ));
        }
    }

    /// Waits until all were told, or could not be, but not for ever.
    pub fn finish(self) {
        drop(self.alarms);
        if self.telling.recv_timeout(FAREWELL) == Err(RecvTimeoutError::Timeout) {
            (self.say)(&format!(
                "{}: {} did not take all alarms within {} s; they stand above",
                self.who,
                self.authority,
                FAREWELL.as_secs()
            ));
        }
    }
}

/// Where the receiver is: asked anew for each connection, as it may move.
#[derive(Debug)]
struct Addresses {
    host: String,
    port: u16,
    find: Find,
}

impl Resolver for Addresses {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let found = (self.find)(&self.host, self.port)?;
        if found.is_empty() {
            return Err(Error::HostNotFound);
        }
        let mut addresses = self.empty();
        for address in found.into_iter().take(MOST_ADDRESSES) {
            addresses.push(address);
        }
        Ok(addresses)
    }
}

impl Url {
    /// The name or address alone, with its zone.
    fn host(&self) -> &str {
        let host = self.authority.strip_suffix(&format!(":{}", self.port));
        let host = host.unwrap_or(&self.authority);
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// As a request has it: a zone means something to this host only (RFC 6874).
    fn uri(&self) -> String {
        let (scheme, target) = (self.scheme, &self.target);
        let authority = match (
            self.authority.split_once('%'),
            self.authority.split_once(']'),
        ) {
            (Some((address, _)), Some((_, port))) => format!("{address}]{port}"),
            _ => self.authority.clone(),
        };
        format!("{scheme}://{authority}{target}")
    }
}

/// One connection for each alarm; nothing is sent twice, elsewhere or by a proxy.
fn agent(url: &Url, find: Find) -> Agent {
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .user_agent("neph")
        .accept("")
        .accept_encoding("")
        .http_status_as_error(false)
        .max_redirects(0)
        .max_idle_connections(0)
        .max_response_header_size(LONGEST_HEAD)
        .proxy(None)
        .timeout_connect(Some(PATIENCE))
        .timeout_send_request(Some(PATIENCE))
        .timeout_send_body(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .build();
    let addresses = Addresses {
        host: url.host().to_owned(),
        port: url.port,
        find,
    };
    Agent::with_parts(config, DefaultConnector::new(), addresses)
}

fn post(agent: &Agent, url: &Url, body: &str) -> io::Result<()> {
    let answer = agent
        .post(url.uri())
        .header("Content-Type", "application/json")
        .header("Connection", "close")
        .send(body)
        .map_err(|error| match error {
            Error::Io(error) => error,
            other => io::Error::other(other),
        })?;
    if answer.status().is_success() {
        return Ok(());
    }
    let (version, status) = (answer.version(), answer.status().as_u16());
    Err(io::Error::other(format!(
        "it answered \"{version:?} {status}\""
    )))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, ToSocketAddrs};

    use rustls::ServerConfig;

    use super::*;

    fn find(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }

    /// A whole request whose body is a JSON object.
    fn request(peer: &mut TcpStream) -> Vec<u8> {
        let mut heard = Vec::new();
        while !heard.ends_with(b"}") {
            let mut some = [0; 512];
            let n = peer.read(&mut some).expect("read");
            assert!(n > 0, "it hung up: {heard:?}");
            heard.extend_from_slice(&some[..n]);
        }
        heard
    }

    #[test]
    fn a_url_is_http_with_a_host() {
        let right = url("http://[::1]:9/a?b").expect("a URL");
        assert_eq!((right.authority.as_str(), right.port), ("[::1]:9", 9));
        assert_eq!(right.target, "/a?b");
        assert_eq!(url("http://x").map(|url| url.port), Ok(80));
        assert_eq!(url("http://[::1]").map(|url| url.port), Ok(80));
        assert_eq!(url("https://x/").map(|url| url.port), Ok(443));
        for wrong in [
            "ftp://x/",
            "x",
            "http://",
            "http://a b/",
            "http://x:99999/",
            "http://a@b/",
        ] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_zone_is_for_finding_the_host_and_not_for_the_request() {
        let zoned = url("http://[fe80::1%eth0]:9/a").expect("a URL");
        assert_eq!(zoned.host(), "fe80::1%eth0");
        assert_eq!(zoned.uri(), "http://[fe80::1]:9/a");
        let plain = url("https://x:8443").expect("a URL");
        assert_eq!(
            (plain.host(), plain.uri().as_str()),
            ("x", "https://x:8443/")
        );
    }

    #[test]
    fn what_is_no_success_is_told_and_redirects_are_not_followed() {
        for status in ["404 Not Found", "302 Found", "307 Temporary Redirect"] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
            let address = listener.local_addr().expect("address");
            let hearing = std::thread::spawn(move || {
                let (mut peer, _) = listener.accept().expect("accept");
                request(&mut peer);
                let answer = format!("HTTP/1.1 {status}\r\nLocation: /b\r\n\r\n");
                peer.write_all(answer.as_bytes()).expect("answer");
            });
            let url = url(&format!("http://{address}/a")).expect("a URL");
            let told = post(&agent(&url, find), &url, "{}").expect_err(status);
            let expected = format!("it answered \"HTTP/1.1 {}\"", &status[..3]);
            assert_eq!(told.to_string(), expected);
            hearing.join().expect("heard");
        }
    }

    #[test]
    fn a_certificate_that_is_not_trusted_is_told() {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let certified = certified.expect("a certificate");
        let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key.expect("a key"));
        let config = Arc::new(config.expect("it fits"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let port = listener.local_addr().expect("address").port();
        let hearing = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("accept");
            let mut tls = rustls::ServerConnection::new(config).expect("a connection");
            tls.complete_io(&mut peer).expect_err("it is refused")
        });
        let url = url(&format!("https://localhost:{port}/a")).expect("a URL");
        let local = |_: &str, port| Ok(vec![([127, 0, 0, 1], port).into()]);
        let told = post(&agent(&url, local), &url, "{}").expect_err("it is nobody's");
        assert!(told.to_string().contains("certificate"), "{told}");
        hearing.join().expect("refused");
    }

    #[test]
    fn an_alarm_is_posted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let address = listener.local_addr().expect("address");
        let hearing = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("accept");
            let heard = request(&mut peer);
            peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
                .expect("answer");
            String::from_utf8(heard).expect("text")
        });
        let url = url(&format!("http://{address}/hear")).expect("a URL");
        let webhook = Webhook::begin(url, "neph watch", |_| {}, find);
        webhook.tell("{\"kind\":\"alarm\"}".to_owned());
        webhook.finish();
        let heard = hearing.join().expect("heard");
        assert!(heard.starts_with("POST /hear HTTP/1.1\r\n"), "{heard}");
        assert!(heard.ends_with("\r\n\r\n{\"kind\":\"alarm\"}"), "{heard}");
    }
}
