//! The protocol between the two ends of a throughput test.
//!
//! Control: one JSON object per line on a TCP connection ([`ClientMessage`], [`ServerMessage`],
//! [`Lines`]).
//! Data: TCP connections that begin with a [`Preamble`], and UDP datagrams that begin with a
//! [`Header`], or with an [`RrTag`] in a request/response test after its start.
//! One port serves all three: a line begins with `{`, a preamble with [`Preamble::MAGIC`].

mod datagram;
mod interval;
mod line;
mod message;
mod preamble;
mod rr;
mod test_request;
mod token;

#[cfg(test)]
mod tests;

pub use datagram::{Content, Header, HeaderError};
pub use interval::{
    CoreShare, CpuInterval, ReceivedInterval, SentInterval, StreamVariation, TcpCounters,
    UdpCounters, Variation,
};
pub use line::{LineError, Lines, MAX_LINE_BYTES, encode_line};
pub use message::{ClientMessage, Intervals, ServerMessage};
pub use preamble::Preamble;
pub use rr::{RrInterval, RrKind, RrTag, RrTestRequest};
pub use test_request::{Direction, Protocol, TestRequest, TestRequestError, VERSION};
pub use token::Token;
