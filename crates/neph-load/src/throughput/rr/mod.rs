//! Transactions at maximum rate: netperf's `UDP_RR`, `TCP_RR` and `TCP_CRR`.
//!
//! Each stream has a thread at both ends and one outstanding transaction. The loop of a transaction
//! has one send call, one receive call and one reading of the clock: no lock, no allocation.
//! Matching of datagrams (`matching`, `window`) and statistics of RTTs ([`crate::Durations`]) are functions
//! without I/O. [`measure`] is the client; the server is that of throughput tests.

mod acceptor;
mod client;
mod connecting;
mod datagram_client;
mod datagram_server;
mod guard;
mod matching;
mod measured;
mod pieces;
mod quantities;
mod recorder;
mod second;
mod server;
mod spec;
mod stream_client;
mod stream_server;
#[cfg(test)]
mod tests;
mod window;

pub use client::measure;
pub use measured::{RrCounts, RrMeasured};
pub use quantities::rr_spec;
pub use second::RrSecond;
pub use spec::{RrRequest, RrSpec};

pub(super) use acceptor::answer_connection;
pub(super) use server::{RrServer, serve};
