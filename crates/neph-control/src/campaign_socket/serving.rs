//! The controller's end: serves campaigns and requests for information.

use std::io::{self, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use neph_agent::remote::{SignError, Signer, ToAgent, decode_to_agent, encode_from_agent};
use neph_model::{AgentName, Span};
use neph_sys::clock;

use super::frames::{REVOKED_FRAME, read_block, read_frame, write_block, write_frame};
use super::{ANSWER_TIMEOUT, ControllerAgents, READY, REFUSED, SocketRequest, WRITE_TIMEOUT};
use crate::dispatcher::latest_lease_end;
use crate::hub::{Hub, HubBus};
use crate::loop_control::LoopControl;
use crate::now::now;
use crate::registry::Registry;
use crate::{Bus, FromBus};

/// Polling interval of an idle socket.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number and bytes of messages that wait for agents: a campaign on another host could
/// flood the controller.
const MAX_PENDING: usize = 16_384;
const MAX_PENDING_BYTES: usize = 16 << 20;
/// Messages that are passed on before messages of agents are read.
const MAX_BATCH: usize = 1024;
/// Interval at which a blocked message checks for room.
const ROOM_CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Messages that wait for the agents.
#[derive(Debug, Default)]
struct QueuedMessages {
    bytes: AtomicUsize,
    is_over: AtomicBool,
}

impl QueuedMessages {
    /// Blocks until there is room for one more message; returns false if the connection ended.
    fn reserve(&self, bytes: usize) -> bool {
        while self.bytes.load(Ordering::Relaxed) > MAX_PENDING_BYTES {
            if self.is_over.load(Ordering::Relaxed) {
                return false;
            }
            clock::nap(ROOM_CHECK_INTERVAL);
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// State for serving a process.
#[derive(Clone, Debug)]
pub(crate) struct CampaignService {
    pub(crate) hub: Arc<Hub>,
    pub(crate) registry: Arc<Registry>,
    /// Signs orders of operators, who have no signing key.
    pub(crate) signer: Option<Arc<Signer>>,
}

impl CampaignService {
    /// For processes on the controller's host: they sign their orders.
    pub(crate) const fn for_host(hub: Arc<Hub>, registry: Arc<Registry>) -> Self {
        Self {
            hub,
            registry,
            signer: None,
        }
    }
}

/// Serves each campaign on its thread, until it is stopped.
pub(crate) fn serve(
    listener: &UnixListener,
    service: &CampaignService,
    loop_control: LoopControl<'_>,
) {
    std::thread::scope(|scope| {
        while loop_control.should_continue() {
            let Ok((stream, _)) = listener.accept() else {
                clock::nap(ACCEPT_INTERVAL);
                continue;
            };
            let answer = move || {
                if let Err(error) = answer(stream, service, loop_control) {
                    tracing::debug!("a campaign's connection: {error}");
                }
            };
            let builder = std::thread::Builder::new().name("campaign".to_owned());
            if let Err(error) = builder.spawn_scoped(scope, answer) {
                tracing::warn!("a campaign cannot be served: {error}");
            }
        }
    });
}

/// Serves the request of a process.
pub(crate) fn answer(
    mut stream: UnixStream,
    service: &CampaignService,
    loop_control: LoopControl<'_>,
) -> io::Result<()> {
    let hub = &service.hub;
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let request: SocketRequest = serde_json::from_slice(&read_block(&mut stream)?)?;
    stream.set_read_timeout(None)?;
    match request {
        SocketRequest::Details(agent) => {
            let text = serde_json::to_vec(&hub.details(&agent))?;
            stream.write_all(&[READY])?;
            write_block(&mut stream, &text)
        }
        SocketRequest::Agents => {
            let agents = ControllerAgents {
                enrolled: service.registry.agents().map_err(io::Error::other)?,
                connected: hub.presence(),
                away: hub.away_agents(),
            };
            let text = serde_json::to_vec(&agents)?;
            stream.write_all(&[READY])?;
            write_block(&mut stream, &text)
        }
        SocketRequest::Campaign(agents) => match hub.attach(&agents) {
            Ok(bus) => {
                stream.write_all(&[READY])?;
                campaign(stream, bus, service, loop_control)
            }
            Err(busy_agent) => {
                stream.write_all(&[REFUSED])?;
                let reason = format!(
                    "agent {busy_agent} measures for another campaign (perhaps of a schedule), or captures for another command; wait until that has ended"
                );
                write_block(&mut stream, reason.as_bytes())
            }
        },
    }
}

/// Carries messages between a campaign and its agents.
fn campaign(
    mut stream: UnixStream,
    mut bus: HubBus,
    service: &CampaignService,
    loop_control: LoopControl<'_>,
) -> io::Result<()> {
    let mut reading = stream.try_clone()?;
    let (sender, to_agents) = sync_channel(MAX_PENDING);
    let queue = Arc::new(QueuedMessages::default());
    let reader_queue = Arc::clone(&queue);
    let reader = std::thread::spawn(move || {
        while let Ok((agent, bytes)) = read_frame(&mut reading) {
            let Ok(message) = decode_to_agent(&bytes) else {
                return;
            };
            let length = bytes.len();
            if !reader_queue.reserve(length) || sender.send((agent, message, length)).is_err() {
                return;
            }
        }
    });
    let result = loop {
        // Before the queue is read: what the campaign sent last is passed on too.
        let has_reader_ended = reader.is_finished();
        let mut batch = to_agents.try_iter().take(MAX_BATCH).peekable();
        if !loop_control.should_continue() || has_reader_ended && batch.peek().is_none() {
            break Ok(());
        }
        for (agent, message, length) in batch {
            queue.release(length);
            match sign_order(service.signer.as_deref(), &agent, message) {
                // A lost message is repeated.
                Ok(message) => drop(bus.send(&agent, message)),
                Err(error) => tracing::warn!("an order of an operator is not passed on: {error}"),
            }
        }
        let received = bus.receive(Span::from_millis(5));
        if let Err(error) = received
            .into_iter()
            .try_for_each(|from_bus| pass_on(&mut stream, from_bus))
        {
            break Err(error);
        }
    };
    let _ = stream.shutdown(std::net::Shutdown::Both);
    // Ends the reader: nothing empties its queue any more.
    queue.is_over.store(true, Ordering::Relaxed);
    drop(to_agents);
    let _ = reader.join();
    result
}

/// The message with a signature that its agent accepts.
fn sign_order(
    signer: Option<&Signer>,
    agent: &AgentName,
    message: ToAgent,
) -> Result<ToAgent, SignError> {
    match (signer, message) {
        (Some(signer), ToAgent::Begin { id, grant }) => {
            let grant =
                signer.countersign(&grant, agent, id, &|order| latest_lease_end(order, now()))?;
            let grant = Box::new(grant);
            Ok(ToAgent::Begin { id, grant })
        }
        (_, message) => Ok(message),
    }
}

fn pass_on(stream: &mut UnixStream, event: FromBus) -> io::Result<()> {
    match event {
        FromBus::Gone(agent) => write_frame(stream, &agent, &[]),
        FromBus::Revoked(agent) => write_frame(stream, &agent, REVOKED_FRAME),
        FromBus::Refused(reason) => Err(io::Error::other(reason)),
        FromBus::Message(agent, message) => match encode_from_agent(&message) {
            Ok(bytes) => write_frame(stream, &agent, &bytes),
            Err(error) => Err(io::Error::other(error)),
        },
    }
}
