//! The controller's port: WebSocket over TLS for enrolment, agents and operators.
//!
//! Owns the sockets and their limits. The certificate determines the peer; messages of agents go to
//! the hub.

mod operators;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::Extension;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, HeaderName};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use neph_agent::remote::{Enrolled, LONGEST_FRAME, Role, ToAgent, encode_to_agent};
use neph_model::AgentName;
use neph_sys::pulse::Pulse;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsAcceptor;

use crate::authority::AuthorityError;
use crate::hub::Hub;
use crate::now::now;
use crate::operator_port::operator_path;
use crate::reception::{Reception, receive};
use crate::registry::{Holder, Registry};
use operators::{MAX_OPERATORS, operator};

/// Timeout until a peer is identified.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of pings to an agent and of checks for its revocation.
const PING_INTERVAL: Duration = Duration::from_secs(3);
/// Intervals without an answer until an agent counts as disconnected.
const MAX_UNANSWERED_PINGS: u32 = 5;
/// Interval of the pulse of the connections' thread.
const PULSE_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of connections; larger fleets use NATS.
const MAX_CONNECTIONS: usize = 8192;
/// Buffer of a request in bytes: the minimum of hyper is 8 KiB.
const REQUEST_BUFFER_BYTES: usize = 16 << 10;
/// Buffers of an agent's connection, bytes each. Thousands of agents are mostly idle, and a
/// connection with default buffers takes 145 KiB.
const WEBSOCKET_BUFFER_BYTES: usize = 4 << 10;
/// Maximum size of an enrolment message in bytes.
const MAX_ENROLMENT_BYTES: usize = 4096;

/// What to do if the port is in use.
fn listen_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; end the process that uses this port, or choose another port with --listen"
        }
        _ => "",
    }
}

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be used.
    #[error("cannot listen at {0}: {1}{remedy}", remedy = listen_remedy(.1))]
    Listen(SocketAddr, io::Error),
    /// The thread or its runtime cannot be started.
    #[error("cannot start the controller's thread: {0}")]
    Thread(io::Error),
    /// An error of keys and certificates.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// A running server; it stops when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    pulse: Pulse,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// State that all connections share.
#[derive(Clone)]
struct ServerState {
    registry: Arc<Registry>,
    hub: Arc<Hub>,
    /// Permits for operators.
    operator_permits: Arc<Semaphore>,
}

/// An authenticated peer, and its certificate (DER).
#[derive(Clone)]
struct AuthenticatedPeer {
    holder: Holder,
    certificate: Arc<[u8]>,
}

impl ServerState {
    /// Whether a connected peer was revoked; logs it.
    fn is_revoked(&self, peer: &AuthenticatedPeer) -> bool {
        let Holder { role, name } = &peer.holder;
        let is_revoked = self.registry.is_revoked(&peer.holder, &peer.certificate);
        if is_revoked {
            tracing::info!("{role} {name} is revoked: its connection is closed");
        }
        is_revoked
    }
}

/// Whether a server could listen at `address` now.
pub(crate) fn check_address(address: SocketAddr) -> Result<(), ServerError> {
    let listen_error = |error| ServerError::Listen(address, error);
    TcpListener::bind(address).map(drop).map_err(listen_error)
}

impl Server {
    /// Listens at `address`; port 0 is a free one.
    pub(crate) fn start(
        address: SocketAddr,
        registry: Arc<Registry>,
        hub: Arc<Hub>,
    ) -> Result<Self, ServerError> {
        let tls = registry.authority().tls()?;
        let listen_error = |error| ServerError::Listen(address, error);
        let listener = TcpListener::bind(address).map_err(listen_error)?;
        listener.set_nonblocking(true).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let (stop, stopped) = oneshot::channel();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().map_err(ServerError::Thread)?;
        let operator_permits = Arc::new(Semaphore::new(MAX_OPERATORS));
        let shared = ServerState {
            registry,
            hub,
            operator_permits,
        };
        let pulse = Pulse::new("controller");
        let thread_pulse = pulse.clone();
        let thread = std::thread::Builder::new().name("controller".to_owned());
        let thread = thread.spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, tls, shared) => {}
                    () = update_pulse(&thread_pulse) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self {
            address,
            pulse,
            stop: Some(stop),
            thread: Some(thread.map_err(ServerError::Thread)?),
        })
    }

    /// Pulse of the connections' thread: it turns every second, unless a connection blocks it.
    pub(crate) const fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// The listening address.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Pulses while the thread has time for its tasks.
async fn update_pulse(pulse: &Pulse) {
    loop {
        pulse.beat();
        tokio::time::sleep(PULSE_INTERVAL).await;
    }
}

async fn accept(listener: TcpListener, tls: Arc<ServerConfig>, shared: ServerState) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("cannot listen: {error}"),
    };
    let acceptor = TlsAcceptor::from(tls);
    let connection_permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&connection_permits).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, from)) => {
                let (acceptor, shared) = (acceptor.clone(), shared.clone());
                tokio::spawn(async move {
                    if let Err(error) = serve_connection(stream, &acceptor, shared).await {
                        tracing::debug!("connection from {from}: {error}");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    shared: ServerState,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let address = stream.peer_addr()?;
    let stream = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await??;
    let chain = stream.get_ref().1.peer_certificates();
    let certificate: Option<Arc<[u8]>> = chain
        .and_then(|chain| chain.first())
        .map(|certificate_der| Arc::from(certificate_der.as_ref()));
    let peer = match certificate {
        Some(certificate) => {
            let certificate_holder = shared.registry.holder_of(&certificate)?;
            certificate_holder.map(|holder| AuthenticatedPeer {
                holder,
                certificate,
            })
        }
        None => None,
    };
    let router = Router::new()
        .route("/agent", get(upgrade_agent))
        .route("/enrol", get(enrol))
        .route(&operator_path(), get(operator))
        .route("/health", get(health))
        .layer(Extension(shared))
        .layer(Extension(peer))
        .layer(Extension(address));
    let mut builder = hyper::server::conn::http1::Builder::new();
    let timer = hyper_util::rt::TokioTimer::new();
    // An unauthenticated peer gets little memory.
    let builder = builder.timer(timer).header_read_timeout(HANDSHAKE_TIMEOUT);
    let builder = builder.max_buf_size(REQUEST_BUFFER_BYTES);
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    Ok(connection.with_upgrades().await?)
}

/// Closes the connection after the answer, so that it does not count against the limit.
const CONNECTION_CLOSE: [(HeaderName, &str); 1] = [(CONNECTION, "close")];

async fn health() -> Response {
    (CONNECTION_CLOSE, "ok").into_response()
}

async fn upgrade_agent(
    Extension(shared): Extension<ServerState>,
    Extension(peer): Extension<Option<AuthenticatedPeer>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Some(peer) = peer else {
        let reason = "your certificate is of no agent that is enrolled here";
        return (StatusCode::UNAUTHORIZED, CONNECTION_CLOSE, reason).into_response();
    };
    if peer.holder.role != Role::Agent {
        let reason = "your certificate is not an agent's";
        return (StatusCode::FORBIDDEN, CONNECTION_CLOSE, reason).into_response();
    }
    upgrade
        .max_message_size(LONGEST_FRAME)
        .max_frame_size(LONGEST_FRAME)
        .read_buffer_size(WEBSOCKET_BUFFER_BYTES)
        .write_buffer_size(WEBSOCKET_BUFFER_BYTES)
        .on_upgrade(move |socket| serve_agent(socket, shared, peer))
}

/// Carries messages of one agent until it disconnects or is revoked.
async fn serve_agent(mut socket: WebSocket, shared: ServerState, peer: AuthenticatedPeer) {
    let name = peer.holder.name.clone();
    let (connection_number, mut queue) = shared.hub.connected(&name, now());
    let mut ping_timer = interval(PING_INTERVAL);
    ping_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut unanswered_pings = 0;
    loop {
        let should_continue = tokio::select! {
            message = queue.recv() => match message {
                Some(message) => send_to_agent(&mut socket, &message).await,
                // A later connection has replaced it.
                None => false,
            },
            received = socket.recv() => {
                unanswered_pings = 0;
                handle_message(received, &mut socket, &shared, &name).await
            }
            _ = ping_timer.tick() => {
                unanswered_pings += 1;
                unanswered_pings <= MAX_UNANSWERED_PINGS
                    && !shared.is_revoked(&peer)
                    && send(&mut socket, Message::Ping(Vec::new().into())).await
            }
        };
        if !should_continue {
            break;
        }
    }
    shared.hub.disconnected(&name, connection_number);
    if shared.registry.is_revoked(&peer.holder, &peer.certificate) {
        shared.hub.revoked(&name);
    }
}

/// Processes data of an agent; returns whether its connection continues.
async fn handle_message(
    received: Option<Result<Message, axum::Error>>,
    socket: &mut WebSocket,
    shared: &ServerState,
    name: &AgentName,
) -> bool {
    let bytes = match received {
        Some(Ok(Message::Binary(bytes))) => bytes,
        Some(Ok(Message::Close(_)) | Err(_)) | None => return false,
        Some(Ok(_)) => {
            shared.hub.process_message(name, None, now());
            return true;
        }
    };
    match receive(&shared.hub, name, &bytes, now()) {
        Reception::Taken => true,
        Reception::Answer(message) => send_to_agent(socket, &message).await,
        Reception::CutOff => false,
    }
}

/// Sends a message; returns whether the agent accepted it. Skips a message that cannot be encoded.
async fn send_to_agent(socket: &mut WebSocket, message: &ToAgent) -> bool {
    match encode_to_agent(message) {
        Ok(bytes) => send(socket, Message::Binary(bytes.into())).await,
        Err(error) => {
            tracing::warn!("a message to an agent is not sent: {error}");
            true
        }
    }
}

/// Sends; returns false if the agent accepts nothing in time.
async fn send(socket: &mut WebSocket, message: Message) -> bool {
    let sent = timeout(PING_INTERVAL * MAX_UNANSWERED_PINGS, socket.send(message)).await;
    matches!(sent, Ok(Ok(())))
}

async fn enrol(
    Extension(shared): Extension<ServerState>,
    Extension(address): Extension<SocketAddr>,
    upgrade: WebSocketUpgrade,
) -> Response {
    upgrade
        .max_message_size(MAX_ENROLMENT_BYTES)
        .max_frame_size(MAX_ENROLMENT_BYTES)
        .on_upgrade(move |socket| enrol_peer(socket, shared, address))
}

async fn enrol_peer(mut socket: WebSocket, shared: ServerState, address: SocketAddr) {
    let Ok(Some(Ok(Message::Text(text)))) = timeout(HANDSHAKE_TIMEOUT, socket.recv()).await else {
        return;
    };
    let enrolled = match serde_json::from_str(&text) {
        Ok(request) => shared.registry.enrol(&request, now()),
        Err(error) => Err(AuthorityError::Invalid(error.to_string()).into()),
    };
    let answer = match enrolled {
        Ok((Holder { role, name }, certificate)) => {
            tracing::info!("{role} {name} at {address} is enrolled");
            Enrolled::Certificate(certificate)
        }
        Err(error) => {
            tracing::info!("an enrolment by {address} is refused: {error}");
            Enrolled::Refused(error.to_string())
        }
    };
    if let Ok(text) = serde_json::to_string(&answer) {
        let _ = socket.send(Message::Text(text.into())).await;
        let _ = socket.send(Message::Close(None)).await;
    }
}
