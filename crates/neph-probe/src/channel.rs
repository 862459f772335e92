//! The layer between a protocol's bytes and a connection's bytes: plain or TLS.
//!
//! Sans-IO: rustls never touches a socket here. Owns no certificate policy (see [`crate::tls`]).

use std::io::{self, Read, Write};

use rustls::Connection;

/// Bytes that are encrypted at a time: whole records, so that TLS itself never buffers more.
const PIECE_BYTES: usize = 64 << 10;

/// The layer of one stream.
pub(crate) enum Channel {
    Plain,
    Tls(Box<Tls>),
}

pub(crate) struct Tls {
    connection: Connection,
    records: Records,
    /// See [`Channel::is_at_record_end`].
    is_at_record_end: bool,
    /// See [`Channel::has_ended`].
    has_ended: bool,
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Tls(_) => "Tls",
        })
    }
}

/// How the peer's bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// Closed on every layer: everything that was sent was received.
    Closed,
    /// TCP ended and TLS did not: bytes may be missing (RFC 8446, 6.1).
    Truncated,
}

/// Why a channel cannot be used any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    #[error("TLS: {}", crate::tls::describe_certificate_error(.0))]
    Untrusted(rustls::CertificateError),
    #[error(
        "TLS: what came is no TLS ({0:?}); if plain text is spoken there, use the scheme without TLS"
    )]
    NotTls(rustls::InvalidMessage),
    #[error("{}", crate::tls::describe_handshake_error(.0))]
    Tls(rustls::Error),
    #[error("TLS: {0}")]
    Io(#[from] io::Error),
}

impl From<rustls::Error> for ChannelError {
    fn from(error: rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(reason) => Self::Untrusted(reason),
            rustls::Error::InvalidMessage(reason) => Self::NotTls(reason),
            other => Self::Tls(other),
        }
    }
}

impl Channel {
    /// TLS over `connection`, without a limit for its buffers: the schedule determines what is written.
    pub(crate) fn tls(mut connection: Connection) -> Self {
        connection.set_buffer_limit(None);
        Self::Tls(Box::new(Tls {
            connection,
            records: Records::default(),
            is_at_record_end: false,
            has_ended: false,
        }))
    }

    /// Whether protocol bytes may flow.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Self::Plain => true,
            Self::Tls(tls) => !tls.connection.is_handshaking(),
        }
    }

    /// Appends bytes of the channel itself, as the next flight of a handshake or an alert.
    pub(crate) fn speak(&mut self, out: &mut Vec<u8>) -> Result<(), ChannelError> {
        if let Self::Tls(tls) = self {
            while tls.connection.wants_write() {
                tls.connection.write_tls(out)?;
            }
        }
        Ok(())
    }

    /// Appends to `out` the bytes that carry `plain` to the peer.
    pub(crate) fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), ChannelError> {
        match self {
            Self::Plain => out.extend_from_slice(plain),
            Self::Tls(_) => {
                for piece in plain.chunks(PIECE_BYTES) {
                    self.seal_piece(piece, out)?;
                }
            }
        }
        Ok(())
    }

    fn seal_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), ChannelError> {
        if let Self::Tls(tls) = self {
            tls.connection.writer().write_all(piece)?;
        }
        self.speak(out)
    }

    /// As [`Self::seal`], but moves the bytes instead of copying them if they need no change and nothing
    /// precedes them. The content of `plain` is undefined afterwards.
    pub(crate) fn move_into(
        &mut self,
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        if matches!(self, Self::Plain) && out.is_empty() {
            std::mem::swap(plain, out);
            return Ok(());
        }
        self.seal(plain, out)
    }

    /// Appends the channel's closing bytes, so that the peer can distinguish an end from a cut.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) -> Result<(), ChannelError> {
        if let Self::Tls(tls) = self {
            tls.connection.send_close_notify();
        }
        self.speak(out)
    }

    /// Appends to `plain` the protocol bytes in `received`, and to `out` the channel's own answer.
    pub(crate) fn open(
        &mut self,
        mut received: &[u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        let Self::Tls(tls) = self else {
            plain.extend_from_slice(received);
            return Ok(());
        };
        while !received.is_empty() {
            let (count, ends) = tls.records.pass(received);
            let (record, rest) = received.split_at(count);
            let before = plain.len();
            tls.open(record, plain, out)?;
            tls.is_at_record_end = ends && plain.len() > before;
            received = rest;
        }
        self.speak(out)
    }

    /// Whether the peer announced its end (TLS `close_notify`, RFC 8446, 6.1). A plain stream ends with TCP
    /// alone.
    pub(crate) const fn has_ended(&self) -> bool {
        match self {
            Self::Plain => false,
            Self::Tls(tls) => tls.has_ended,
        }
    }

    /// The meaning of the end of the TCP stream: a regular end, or a cut where TLS should have ended before.
    pub(crate) const fn end_of_tcp(&self) -> StreamEnd {
        match self {
            Self::Plain => StreamEnd::Closed,
            Self::Tls(tls) if tls.has_ended => StreamEnd::Closed,
            Self::Tls(_) => StreamEnd::Truncated,
        }
    }

    /// Whether the last received byte carried, or encrypted, the last byte that the protocol got. Only then
    /// is the kernel timestamp of a read that of the message. A part of the next record, or a record of TLS
    /// itself, may follow the record that ends the message.
    pub(crate) const fn is_at_record_end(&self) -> bool {
        match self {
            Self::Plain => true,
            Self::Tls(tls) => tls.is_at_record_end,
        }
    }
}

impl Tls {
    fn open(
        &mut self,
        mut received: &[u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        let connection = &mut self.connection;
        while !received.is_empty() && connection.read_tls(&mut received)? > 0 {
            let state = connection.process_new_packets().inspect_err(|_| {
                // The alert for the peer. If it cannot be built, the error is still returned.
                let _ = connection.write_tls(out);
            })?;
            self.has_ended |= state.peer_has_closed();
            let at = plain.len();
            plain.resize(at + state.plaintext_bytes_to_read(), 0);
            connection.reader().read_exact(&mut plain[at..])?;
        }
        Ok(())
    }
}

/// Finds the ends of TLS records, which rustls does not report (RFC 8446, 5.1: type, version and length).
#[derive(Default)]
struct Records {
    head: [u8; Self::HEAD],
    /// Bytes of the head that were received.
    known: usize,
    /// Bytes of the body that are missing.
    left: usize,
}

impl Records {
    const HEAD: usize = 5;

    /// How many of `bytes` belong to the current record, and whether they end it.
    fn pass(&mut self, bytes: &[u8]) -> (usize, bool) {
        let of_head = bytes.len().min(Self::HEAD - self.known);
        self.head[self.known..self.known + of_head].copy_from_slice(&bytes[..of_head]);
        self.known += of_head;
        if self.known < Self::HEAD {
            return (of_head, false);
        }
        if of_head > 0 {
            self.left = u16::from_be_bytes([self.head[3], self.head[4]]).into();
        }
        let of_body = self.left.min(bytes.len() - of_head);
        self.left -= of_body;
        if self.left == 0 {
            self.known = 0;
        }
        (of_head + of_body, self.left == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_ends_are_found_however_the_bytes_are_split() {
        let stream = [
            &[22, 3, 1, 0, 2, 7, 7][..],
            &[23, 3, 3, 0, 0],
            &[23, 3, 3, 1, 0],
            &[9; 256],
        ]
        .concat();
        let ends = [7, 12, 12 + 261];
        for size in 1..=stream.len() {
            let (mut records, mut at, mut observed) = (Records::default(), 0, Vec::new());
            for mut piece in stream.chunks(size) {
                while !piece.is_empty() {
                    let (count, is_ended) = records.pass(piece);
                    at += count;
                    observed.extend(is_ended.then_some(at));
                    piece = &piece[count..];
                }
            }
            assert_eq!(observed, ends, "pieces of {size}");
        }
    }
}
