//! Operators at the controller's port: the bytes of the campaign socket over a WebSocket.
//!
//! Owns a thread for each connection. An operator may send the same requests as a process on the
//! controller's host; the controller signs its orders.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Extension;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt};
use neph_agent::remote::Role;
use neph_model::Stop;
use neph_sys::pulse::Pulse;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{
    AuthenticatedPeer, CONNECTION_CLOSE, PING_INTERVAL, ServerState, WEBSOCKET_BUFFER_BYTES,
};
use crate::campaign_socket::{CampaignService, answer};
use crate::loop_control::LoopControl;
use crate::operator_port::{MAX_MESSAGE_BYTES, SILENCE_TIMEOUT, clock_payload};

/// Maximum number of operator connections: each has a thread.
pub(super) const MAX_OPERATORS: usize = 64;
/// How long a write to an operator may block.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) async fn operator(
    Extension(shared): Extension<ServerState>,
    Extension(peer): Extension<Option<AuthenticatedPeer>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let refused = |status: StatusCode, reason: &'static str| {
        (status, CONNECTION_CLOSE, reason).into_response()
    };
    let Some(peer) = peer else {
        let reason = "no enrolled operator has this certificate";
        return refused(StatusCode::UNAUTHORIZED, reason);
    };
    if peer.holder.role != Role::Operator {
        return refused(
            StatusCode::FORBIDDEN,
            "your certificate is not an operator's",
        );
    }
    let Ok(permit) = Arc::clone(&shared.operator_permits).try_acquire_owned() else {
        let reason = "as many operators as may be are connected; try again later";
        return refused(StatusCode::SERVICE_UNAVAILABLE, reason);
    };
    upgrade
        .max_message_size(MAX_MESSAGE_BYTES)
        .max_frame_size(MAX_MESSAGE_BYTES)
        .read_buffer_size(WEBSOCKET_BUFFER_BYTES)
        .write_buffer_size(WEBSOCKET_BUFFER_BYTES)
        .on_upgrade(async move |socket| {
            serve(socket, &shared, &peer).await;
            drop(permit);
        })
}

/// Starts the thread that answers; the stream is closed when the connection ends.
fn start_answering(shared: &ServerState) -> std::io::Result<UnixStream> {
    let (local_end, remote_end) = UnixStream::pair()?;
    local_end.set_nonblocking(true)?;
    let signer = shared.registry.signer().map_err(std::io::Error::other)?;
    let service = CampaignService {
        hub: Arc::clone(&shared.hub),
        registry: Arc::clone(&shared.registry),
        signer: Some(Arc::new(signer)),
    };
    let thread = std::thread::Builder::new().name("operator".to_owned());
    thread.spawn(move || {
        // The thread ends with its stream.
        let (stop, pulse) = (Stop::new(), Pulse::new("operator"));
        let loop_control = LoopControl {
            stop: &stop,
            pulse: &pulse,
        };
        if let Err(error) = answer(remote_end, &service, loop_control) {
            tracing::debug!("an operator's connection: {error}");
        }
    })?;
    Ok(local_end)
}

/// Carries bytes of one operator until it disconnects or is revoked.
async fn serve(socket: WebSocket, shared: &ServerState, peer: &AuthenticatedPeer) {
    let stream = start_answering(shared).and_then(tokio::net::UnixStream::from_std);
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!("an operator cannot be served: {error}"),
    };
    let (mut sink, mut messages) = socket.split();
    let (mut reader, mut writer) = stream.into_split();
    let incoming = async {
        while let Ok(Some(Ok(message))) = timeout(SILENCE_TIMEOUT, messages.next()).await {
            let result = match message {
                Message::Binary(bytes) => writer.write_all(&bytes).await,
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
        let mut beat = interval(PING_INTERVAL);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let message = tokio::select! {
                read = reader.read(&mut piece) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(count) => Message::Binary(piece[..count].to_vec().into()),
                },
                _ = beat.tick() => {
                    if shared.is_revoked(peer) {
                        return;
                    }
                    Message::Ping(clock_payload().into())
                }
            };
            if !matches!(timeout(WRITE_TIMEOUT, sink.send(message)).await, Ok(Ok(()))) {
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
