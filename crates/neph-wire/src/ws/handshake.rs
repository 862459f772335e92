//! The opening handshake: the upgrade from HTTP/1.1 to WebSocket (RFC 6455 section 4).
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

/// Why a handshake fails.
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
    /// The accept key does not match the key of the request.
    #[error("websocket handshake: Sec-WebSocket-Accept does not match the key")]
    Accept,
    /// The server chose an extension or a subprotocol that was not offered.
    #[error("websocket handshake: server chose an extension or subprotocol that was not offered")]
    NotOffered,
    /// Host, path or a header has a character that is not allowed in a head.
    #[error("websocket handshake: {0}")]
    Head(#[from] HttpError),
}

/// A client's request for an upgrade.
#[derive(Debug, Clone, Copy)]
pub struct UpgradeRequest<'a> {
    /// The Host header: name or address, with the port unless it is the default of the scheme.
    pub host: &'a str,
    /// Path and query; begins with a slash.
    pub target: &'a str,
    /// The result of [`client_key`].
    pub key: &'a str,
}

/// The key header of a client, from 16 random bytes.
pub fn client_key(random: [u8; 16]) -> String {
    STANDARD.encode(random)
}

/// The accept header for `key` (section 4.2.2, step 5.4).
pub fn accept_key(key: &str) -> String {
    let mut sha = Sha1::new();
    sha.update(key.as_bytes());
    sha.update(GUID.as_bytes());
    STANDARD.encode(sha.finalize())
}

impl UpgradeRequest<'_> {
    /// Appends the request head.
    ///
    /// # Errors
    /// When a field has a character that is not allowed in a head; appends nothing then.
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

/// Checks a client's upgrade request and returns its key, for [`server_response`].
///
/// # Errors
/// When it is no valid request for WebSocket version 13 (section 4.2.1).
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
    // 16 bytes are 24 characters: a longer key is refused before it is decoded.
    if key.len() != 24 || STANDARD.decode(key).map(|bytes| bytes.len()) != Ok(16) {
        return Err(HandshakeError::Key);
    }
    Ok(key)
}

/// Appends the server's response to a `key` from [`check_request`].
pub fn server_response(key: &str, out: &mut Vec<u8>) {
    write!(
        out,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        accept_key(key)
    )
    .expect("writing to a Vec cannot fail");
}

/// Checks a server's response for this `key` (section 4.1).
///
/// # Errors
/// When the server did not upgrade, or not as requested.
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
    let unrequested = ["sec-websocket-extensions", "sec-websocket-protocol"];
    if unrequested.iter().any(|name| headers.first(name).is_some()) {
        return Err(HandshakeError::NotOffered);
    }
    Ok(())
}
