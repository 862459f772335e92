//! Requests and replies in turn, as fast as they go: netperf's UDP_RR, TCP_RR and TCP_CRR.
//!
//! Each stream has a thread at both ends and one transaction outstanding. The loop of a transaction is one
//! send call, one receive call and one reading of the clock: no lock, no allocation. What became of
//! datagrams (`matching`, `window`) and what round-trip times show ([`Rtts`]) are functions without
//! input or output. [`measure`] is the client; the server is that of throughput tests.

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
pub use spec::{RrAsked, RrSpec};

pub(super) use acceptor::answer_connection;
pub(super) use answering::{Answering, answer};
