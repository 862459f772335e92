//! Transactions at maximum rate: netperf's `UDP_RR`, `TCP_RR` and `TCP_CRR`.
//!
//! Each stream has a thread at both ends and one outstanding transaction. The loop of a transaction
//! has one send call, one receive call and one reading of the clock: no lock, no allocation.
//! Matching of datagrams (`matching`, `window`) and statistics of RTTs ([`Rtts`]) are functions
//! without I/O. [`measure`] is the client; the server is that of throughput tests.

mod acceptor;
mod answering;
mod client;
mod connecting;
mod datagram_answers;
mod datagram_asker;
mod guard;
mod matching;
mod measured;
mod pieces;
mod quantities;
mod recorder;
mod rtts;
mod second;
mod spec;
mod stream_answers;
mod stream_asker;
#[cfg(test)]
mod tests;
mod window;

pub use client::measure;
pub use measured::{RrCounts, RrMeasured};
pub use quantities::rr_spec;
pub use rtts::{RttFigure, Rtts};
pub use second::RrSecond;
pub use spec::{RrRequest, RrSpec};

pub(super) use acceptor::answer_connection;
pub(super) use answering::{Answering, answer};
