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

use super::{BEAT, BUFFER, CLOSE, Proved, ServerState};
use crate::campaign_socket::{CampaignService, answer};
use crate::operator_port::{PIECE, SILENCE, clock_payload};
use crate::turning::Turning;

/// Maximum number of operator connections: each has a thread.
pub(super) const OPERATORS: usize = 64;
/// How long a write to an operator may block.
const STUCK: Duration = Duration::from_secs(15);

pub(super) async fn operator(
    Extension(shared): Extension<ServerState>,
    Extension(proved): Extension<Option<Proved>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let refused = |status: StatusCode, why: &'static str| (status, CLOSE, why).into_response();
    let Some(proved) = proved else {
        let why = "no enrolled operator has this certificate";
        return refused(StatusCode::UNAUTHORIZED, why);
    };
    if proved.holder.role != Role::Operator {
        return refused(
            StatusCode::FORBIDDEN,
            "your certificate is not an operator's",
        );
    }
    let Ok(permit) = Arc::clone(&shared.operators).try_acquire_owned() else {
        let why = "as many operators as may be are connected; try again later";
        return refused(StatusCode::SERVICE_UNAVAILABLE, why);
    };
    upgrade
        .max_message_size(PIECE)
        .max_frame_size(PIECE)
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .on_upgrade(async move |socket| {
            serve(socket, &shared, &proved).await;
            drop(permit);
        })
}

/// Starts the thread that answers; the stream is closed when the connection ends.
fn answering(shared: &ServerState) -> std::io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
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
        let turning = Turning {
            stop: &stop,
            pulse: &pulse,
        };
        if let Err(error) = answer(theirs, &service, turning) {
            tracing::debug!("an operator's connection: {error}");
        }
    })?;
    Ok(ours)
}

/// Carries bytes of one operator until it disconnects or is revoked.
async fn serve(socket: WebSocket, shared: &ServerState, proved: &Proved) {
    let stream = answering(shared).and_then(tokio::net::UnixStream::from_std);
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!("an operator cannot be served: {error}"),
    };
    let (mut sink, mut messages) = socket.split();
    let (mut reading, mut writing) = stream.into_split();
    let incoming = async {
        while let Ok(Some(Ok(message))) = timeout(SILENCE, messages.next()).await {
            let taken = match message {
                Message::Binary(bytes) => writing.write_all(&bytes).await,
                Message::Close(_) => return,
                _ => Ok(()),
            };
            if taken.is_err() {
                return;
            }
        }
    };
    let outgoing = async {
        let mut piece = vec![0; PIECE];
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let message = tokio::select! {
                read = reading.read(&mut piece) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(count) => Message::Binary(piece[..count].to_vec().into()),
                },
                _ = beat.tick() => {
                    if shared.is_revoked(proved) {
                        return;
                    }
                    Message::Ping(clock_payload().into())
                }
            };
            if !matches!(timeout(STUCK, sink.send(message)).await, Ok(Ok(()))) {
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
