//! Many flows of one source on one thread: their specification, their run and their reports.
//!
//! [`session`] knows the schedule and how each message ended, and does no input or output; [`driver`] keeps
//! the time and carries events between it and a [`transport`].

mod blocks;
mod connect;
mod connection_failure;
mod driver;
mod established;
mod files;
mod flows;
mod gaps;
mod link;
mod port_holders;
mod ports;
mod reports;
mod run;
pub(crate) mod send_order;
pub(crate) mod session;
mod shared;
mod sockets;
mod speaker;
mod spec;
pub(crate) mod stamp;
mod syn;
mod transport;
mod watched;

#[cfg(test)]
pub(crate) use blocks::Blocks;
pub(crate) use blocks::take_bound;
pub use files::{allot_files, check_files};
pub use run::FleetRun;
pub use spec::{FleetReport, FleetSpec, FleetTally, Sharing};
