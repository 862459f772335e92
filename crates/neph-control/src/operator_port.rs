//! Connects an operator's host to the controller's port: the bytes of the campaign socket over a
//! WebSocket over TLS.
//!
//! Owns the connection and its thread. The campaign socket defines the meaning of the bytes.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use neph_agent::remote::{CONTROLLER_NAME, ControllerAddress, Identity, PROTOCOL};
use neph_model::{Span, Wall};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::now::now;

/// Maximum size of a WebSocket message in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// Timeout of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without a heartbeat until the controller counts as disconnected.
pub(crate) const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum clock offset of the controller, ns: about 30 years.
const MAX_CLOCK_OFFSET: i64 = 1_000_000_000_000_000_000;

/// Why an operator cannot use the controller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// It is not reachable, or an authentication failed.
    #[error(
        "cannot reach the controller at {address}: {why}; is it running, and is this its address?"
    )]
    Unreachable {
        /// Its address.
        address: String,
        /// The cause.
        why: String,
    },
    /// It rejects this certificate.
    #[error("{0}")]
    Refused(String),
}

/// The port of a controller, and the operator's identity.
#[derive(Clone, Debug)]
pub struct OperatorPort {
    address: ControllerAddress,
    identity: Identity,
}

/// The clock of a controller on another host, as an offset from the local clock. The last heartbeat
/// sets it; it is too low by the transit time of that heartbeat.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControllerClock(Arc<AtomicI64>);

impl ControllerClock {
    pub(crate) fn now(&self) -> Wall {
        now() + Span::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn read(&self, payload: &[u8]) -> bool {
        let Ok(bytes) = <[u8; 8]>::try_from(payload) else {
            return false;
        };
        let offset = i64::from_le_bytes(bytes).saturating_sub(now().unix_nanos());
        let offset = offset.clamp(-MAX_CLOCK_OFFSET, MAX_CLOCK_OFFSET);
        self.0.store(offset, Ordering::Relaxed);
        true
    }
}

/// The URL path for operators, which contains the protocol version.
pub(crate) fn operator_path() -> String {
    format!("/operator/{PROTOCOL}")
}

/// Contents of the controller's heartbeat: its clock.
pub(crate) fn clock_payload() -> Vec<u8> {
    now().unix_nanos().to_le_bytes().to_vec()
}

type Socket = WebSocketStream<TlsStream<TcpStream>>;

impl OperatorPort {
    /// The controller at `wss://HOST:PORT`, for the operator with this identity.
    pub const fn new(address: ControllerAddress, identity: Identity) -> Self {
        Self { address, identity }
    }

    /// Its address.
    pub const fn address(&self) -> &ControllerAddress {
        &self.address
    }

    fn unreachable(&self, why: &dyn std::fmt::Display) -> OperatorError {
        OperatorError::Unreachable {
            address: self.address.to_string(),
            why: why.to_string(),
        }
    }

    /// Opens a stream to the controller, with the controller's clock. The stream closes when the
    /// controller disconnects.
    pub(crate) fn connect(&self) -> Result<(UnixStream, ControllerClock), OperatorError> {
        let failed = |why: std::io::Error| self.unreachable(&why);
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().map_err(failed)?;
        let (local_end, remote_end) = UnixStream::pair().map_err(failed)?;
        remote_end.set_nonblocking(true).map_err(failed)?;
        let (ready, is_ready) = sync_channel(1);
        let (port, clock) = (self.clone(), ControllerClock::default());
        let clock_writer = clock.clone();
        let thread = std::thread::Builder::new().name("controller".to_owned());
        let work = async move {
            match port.open(&clock_writer).await {
                Ok(socket) => carry(socket, remote_end, &clock_writer, &ready).await,
                Err(error) => drop(ready.send(Err(error))),
            }
        };
        let spawned = thread.spawn(move || runtime.block_on(work));
        spawned.map_err(failed)?;
        match is_ready.recv() {
            Ok(Ok(())) => Ok((local_end, clock)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(self.unreachable(&"it closed the connection")),
        }
    }

    /// Connects, and waits for the first heartbeat.
    async fn open(&self, clock: &ControllerClock) -> Result<Socket, OperatorError> {
        let opening = async {
            let mut socket = self.dial().await?;
            loop {
                match socket.next().await {
                    Some(Ok(Message::Ping(payload))) if clock.read(&payload) => return Ok(socket),
                    Some(Ok(Message::Ping(_))) => {}
                    Some(Err(error)) => return Err(self.unreachable(&error)),
                    Some(Ok(_)) | None => {
                        return Err(self.unreachable(&"it is of another version of neph"));
                    }
                }
            }
        };
        let result = timeout(CONNECT_TIMEOUT, opening).await;
        result.unwrap_or_else(|_| Err(self.unreachable(&"it does not answer")))
    }

    async fn dial(&self) -> Result<Socket, OperatorError> {
        let Some(authority) = self.address.at_its_port() else {
            return Err(self.unreachable(
                &"an operator connects to the controller's own port, wss://HOST:PORT",
            ));
        };
        let tls = self
            .identity
            .tls()
            .map_err(|error| self.unreachable(&error))?;
        let name =
            ServerName::try_from(CONTROLLER_NAME).map_err(|error| self.unreachable(&error))?;
        let stream = TcpStream::connect(authority).await;
        let stream = stream.map_err(|error| self.unreachable(&error))?;
        stream
            .set_nodelay(true)
            .map_err(|error| self.unreachable(&error))?;
        let stream = TlsConnector::from(tls).connect(name, stream).await;
        let stream = stream.map_err(|error| self.unreachable(&error))?;
        let mut config = WebSocketConfig::default();
        config.max_message_size = Some(MAX_MESSAGE_BYTES);
        config.max_frame_size = Some(MAX_MESSAGE_BYTES);
        let url = format!("wss://{CONTROLLER_NAME}{}", operator_path());
        let opened = tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await;
        match opened {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(response)) => Err(self.refused(response.status().as_u16())),
            Err(error) => Err(self.unreachable(&error)),
        }
    }

    fn refused(&self, status: u16) -> OperatorError {
        let address = &self.address;
        match status {
            401 => OperatorError::Refused(format!(
                "the controller at {address} knows no operator with this certificate: it was revoked, or \
                 another controller has enrolled it. Ask for a new invitation (neph control invite --operator NAME on the \
                 controller's host), remove the folder of --operator, and use it with --invite-file"
            )),
            403 => OperatorError::Refused(format!(
                "the controller at {address} refuses this certificate: it is an agent's, not an operator's; \
                 neph control invite --operator NAME on the controller's host invites an operator"
            )),
            404 => OperatorError::Refused(format!(
                "the controller at {address} is of another version of neph; use one version on both hosts"
            )),
            503 => OperatorError::Refused(format!(
                "as many operators as may be are connected to the controller at {address}; try again later"
            )),
            other => self.unreachable(&format!("it answers with HTTP status {other}")),
        }
    }
}

/// Copies bytes in each direction until one side disconnects.
async fn carry(
    socket: Socket,
    stream: UnixStream,
    clock: &ControllerClock,
    ready: &SyncSender<Result<(), OperatorError>>,
) {
    let Ok(stream) = tokio::net::UnixStream::from_std(stream) else {
        return;
    };
    let _ = ready.send(Ok(()));
    let (mut sink, mut messages) = socket.split();
    let (mut reader, mut writer) = stream.into_split();
    let incoming = async {
        while let Ok(Some(Ok(message))) = timeout(SILENCE_TIMEOUT, messages.next()).await {
            let result = match message {
                Message::Binary(bytes) => writer.write_all(&bytes).await,
                Message::Ping(payload) => {
                    clock.read(&payload);
                    Ok(())
                }
                Message::Close(_) => return,
                _ => Ok(()),
            };
            if result.is_err() {
                return;
            }
        }
    };
    let outgoing = async {
        let mut piece = vec![0; MAX_MESSAGE_BYTES];
        loop {
            let count = match reader.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(count) => count,
            };
            let bytes = piece[..count].to_vec();
            if sink.send(Message::binary(bytes)).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = incoming => {}
        () = outgoing => {}
    }
    let _ = timeout(Duration::from_secs(1), sink.close()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_clock_is_parsed_only_from_a_heartbeat() {
        let clock = ControllerClock::default();
        let ahead = Span::from_secs(3600);
        let payload = (now() + ahead).unix_nanos().to_le_bytes();
        assert!(clock.read(&payload));
        let error = clock.now().unix_nanos() - (now() + ahead).unix_nanos();
        assert!(error.abs() < 1_000_000_000, "{error}");
        assert!(!clock.read(b"") && !clock.read(b"hello"));
        for max in [i64::MIN, i64::MAX] {
            assert!(clock.read(&max.to_le_bytes()));
            assert!(clock.now() != now(), "it is bounded");
        }
    }
}
