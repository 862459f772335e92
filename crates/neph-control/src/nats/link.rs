//! The agent's end of NATS.
//!
//! Owns a thread with the client. A broken connection ends the link, so that the agent reconnects
//! and greets the controller.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use async_nats::Event;
use futures_util::StreamExt;
use neph_agent::remote::{
    FromAgent, Identity, Link, LinkLost, MAX_RUNNING, ToAgent, decode_to_agent, encode_from_agent,
};
use neph_model::{AgentName, Span};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::{MAX_PENDING_AT_AGENT, NatsError, Role, connect, from_agent, to_agent};

/// Timeout for a message, and for the last ones together.
const SEND_TIMEOUT: Duration = Duration::from_secs(4);
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of messages that wait to be sent: one for each order that runs.
const MAX_UNSENT: usize = MAX_RUNNING;

/// A connection to a controller over NATS.
pub struct NatsLink {
    to: Option<mpsc::Sender<Vec<u8>>>,
    from: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for NatsLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NatsLink")
    }
}

impl NatsLink {
    /// Connects an enrolled agent to one of the servers (`HOST:PORT`, separated by commas).
    ///
    /// # Errors
    /// No server is reachable, or an authentication failed.
    pub fn connect(servers: &str, identity: &Identity) -> Result<Self, NatsError> {
        let failed = |why: String| NatsError {
            servers: servers.to_owned(),
            why,
            is_refused: false,
        };
        let agent = identity.name().map_err(|error| failed(error.to_string()))?;
        let tls = identity.tls().map_err(|error| failed(error.to_string()))?;
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let (to, sending) = mpsc::channel(MAX_UNSENT);
        let (received, from) = sync_channel(MAX_PENDING_AT_AGENT);
        let (ready, is_ready) = sync_channel(1);
        let servers = servers.to_owned();
        let thread = std::thread::Builder::new().name("nats".to_owned());
        let work = async move {
            let broken = Arc::new(Notify::new());
            let broken_notifier = Arc::clone(&broken);
            let on_event = move |event| {
                if matches!(event, Event::Disconnected | Event::Closed) {
                    broken_notifier.notify_one();
                }
            };
            let tls = Arc::unwrap_or_clone(tls);
            match connect(&servers, tls, Role::Agent(&agent), on_event).await {
                Ok(client) => {
                    let _ = ready.send(Ok(()));
                    let parts = Parts {
                        agent,
                        sending,
                        received,
                    };
                    carry(&client, parts, &broken).await;
                }
                Err(why) => drop(ready.send(Err(why))),
            }
        };
        let spawned = thread.spawn(move || runtime.block_on(work));
        let thread = spawned.map_err(|error| failed(error.to_string()))?;
        match is_ready.recv() {
            Ok(Ok(())) => Ok(Self {
                to: Some(to),
                from,
                thread: Some(thread),
            }),
            Ok(Err(why)) => Err(why),
            Err(_) => Err(failed("its thread has ended".to_owned())),
        }
    }
}

struct Parts {
    agent: AgentName,
    sending: mpsc::Receiver<Vec<u8>>,
    received: SyncSender<Vec<u8>>,
}

/// Carries messages until the connection breaks or the link is dropped.
async fn carry(client: &async_nats::Client, mut parts: Parts, broken: &Notify) {
    let subscribed = client.subscribe(to_agent(&parts.agent)).await;
    let mut received = match subscribed {
        Ok(received) => received,
        Err(error) => return tracing::warn!("cannot subscribe: {error}"),
    };
    let subject = from_agent(&parts.agent);
    loop {
        tokio::select! {
            message = received.next() => {
                let Some(message) = message else { return };
                let result = parts.received.try_send(message.payload.to_vec());
                // A message without room is lost and requested later.
                if let Err(TrySendError::Disconnected(_)) = result {
                    return;
                }
            }
            sending = parts.sending.recv() => {
                let Some(bytes) = sending else {
                    let _ = timeout(FLUSH_TIMEOUT, client.flush()).await;
                    return;
                };
                let published = timeout(SEND_TIMEOUT, client.publish(subject.clone(), bytes.into()));
                if !matches!(published.await, Ok(Ok(()))) {
                    return;
                }
            }
            () = broken.notified() => return,
        }
    }
}

impl Link for NatsLink {
    fn send(&mut self, message: FromAgent) -> Result<(), LinkLost> {
        let bytes =
            encode_from_agent(&message).map_err(|error| LinkLost::new(error.to_string()))?;
        let sent = self.to.as_ref().map(|to| to.try_send(bytes));
        match sent {
            // A message without room is lost and requested later; a server that accepts nothing
            // does not answer either.
            Some(Ok(()) | Err(mpsc::error::TrySendError::Full(_))) => Ok(()),
            _ => Err(LinkLost::new("NATS has closed it")),
        }
    }

    fn receive(&mut self, patience: Span) -> Result<Option<ToAgent>, LinkLost> {
        match self.from.recv_timeout(patience.to_duration()) {
            Ok(bytes) => decode_to_agent(&bytes)
                .map(Some)
                .map_err(|error| LinkLost::unreadable(error.to_string())),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(LinkLost::new("NATS has closed it")),
        }
    }
}

impl Drop for NatsLink {
    fn drop(&mut self) {
        // The thread ends on its own: measurements do not wait for a server that hangs.
        self.to = None;
        drop(self.thread.take());
    }
}
