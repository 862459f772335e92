//! HTTP POST requests: the URL of a receiver, and the limits of a request.
//!
//! Does not own HTTP (ureq does), nor name resolution (the caller does).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use ureq::config::Config;
use ureq::http::{Response, Uri};
use ureq::tls::TlsConfig;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body, Error};

/// Timeout for each of connecting, sending and the response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of a response head, bytes.
const LONGEST_HEAD: usize = 8 << 10;
/// Maximum length of a response body that is read, bytes.
const LONGEST_BODY: u64 = 64 << 10;
/// Maximum number of addresses of a host that are tried.
const MAX_ADDRESSES: usize = 16;

/// Prints a message.
pub(crate) type Notify = fn(&str);
/// Returns the addresses of a host and port, in the order of attempts.
pub(crate) type Resolve = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// The URL of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    scheme: &'static str,
    /// Host name or address, and port.
    authority: String,
    port: u16,
    target: String,
}

/// Parses `http://HOST[:PORT][/PATH]`, or the same with `https://`.
///
/// # Errors
/// It is no such URL: a message with the remedy.
pub fn url(text: &str) -> Result<Url, String> {
    const WRITE: &str = "write http://HOST:PORT/PATH, or https://HOST/PATH";
    let schemes = [("http", 80), ("https", 443)];
    let known = schemes.into_iter().find_map(|(scheme, port)| {
        let remaining = text.strip_prefix(scheme)?.strip_prefix("://")?;
        Some((scheme, port, remaining))
    });
    let (scheme, default_port, remaining) = known.ok_or(WRITE)?;
    let (authority, target) = match remaining.find('/') {
        Some(slash) => remaining.split_at(slash),
        None => (remaining, "/"),
    };
    // The last colon, unless it is within an IPv6 address.
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

/// Resolves the receiver for each connection, because its address may change.
#[derive(Debug)]
struct Addresses {
    host: String,
    port: u16,
    resolve: Resolve,
}

impl Resolver for Addresses {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let found = (self.resolve)(&self.host, self.port)?;
        if found.is_empty() {
            return Err(Error::HostNotFound);
        }
        let mut addresses = self.empty();
        for address in found.into_iter().take(MAX_ADDRESSES) {
            addresses.push(address);
        }
        Ok(addresses)
    }
}

impl Url {
    /// Host name or address, and port.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// With this path, if the URL has none.
    pub(crate) fn or_path(mut self, path: &str) -> Self {
        if self.target == "/" {
            path.clone_into(&mut self.target);
        }
        self
    }

    /// The host name or address, with its zone.
    pub(crate) fn host(&self) -> &str {
        let host = self.authority.strip_suffix(&format!(":{}", self.port));
        let host = host.unwrap_or(&self.authority);
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// The URI of a request, without a zone, which is meaningful only on this host (RFC 6874).
    pub(crate) fn uri(&self) -> String {
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

/// One connection for each request; no request is repeated, redirected or sent through a proxy.
pub(crate) fn agent(url: &Url, resolve: Resolve) -> Agent {
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
        .timeout_recv_body(Some(PATIENCE))
        .build();
    let addresses = Addresses {
        host: url.host().to_owned(),
        port: url.port,
        resolve,
    };
    Agent::with_parts(config, DefaultConnector::new(), addresses)
}

/// Posts a JSON document.
///
/// # Errors
/// The receiver cannot be reached, or its status is not 200 to 299.
pub(crate) fn post(agent: &Agent, url: &Url, body: &str) -> io::Result<()> {
    send(agent, url, body).map(drop)
}

/// Posts a JSON document; returns the response body, empty if it cannot be read.
///
/// # Errors
/// As [`post`].
pub(crate) fn exchange(agent: &Agent, url: &Url, body: &str) -> io::Result<String> {
    let mut answer = send(agent, url, body)?;
    let body = answer.body_mut().with_config().limit(LONGEST_BODY);
    Ok(body.read_to_string().unwrap_or_default())
}

fn send(agent: &Agent, url: &Url, body: &str) -> io::Result<Response<Body>> {
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
        return Ok(answer);
    }
    let (version, status) = (answer.version(), answer.status().as_u16());
    Err(io::Error::other(format!(
        "it answered \"{version:?} {status}\""
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_http_with_a_host() {
        let parsed = url("http://[::1]:9/a?b").expect("a URL");
        assert_eq!((parsed.authority.as_str(), parsed.port), ("[::1]:9", 9));
        assert_eq!(parsed.target, "/a?b");
        assert_eq!(url("http://x").map(|url| url.port), Ok(80));
        assert_eq!(url("http://[::1]").map(|url| url.port), Ok(80));
        assert_eq!(url("https://x/").map(|url| url.port), Ok(443));
        for invalid in [
            "ftp://x/",
            "x",
            "http://",
            "http://a b/",
            "http://x:99999/",
            "http://a@b/",
        ] {
            assert!(url(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn an_ipv6_zone_is_used_to_connect_and_not_sent_in_the_request() {
        let zoned = url("http://[fe80::1%eth0]:9/a").expect("a URL");
        assert_eq!(zoned.host(), "fe80::1%eth0");
        assert_eq!(zoned.uri(), "http://[fe80::1]:9/a");
        let plain = url("https://x:8443").expect("a URL");
        assert_eq!(
            (plain.host(), plain.uri().as_str()),
            ("x", "https://x:8443/")
        );
    }
}
