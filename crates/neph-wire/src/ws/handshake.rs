//! The opening handshake: HTTP/1.1 that turns into WebSocket (RFC 6455 section 4).
//!
//! Owns the headers and the accept key. Does not own parsing of heads (see `http`), nor the random
//! bytes of a client's key.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};
use thiserror::Error;

use crate::http::{HttpError, RequestHead, ResponseHead, check_text};

/// Appended to every key before hashing (section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Why a handshake does not open a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// Only GET over HTTP/1.1 can be upgraded.
    #[error("websocket handshake: request is not GET over HTTP/1.1")]
    Method,
    /// The server did not answer 101.
    #[error("websocket handshake: server answered {0}, not 101")]
    Status(u16),
    /// `Upgrade: websocket` or `Connection: Upgrade` is missing.
    #[error("websocket handshake: no Upgrade to websocket")]
    Upgrade,
    /// Any version but 13; answer 426.
    #[error("websocket handshake: Sec-WebSocket-Version is not 13")]
    Version,
    /// The key is missing, repeated, or not 16 bytes in base64.
    #[error("websocket handshake: Sec-WebSocket-Key is missing or malformed")]
    Key,
    /// The accept key does not belong to the key that was sent.
    #[error("websocket handshake: Sec-WebSocket-Accept does not match the key")]
    Accept,
    /// The server chose an extension or a subprotocol that nobody offered.
    #[error("websocket handshake: server chose an extension or subprotocol that was not offered")]
    Unasked,
    /// Host, path or a header has a character that would break the head.
    #[error("websocket handshake: {0}")]
    Head(#[from] HttpError),
}

/// What a client asks to be upgraded.
#[derive(Debug, Clone, Copy)]
pub struct UpgradeRequest<'a> {
    /// The Host header: name or address, with the port unless it is the scheme's own.
    pub host: &'a str,
    /// Path and query, beginning with a slash.
    pub target: &'a str,
    /// From [`client_key`].
    pub key: &'a str,
}

/// A client's key header from 16 random bytes.
pub fn client_key(random: [u8; 16]) -> String {
    STANDARD.encode(random)
}

/// The accept header that answers `key` (section 4.2.2, step 5.4).
pub fn accept_key(key: &str) -> String {
    let mut sha = Sha1::new();
    sha.update(key.as_bytes());
    sha.update(GUID.as_bytes());
    STANDARD.encode(sha.finalize())
}

impl UpgradeRequest<'_> {
    /// Appends the request's head.
    ///
    /// # Errors
    /// When a field holds a character that would break the head; nothing is appended then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), HandshakeError> {
        for text in [self.host, self.target, self.key] {
            check_text(text)?;
        }
        write!(
            out,
            "GET {} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {}\r\nSec-WebSocket-Version: 13\r\n\r\n",
            self.target, self.host, self.key
        )
        .expect("writing to a Vec cannot fail");
        Ok(())
    }
}

/// Reads a client's request to upgrade: its key, to be answered with [`server_response`].
///
/// # Errors
/// When the request does not ask for WebSocket version 13 properly (section 4.2.1).
pub fn check_request<'a>(head: &RequestHead<'a>) -> Result<&'a str, HandshakeError> {
    if head.method() != "GET" || head.minor_version() != 1 {
        return Err(HandshakeError::Method);
    }
    let headers = head.headers();
    if !headers.lists("upgrade", "websocket") || !headers.lists("connection", "upgrade") {
        return Err(HandshakeError::Upgrade);
    }
    if headers.only("sec-websocket-version") != Some(b"13") {
        return Err(HandshakeError::Version);
    }
    let key = headers
        .only("sec-websocket-key")
        .ok_or(HandshakeError::Key)?;
    let key = str::from_utf8(key).map_err(|_| HandshakeError::Key)?;
    // 24 characters hold 16 bytes: a longer key is refused before it is decoded.
    if key.len() != 24 || STANDARD.decode(key).map(|bytes| bytes.len()) != Ok(16) {
        return Err(HandshakeError::Key);
    }
    Ok(key)
}

/// Appends the server's answer to a client's `key` from [`check_request`].
pub fn server_response(key: &str, out: &mut Vec<u8>) {
    write!(
        out,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        accept_key(key)
    )
    .expect("writing to a Vec cannot fail");
}

/// Checks a server's answer against the `key` that was sent (section 4.1).
///
/// # Errors
/// When the server did not upgrade, or not to what was asked.
pub fn check_response(head: &ResponseHead<'_>, key: &str) -> Result<(), HandshakeError> {
    if head.status() != 101 {
        return Err(HandshakeError::Status(head.status()));
    }
    let headers = head.headers();
    if !headers.lists("upgrade", "websocket") || !headers.lists("connection", "upgrade") {
        return Err(HandshakeError::Upgrade);
    }
    if headers.only("sec-websocket-accept") != Some(accept_key(key).as_bytes()) {
        return Err(HandshakeError::Accept);
    }
    let unasked = ["sec-websocket-extensions", "sec-websocket-protocol"];
    if unasked.iter().any(|name| headers.first(name).is_some()) {
        return Err(HandshakeError::Unasked);
    }
    Ok(())
}
