//! Posts alarms to another program, on a separate thread, so that a slow receiver delays nothing.
//!
//! Owns the queue. Does not own requests (see `http`).

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::http::{Notify, Resolve, Url, agent, post};

/// Timeout for alarms that are still in the queue at the end.
const FAREWELL: Duration = Duration::from_secs(10);
/// Length of the queue; further alarms are dropped.
const WAITING: usize = 64;

/// A thread that posts alarms.
#[derive(Debug)]
pub struct Webhook {
    /// The command in messages.
    command: &'static str,
    notify: Notify,
    authority: String,
    alarms: SyncSender<String>,
    /// Disconnected when all alarms were posted.
    reporting: Receiver<()>,
}

impl Webhook {
    /// Posts alarms of a command, `neph watch`.
    pub fn begin(url: Url, command: &'static str, notify: Notify, resolve: Resolve) -> Self {
        let (alarms, queued) = sync_channel::<String>(WAITING);
        let authority = url.authority().to_owned();
        let (ended, reporting) = sync_channel(0);
        // If the receiver exceeds the timeout, the thread ends with the process.
        std::thread::spawn(move || {
            let _ended: SyncSender<()> = ended;
            let agent = agent(&url, resolve);
            for body in queued {
                if let Err(error) = post(&agent, &url, &body) {
                    let authority = url.authority();
                    notify(&format!("{command}: post an alarm to {authority}: {error}"));
                }
            }
        });
        Self {
            command,
            notify,
            authority,
            alarms,
            reporting,
        }
    }

    /// Queues a JSON document without blocking.
    pub fn report(&self, alarm: String) {
        if self.alarms.try_send(alarm).is_err() {
            (self.notify)(&format!(
                "{}: an alarm was not posted: too many wait for the webhook",
                self.command
            ));
        }
    }

    /// Waits until all alarms were posted or failed, up to a timeout.
    pub fn finish(self) {
        drop(self.alarms);
        if self.reporting.recv_timeout(FAREWELL) == Err(RecvTimeoutError::Timeout) {
            (self.notify)(&format!(
                "{}: {} did not accept all alarms within {} s; they are listed above",
                self.command,
                self.authority,
                FAREWELL.as_secs()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};

    use std::sync::Arc;

    use rustls::ServerConfig;
    use rustls::crypto::ring;

    use super::*;
    use crate::http::url;

    fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }

    /// A complete request with a JSON object as its body.
    fn request(peer: &mut TcpStream) -> Vec<u8> {
        let mut received = Vec::new();
        while !received.ends_with(b"}") {
            let mut buffer = [0; 512];
            let n = peer.read(&mut buffer).expect("read");
            assert!(n > 0, "it hung up: {received:?}");
            received.extend_from_slice(&buffer[..n]);
        }
        received
    }

    #[test]
    fn failures_are_reported_and_redirects_are_not_followed() {
        for status in ["404 Not Found", "302 Found", "307 Temporary Redirect"] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
            let address = listener.local_addr().expect("address");
            let server_thread = std::thread::spawn(move || {
                let (mut peer, _) = listener.accept().expect("accept");
                request(&mut peer);
                let answer = format!("HTTP/1.1 {status}\r\nLocation: /b\r\n\r\n");
                peer.write_all(answer.as_bytes()).expect("answer");
            });
            let url = url(&format!("http://{address}/a")).expect("a URL");
            let error = post(&agent(&url, resolve), &url, "{}").expect_err(status);
            let expected = format!("it answered \"HTTP/1.1 {}\"", &status[..3]);
            assert_eq!(error.to_string(), expected);
            server_thread.join().expect("heard");
        }
    }

    #[test]
    fn an_untrusted_certificate_is_reported() {
        let certified_key = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let certified_key = certified_key.expect("a certificate");
        let key =
            rustls::pki_types::PrivateKeyDer::try_from(certified_key.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certified_key.cert.der().clone()], key.expect("a key"));
        let config = Arc::new(config.expect("it fits"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let port = listener.local_addr().expect("address").port();
        let server_thread = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("accept");
            let mut tls = rustls::ServerConnection::new(config).expect("a connection");
            tls.complete_io(&mut peer).expect_err("it is refused")
        });
        let url = url(&format!("https://localhost:{port}/a")).expect("a URL");
        let local = |_: &str, port| Ok(vec![([127, 0, 0, 1], port).into()]);
        let error = post(&agent(&url, local), &url, "{}").expect_err("no listener");
        assert!(error.to_string().contains("certificate"), "{error}");
        server_thread.join().expect("refused");
    }

    #[test]
    fn an_alarm_is_posted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let address = listener.local_addr().expect("address");
        let server_thread = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("accept");
            let received = request(&mut peer);
            peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
                .expect("answer");
            String::from_utf8(received).expect("text")
        });
        let url = url(&format!("http://{address}/hear")).expect("a URL");
        let webhook = Webhook::begin(url, "neph watch", |_| {}, resolve);
        webhook.report("{\"kind\":\"alarm\"}".to_owned());
        webhook.finish();
        let received = server_thread.join().expect("heard");
        assert!(
            received.starts_with("POST /hear HTTP/1.1\r\n"),
            "{received}"
        );
        assert!(
            received.ends_with("\r\n\r\n{\"kind\":\"alarm\"}"),
            "{received}"
        );
    }
}
