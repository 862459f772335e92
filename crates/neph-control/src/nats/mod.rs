//! NATS as a bus, for fleets that are too large for the controller's port.
//!
//! Owns subjects, the connection to the servers and their configuration. Uses core NATS only: no
//! stream, no acknowledgement, no state that survives a server. That suffices, because a bus may
//! lose messages. Each agent has one subject per direction, and a user that may use only these two.

mod bridge;
mod config;
mod link;

use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event};
use neph_agent::remote::LONGEST_FRAME;
use neph_model::AgentName;
use rustls::ClientConfig;

pub(crate) use bridge::Bridge;
pub use config::{NatsFiles, write_nats_config};
pub use link::NatsLink;

/// Timeout of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of pings to the server.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of received messages that wait at an agent. A message without room is lost and
/// requested later.
const MAX_PENDING_AT_AGENT: usize = 1024;
/// The same at the controller, which receives the messages of all agents: thousands may answer at
/// once.
const MAX_PENDING_AT_CONTROLLER: usize = 65_536;

/// NATS could not be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("NATS at {servers}: {why}")]
pub struct NatsError {
    /// The servers.
    pub servers: String,
    /// The cause.
    pub why: String,
    /// The server has no user with this certificate.
    pub is_refused: bool,
}

fn to_agent(agent: &AgentName) -> String {
    format!("neph.to.{agent}")
}

fn from_agent(agent: &AgentName) -> String {
    format!("neph.from.{agent}")
}

/// The agent of this subject: only its user may publish to it.
fn agent_of(subject: &str) -> Option<AgentName> {
    subject.strip_prefix("neph.from.")?.parse().ok()
}

/// A client of a NATS server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role<'a> {
    Controller,
    Agent(&'a AgentName),
}

impl Role<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Controller => "controller",
            Self::Agent(name) => name.as_str(),
        }
    }

    const fn max_pending(self) -> usize {
        match self {
            Self::Controller => MAX_PENDING_AT_CONTROLLER,
            Self::Agent(_) => MAX_PENDING_AT_AGENT,
        }
    }
}

/// Connects to one of the servers (`HOST:PORT`, separated by commas).
pub(crate) async fn connect(
    servers: &str,
    tls: ClientConfig,
    role: Role<'_>,
    received: impl Fn(Event) + Send + Sync + 'static,
) -> Result<Client, NatsError> {
    let failed = |why: String| NatsError {
        servers: servers.to_owned(),
        why,
        is_refused: false,
    };
    let options = ConnectOptions::new()
        .name(role.name())
        .require_tls(true)
        .tls_client_config(tls)
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .subscription_capacity(role.max_pending())
        .event_callback(move |event| {
            received(event);
            std::future::ready(())
        });
    let addresses: Vec<String> = servers
        .split(',')
        .map(|server| format!("nats://{server}"))
        .collect();
    let client = options.connect(addresses).await.map_err(|error| {
        use async_nats::ConnectErrorKind::{Authentication, AuthorizationViolation};
        NatsError {
            is_refused: matches!(error.kind(), Authentication | AuthorizationViolation),
            ..failed(sentence(&error))
        }
    })?;
    let largest = client.server_info().max_payload;
    if largest < LONGEST_FRAME {
        return Err(failed(format!(
            "it takes messages of {largest} bytes, and neph sends {LONGEST_FRAME}; raise max_payload in its \
             configuration"
        )));
    }
    Ok(client)
}

/// An error with its causes.
fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}
