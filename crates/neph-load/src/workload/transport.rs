//! The bytes of a connection, plain or over TLS. Never waits.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;

use super::failure::RequestFailure;

/// TLS of a load.
#[derive(Clone, Debug)]
pub struct TlsTarget {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsTarget {
    /// These settings, with the name or address that the certificate must have. `None` if it is neither.
    pub fn new(config: Arc<ClientConfig>, host: &str) -> Option<Self> {
        let name = ServerName::try_from(host.to_owned()).ok()?;
        Some(Self { config, name })
    }
}

/// A connected or connecting socket.
#[derive(Debug)]
pub(super) enum Transport {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Transport {
    /// Over TLS, the handshake begins with the first bytes that are written.
    pub(super) fn new(stream: TcpStream, tls: Option<&TlsTarget>) -> Result<Self, RequestFailure> {
        let Some(tls) = tls else {
            return Ok(Self::Plain(stream));
        };
        let session = ClientConnection::new(Arc::clone(&tls.config), tls.name.clone());
        let session = session.map_err(|_| RequestFailure::Tls)?;
        Ok(Self::Tls(Box::new(StreamOwned::new(session, stream))))
    }

    pub(super) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &stream.sock,
        }
    }

    pub(super) const fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    pub(super) fn is_handshaking(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.conn.is_handshaking(),
        }
    }

    /// Whether it waits for room in the socket: a handshake mostly waits for the peer.
    pub(super) fn waits_for_room(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(stream) => stream.conn.wants_write(),
        }
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            // 0: its buffer is full.
            Self::Tls(stream) => match stream.write(bytes)? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                count => Ok(count),
            },
        }
    }

    /// Sends what TLS keeps in its buffer.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
