//! Orders from another process: the messages between controller and agent, and the agent's side.
//!
//! Owns the messages, the orders that an agent keeps until the controller has stored their results, and the
//! worker. A [`Link`] may lose any message: the controller repeats it, and it takes effect once.

mod address;
mod admission;
mod controller_clock;
mod deadline_stream;
mod file;
mod frame;
mod grant;
mod heartbeat;
mod identity;
mod invitation;
mod json;
mod link;
mod message;
mod order_store;
mod role;
mod serving;
mod status;
mod websocket;
mod worker;

#[cfg(test)]
mod tests;

pub use address::{ControllerAddress, NoController};
pub use admission::{AdmissionControl, MAX_RUNNING, Moment, OpenAdmissionError};
pub use file::{FileLength, ResultFile};
pub use frame::{
    FrameError, LONGEST_FRAME, MAX_PART_BYTES, decode_from_agent, decode_to_agent,
    encode_from_agent, encode_to_agent,
};
pub use grant::{Grant, Granted, OrderBrief, SignError, Signer, Verifier};
pub use identity::{CONTROLLER_NAME, Identity, IdentityError};
pub use invitation::{Enrolled, Enrolment, Invitation, ParseInvitationError};
pub use json::{read_json, write_json};
pub use link::{Link, LinkLost};
pub use message::{
    AgentClockOffset, Beat, Ended, FromAgent, Hello, OrderState, PROTOCOL, Part, ToAgent,
};
pub use order_store::{OrderStoreError, captures_in, read_pings};
pub use role::Role;
pub use serving::{ServeError, serve};
pub use status::{AgentStatus, StatusBoard};
pub use websocket::{EnrolError, WebSocketLink, enrol};
pub use worker::{REFUSED, Worker, WorkerLost};
