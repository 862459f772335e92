//! Measures the throughput of a path over TCP or UDP between two processes of neph, and its limit;
//! also transactions between them ([`rr`]).
//!
//! A [`Server`] serves one test at a time; [`measure`] is the client. Each end counts once a second
//! on its clock; the client combines the counts ([`Measured`]) and determines the limit
//! ([`Limit`]). Threads block on sockets with timeouts; counting and judging are functions without
//! I/O.

mod board;
mod carrier;
mod client;
mod control;
mod cores;
mod counters;
mod course;
mod dialogue;
mod ends;
mod engine;
mod error;
mod job;
mod limit;
mod listening;
mod measured;
mod opening;
mod quantities;
mod rates;
mod reservoir;
pub mod rr;
mod run;
mod second;
pub(crate) mod sequence;
mod served;
mod server;
mod session;
mod slot;
mod tcp_receiver;
mod tcp_sender;
#[cfg(test)]
mod tests;
mod totals;
mod udp_receiver;
mod udp_sender;
mod usage;
pub(crate) mod variation;

pub use client::{ThroughputRequest, measure};
pub use error::ThroughputError;
pub use job::Job;
pub use limit::{Limit, LimitKind};
pub use measured::{DirectionResult, Measured};
pub use quantities::{DATAGRAM, build_test_request};
pub use second::Second;
pub use served::{ServedEvent, ServerCaps, ServerSpec};
pub use server::Server;
pub use totals::{TcpTotals, Totals, UdpTotals};
pub use usage::Usage;
