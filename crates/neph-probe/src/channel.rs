//! Between a protocol's bytes and a connection's bytes: nothing, or TLS.
//!
//! Sans-IO: rustls never touches a socket here. Owns no certificate policy (see [`crate::tls`]).

use std::io::{self, Read, Write};

use rustls::Connection;

/// What a stream's bytes go through.
pub(crate) enum Channel {
    Plain,
    Tls(Box<Connection>),
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Tls(_) => "Tls",
        })
    }
}

/// Why a channel is of no use any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    #[error(
        "TLS: the server's certificate is not trusted ({0}): name its authority with --ca-file, \
         or accept any certificate with --insecure"
    )]
    Untrusted(rustls::CertificateError),
    #[error("TLS: {0}")]
    Tls(rustls::Error),
    #[error("TLS: {0}")]
    Io(#[from] io::Error),
}

impl From<rustls::Error> for ChannelError {
    fn from(error: rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(why) => Self::Untrusted(why),
            other => Self::Tls(other),
        }
    }
}

impl Channel {
    /// TLS over `connection`, whose buffers are not limited: what is written is what the schedule
    /// asked for.
    pub(crate) fn tls(mut connection: Connection) -> Self {
        connection.set_buffer_limit(None);
        Self::Tls(Box::new(connection))
    }

    /// Whether protocol bytes may flow.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Self::Plain => true,
            Self::Tls(connection) => !connection.is_handshaking(),
        }
    }

    /// Appends whatever the channel itself has to say (a handshake's next flight, an alert).
    pub(crate) fn speak(&mut self, out: &mut Vec<u8>) -> Result<(), ChannelError> {
        if let Self::Tls(connection) = self {
            while connection.wants_write() {
                connection.write_tls(out)?;
            }
        }
        Ok(())
    }

    /// Appends to `out` what must go to the socket so that `plain` reaches the peer.
    pub(crate) fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), ChannelError> {
        match self {
            Self::Plain => out.extend_from_slice(plain),
            Self::Tls(connection) => {
                connection.writer().write_all(plain)?;
                self.speak(out)?;
            }
        }
        Ok(())
    }

    /// Appends what the channel says last, so that the peer can tell an end from a cut.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) -> Result<(), ChannelError> {
        if let Self::Tls(connection) = self {
            connection.send_close_notify();
        }
        self.speak(out)
    }

    /// Appends to `plain` what `received` holds for the protocol, and to `out` what the channel
    /// answers by itself.
    pub(crate) fn open(
        &mut self,
        mut received: &[u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        let Self::Tls(connection) = self else {
            plain.extend_from_slice(received);
            return Ok(());
        };
        while !received.is_empty() {
            if connection.read_tls(&mut received)? == 0 {
                break;
            }
            let state = connection.process_new_packets().inspect_err(|_| {
                // The alert that tells the peer why; if it cannot be built, the error still can.
                let _ = connection.write_tls(out);
            })?;
            let at = plain.len();
            plain.resize(at + state.plaintext_bytes_to_read(), 0);
            connection.reader().read_exact(&mut plain[at..])?;
        }
        self.speak(out)
    }
}
