//! Telling somebody else of alarms: a POST for each, on a thread of its own, so that a slow hearer
//! keeps nothing waiting.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use neph_wire::http::{Connection, RequestLine};

/// Connecting, sending and the answer may take this long each.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is not told yet at the end may take this long.
const FAREWELL: Duration = Duration::from_secs(10);
/// Alarms that wait to be told; more are not.
const WAITING: usize = 64;

/// Where alarms are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Name or address, and port.
    authority: String,
    port: u16,
    target: String,
}

/// `http://HOST[:PORT][/PATH]`
///
/// # Errors
/// It is none, in a sentence with what to write.
pub fn url(text: &str) -> Result<Url, String> {
    let Some(rest) = text.strip_prefix("http://") else {
        return Err(
            "write http://HOST:PORT/PATH; what speaks https needs a proxy before it".into(),
        );
    };
    let (authority, target) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, "/"),
    };
    // The last colon, unless it is within an address of IPv6.
    let port = match authority.rsplit_once(':') {
        Some((_, port)) if !authority.ends_with(']') => port
            .parse()
            .map_err(|_| format!("'{port}' is no port; write http://HOST:PORT/PATH"))?,
        _ => 80,
    };
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !plain(authority) || !plain(target) || authority.contains('@') {
        return Err("write http://HOST:PORT/PATH".to_owned());
    }
    Ok(Url {
        authority: authority.to_owned(),
        port,
        target: target.to_owned(),
    })
}

/// Takes a sentence for people.
type Say = fn(&str);

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
    pub fn begin(url: Url, who: &'static str, say: Say) -> Self {
        let (alarms, told) = sync_channel::<String>(WAITING);
        let authority = url.authority.clone();
        let (ended, telling) = sync_channel(0);
        // It ends with the process if its hearer is silent for longer than is waited for.
        std::thread::spawn(move || {
            let _ended: SyncSender<()> = ended;
            for body in told {
                if let Err(error) = post(&url, &body) {
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

/// To the first of the addresses at which somebody answers: `localhost` is `::1` first.
fn connect(to: (&str, u16)) -> io::Result<TcpStream> {
    let mut refused = io::ErrorKind::NotFound.into();
    for address in to.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn post(url: &Url, body: &str) -> io::Result<()> {
    let host = url.authority.strip_suffix(&format!(":{}", url.port));
    let host = host.unwrap_or(&url.authority);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut stream = connect((host, url.port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = RequestLine {
        method: "POST",
        target: &url.target,
        host: &url.authority,
        content_length: Some(body.len() as u64),
        connection: Connection::Close,
    };
    let mut request = Vec::new();
    head.encode(&[("Content-Type", "application/json")], &mut request)
        .map_err(io::Error::other)?;
    request.extend_from_slice(body.as_bytes());
    stream.write_all(&request)?;
    let mut status = [0; 12];
    stream.read_exact(&mut status)?;
    if status.starts_with(b"HTTP/1.") && status[9] == b'2' {
        return Ok(());
    }
    let status = String::from_utf8_lossy(&status).into_owned();
    Err(io::Error::other(format!("it answered {status:?}")))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_url_is_plain_http_with_a_host() {
        let right = url("http://[::1]:9/a?b").expect("a URL");
        assert_eq!((right.authority.as_str(), right.port), ("[::1]:9", 9));
        assert_eq!(right.target, "/a?b");
        assert_eq!(url("http://x").map(|url| url.port), Ok(80));
        assert_eq!(url("http://[::1]").map(|url| url.port), Ok(80));
        for wrong in [
            "https://x/",
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
    fn an_alarm_is_posted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let address = listener.local_addr().expect("address");
        let hearing = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("accept");
            let mut heard = Vec::new();
            while !heard.ends_with(b"}") {
                let mut some = [0; 512];
                let n = peer.read(&mut some).expect("read");
                assert!(n > 0, "it hung up: {heard:?}");
                heard.extend_from_slice(&some[..n]);
            }
            peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
                .expect("answer");
            String::from_utf8(heard).expect("text")
        });
        let url = url(&format!("http://{address}/hear")).expect("a URL");
        let webhook = Webhook::begin(url, "neph watch", |_| {});
        webhook.tell("{\"kind\":\"alarm\"}".to_owned());
        webhook.finish();
        let heard = hearing.join().expect("heard");
        assert!(heard.starts_with("POST /hear HTTP/1.1\r\n"), "{heard}");
        assert!(heard.ends_with("\r\n\r\n{\"kind\":\"alarm\"}"), "{heard}");
    }
}
