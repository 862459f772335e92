//! The controller: sends orders to agents over a bus, fetches their results and ensures that each
//! is stored exactly once.
//!
//! Owns the open orders, their received results, and the executor for campaigns. Plans nothing, and
//! stores only data that it has not passed on yet.

mod agent_history;
mod authority;
mod bus;
mod campaign_socket;
mod captures;
mod controller;
mod dispatcher;
mod executor;
mod hub;
mod inbox;
mod loop_control;
mod monitor;
mod nats;
mod now;
mod operator_port;
mod reception;
mod registry;
mod schedule;
mod server;

pub use agent_history::{AgentHistory, ClockReading, SeenOrder, SeenState};
pub use authority::AuthorityError;
pub use bus::{Bus, FromBus, NotConnected};
pub use campaign_socket::{
    CampaignSocket, CampaignSocketError, ControllerAgents, ControllerPlace, agent_details,
    agents_at,
};
pub use captures::{AgentCaptures, LONGEST_CAPTURE};
pub use controller::{Controller, ControllerError, is_running, last_address};
pub use executor::{AgentReflector, AgentsExecutor, Sites};
pub use hub::{AgentDetails, AwayAgent, ConnectedAgent};
pub use inbox::InboxError;
pub use monitor::{ControllerStatus, Monitor};
pub use nats::{NatsError, NatsFiles, NatsLink, write_nats_config};
pub use operator_port::{OperatorError, OperatorPort};
pub use registry::{
    EnrolledAgent, Holder, INVITATION_LIFETIME, Registry, RegistryError, controller_id,
};
pub use schedule::{
    Book, BookError, CampaignFinder, Due, Entry, FoundCampaign, Missed, Outcome, Runner,
    RunnerFolder, SHORTEST_INTERVAL, Schedule,
};
pub use server::ServerError;
