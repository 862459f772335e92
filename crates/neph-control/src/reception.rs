//! Processes bytes of an agent, from any bus.

use neph_agent::remote::{FromAgent, PROTOCOL, ToAgent, decode_from_agent};
use neph_model::{AgentName, Wall};

use crate::hub::Hub;

/// The result of a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Reception {
    /// No answer is needed.
    Taken,
    /// An answer.
    Answer(ToAgent),
    /// The agent cannot be served.
    CutOff,
}

/// Processes a message of an authenticated agent.
pub(crate) fn receive(hub: &Hub, agent: &AgentName, bytes: &[u8], now: Wall) -> Reception {
    match decode_from_agent(bytes) {
        Ok(FromAgent::Beat(beat)) => {
            let sent = beat.sent;
            hub.process_message(agent, Some(FromAgent::Beat(beat)), now);
            Reception::Answer(ToAgent::Beat {
                sent,
                received: now,
            })
        }
        Ok(FromAgent::Hello(hello)) if hello.protocol != PROTOCOL => {
            let agent_protocol = hello.protocol;
            tracing::warn!(
                "agent {agent} is refused: it uses protocol version {agent_protocol}, this controller {PROTOCOL}; run the same version of neph at both"
            );
            Reception::CutOff
        }
        Ok(message) => {
            hub.process_message(agent, Some(message), now);
            Reception::Taken
        }
        Err(error) => {
            tracing::warn!("agent {agent} is cut off: {error}");
            Reception::CutOff
        }
    }
}
