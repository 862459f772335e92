//! The controller: sends orders to agents over a bus, fetches their results and sees to it that each is
//! stored exactly once.
//!
//! Owns which orders are out, what has come of their results, and the executor that a campaign gives orders
//! to. Plans nothing, and stores nothing but what it has received and not passed on yet.

mod bus;
mod dispatcher;
mod executor;
mod inbox;

pub use bus::{Bus, FromBus, NotConnected};
pub use executor::{AgentsExecutor, Sites};
pub use inbox::InboxError;
